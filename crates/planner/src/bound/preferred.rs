//! What the order of pools makes every plan pay.
//!
//! A node comes from the first pool that can make one for some pod on it. So no pool has nodes if whoever could use them
//! finds an earlier pool without limits. And where more pods depend on a limited pool than it has room for, every plan uses
//! up its limit, but for less than one node: whatever it costs beyond what its nodes carry is paid in every plan.

use crate::amounts::copies;
use crate::limits::Limits;
use crate::menus::PoolView;
use crate::relax::Relaxed;
use crate::solver::Solver;

use super::Demanded;

impl Solver<'_> {
    /// Whether a node of a pool could be made for pods of a row.
    pub(super) fn is_native(&self, row: &Demanded, pool: usize) -> bool {
        let always_sells =
            |pool: &PoolView<'_>| pool.limits.is_unlimited() && pool.variety.is_none() && pool.reserved.is_empty();
        let earlier = row.menus.iter().filter(|(earlier, _)| *earlier < pool);
        !row.is_plain || !earlier.into_iter().any(|(earlier, _)| always_sells(&self.pools[*earlier]))
    }

    /// Whether nothing but size and demands on nodes decides where pods of a class go.
    pub(super) fn is_plain(&mut self, class: usize) -> bool {
        let stances = self.stances(class);
        let own = &self.classes[class];
        let has_volumes = own.volumes.iter().any(|wanted| !wanted.is_empty()) || !own.attaching.is_nothing();
        matches!(&*stances, [only] if only.rules.is_free())
            && !has_volumes
            && own.spec.host_ports.is_empty()
            && own.spec.unplanned_rules.is_empty()
    }

    /// What plans pay for limits that they have to use up, beyond what pods are worth.
    pub(super) fn paid_for_order(&mut self, demanded: &[Demanded], relaxed: &Relaxed) -> f64 {
        // Where pods are left out, those could be left out that depend on a pool.
        if !self.leftovers.is_empty() {
            return 0.0;
        }
        (0..self.pools.len()).filter_map(|pool| self.paid_for(pool, demanded, relaxed)).sum()
    }

    fn paid_for(&mut self, pool: usize, demanded: &[Demanded], relaxed: &Relaxed) -> Option<f64> {
        let view = &self.pools[pool];
        let unused = view.limits.single()?.amount;
        if !view.variety.is_none() || !view.reserved.is_empty() || !self.is_used_up(pool, demanded) {
            return None;
        }
        let view = &self.pools[pool];
        let smallest = |row: &Demanded| {
            let class = &self.classes[*row.classes.first()?];
            let candidates =
                row.menus.iter().filter(|(own, _)| *own == pool).flat_map(|(_, menu)| &view.menu(*menu).candidates);
            let holding = candidates.filter(|candidate| view.holds_alone(candidate.kind, class));
            holding.filter_map(|candidate| view.kinds[candidate.kind].footprint.single()).min()
        };
        let node = demanded.iter().filter(|row| row.is_plain).filter_map(smallest).max()?;
        let used = Limits::of(view.pool).single()?.amount - node.max(unused);
        let rate = dearness(view, pool, demanded, relaxed)?;
        (used > 0 && rate > 0.0).then_some(used as f64 * rate)
    }

    /// Whether every plan turns to pools after this one for pods that this one sells to: more pods depend on it and on those
    /// before it than their limits have room for.
    fn is_used_up(&mut self, pool: usize, demanded: &[Demanded]) -> bool {
        let Some(name) = self.pools[pool].limits.single().map(|limit| limit.name.clone()) else { return false };
        let Some(resource) = self.table.position(&name) else { return false };
        let outside = self.sold_to_outsiders(pool, demanded);
        let mut earlier = vec![false; pool + 1];
        let mut wanted = 0;
        for row in demanded.iter().filter(|row| row.is_plain && row.is_sold_by(pool)) {
            let later = row.menus.iter().filter(|(later, _)| *later > pool);
            let mut kinds = later.flat_map(|(later, menu)| {
                self.pools[*later].menu(*menu).candidates.iter().map(move |candidate| (*later, candidate.kind))
            });
            if kinds.any(|(later, kind)| outside[later][kind])
                || !row.classes.iter().all(|class| self.is_homeless(*class))
            {
                continue;
            }
            wanted += row.demand[resource] * row.pods;
            row.menus.iter().filter(|(own, _)| *own <= pool).for_each(|(own, _)| earlier[*own] = true);
        }
        let limit = |pool: usize| {
            let limits = Limits::of(self.pools[pool].pool);
            limits.single().filter(|limit| *limit.name == name).map(|limit| limit.amount)
        };
        let room: Option<i64> = (0..=pool).filter(|own| earlier[*own]).map(limit).sum();
        room.is_some_and(|room| wanted > room)
    }

    /// By pool and type, whether a node could be made for pods that a certain earlier pool does not sell to.
    fn sold_to_outsiders(&self, earlier: usize, demanded: &[Demanded]) -> Vec<Vec<bool>> {
        let mut sold: Vec<Vec<bool>> = self.pools.iter().map(|pool| vec![false; pool.kinds.len()]).collect();
        for row in demanded.iter().filter(|row| !row.is_plain || !row.is_sold_by(earlier)) {
            let menus = row.menus.iter().filter(|(pool, _)| *pool > earlier && self.is_native(row, *pool));
            for (pool, menu) in menus {
                for candidate in &self.pools[*pool].menu(*menu).candidates {
                    sold[*pool][candidate.kind] = true;
                }
            }
        }
        sold
    }
}

impl Demanded {
    fn is_sold_by(&self, pool: usize) -> bool {
        self.menus.iter().any(|(own, _)| *own == pool)
    }
}

/// What each unit of the limited resource costs at least in a pool, beyond what the pods on it are worth.
fn dearness(view: &PoolView<'_>, pool: usize, demanded: &[Demanded], relaxed: &Relaxed) -> Option<f64> {
    let cost = |amounts: &[i64], prices: &[f64]| -> f64 {
        amounts.iter().zip(prices).map(|(amount, price)| (*amount).max(0) as f64 * price).sum()
    };
    let own: Vec<(&Demanded, f64)> =
        demanded.iter().zip(relaxed.duals.iter().copied()).filter(|(row, _)| row.is_sold_by(pool)).collect();
    // Room is worth its price, and a pod what its worth exceeds the price of its demand by.
    let over = |prices: &Vec<f64>| {
        let over = own.iter().map(|(row, worth)| (*row, worth - cost(&row.demand, prices)));
        over.filter(|(_, over)| *over > 0.0).collect::<Vec<_>>()
    };
    let excesses: Vec<Vec<(&Demanded, f64)>> = relaxed.prices.iter().map(over).collect();
    let worth = |room: &[i64]| {
        let ways = relaxed.prices.iter().zip(&excesses).map(|(prices, over)| {
            let more = over.iter().map(|(row, over)| over * copies(&row.demand, room).min(row.pods).max(0) as f64);
            cost(room, prices) + more.sum::<f64>()
        });
        ways.fold(f64::INFINITY, f64::min)
    };
    let menu = view.menu(crate::menus::MenuId::OWN);
    let rates = menu.candidates.iter().filter_map(|candidate| {
        let taken = view.kinds[candidate.kind].footprint.single().filter(|taken| *taken > 0)?;
        Some((candidate.price.dollars() - worth(&view.rooms[candidate.kind])) / taken as f64)
    });
    rates.min_by(f64::total_cmp)
}
