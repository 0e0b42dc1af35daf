//! What no plan can undercut.
//!
//! The relaxed problem of each pool bounds the price of its orders. Where pods could go elsewhere, to places that are
//! there or past a pool whose limit binds, one relaxed problem over everything is asked instead, and the room of places
//! is paid for in full with what the pods on it would be worth. Where pods are left out, another plan may leave out others
//! of the same priority, be it those that cost most. If that leaves nothing, pods that no place could take are bounded
//! alone. Where pools are preferred to others, that has its price too (`preferred`).

mod preferred;

use std::collections::BTreeMap;

use crate::amounts::{Amounts, copies};
use crate::menus::MenuId;
use crate::places::PlaceView;
use crate::relax::{Columns, Covering, Detail, Relaxed, Row, Size, relax};
use crate::solver::Solver;

/// What a class can be bought from: pools with the part of their types that it can use.
type Menus = Vec<(usize, MenuId)>;

/// Pods by priority.
type Levels = BTreeMap<i32, Level>;

/// Pods of one size that can use the same menus.
#[derive(Clone)]
pub(crate) struct Demanded {
    pub(crate) demand: Amounts,
    /// By pool.
    menus: Menus,
    pods: i64,
    levels: Levels,
    pub(crate) classes: Vec<usize>,
    /// Nothing but size and demands on nodes decides where they go.
    is_plain: bool,
}

/// Pods of one priority.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Those that could be placed at all.
    pods: i64,
    /// Those that the plan places.
    placed: i64,
}

impl Level {
    fn add(&mut self, other: Self) {
        self.pods += other.pods;
        self.placed += other.placed;
    }
}

impl Solver<'_> {
    /// A price below which no plan that places as many pods of each priority by the same rules can be.
    pub(crate) fn bound(&mut self) -> f64 {
        let places_used = self.places.iter().any(|view| !view.pods.is_empty());
        let reserves = self.pools.iter().any(|pool| !pool.reserved.is_empty());
        if !places_used && !reserves && !self.overflowed && self.leftovers.is_empty() && !self.has_choice() {
            return self.bounds.iter().sum();
        }
        self.bound_at_large()
    }

    /// The same without regard to what was learnt while nodes were filled.
    pub(crate) fn bound_at_large(&mut self) -> f64 {
        let places_used = self.places.iter().any(|view| !view.pods.is_empty());
        let mut left = BTreeMap::new();
        for leftover in &self.leftovers {
            *left.entry(leftover.class).or_insert(0) += leftover.pods.len();
        }
        let demanded = self.demanded(&left);
        let levels = levels(&demanded);
        let (bound, relaxed) = self.bound_of(&demanded, &demanded, &levels);
        let bound = bound + self.paid_for_order(&demanded, &relaxed);
        if places_used {
            let mut homeless = demanded.clone();
            homeless.retain(|row| row.classes.iter().all(|class| self.is_homeless(*class)));
            return bound.max(self.bound_of(&homeless, &demanded, &levels).0);
        }
        bound
    }

    /// A price below which these pods cannot be had, on nodes made for whomever, and however places and reservations are
    /// used; and what it rests on.
    fn bound_of(&mut self, demanded: &[Demanded], makers: &[Demanded], levels: &Levels) -> (f64, Relaxed) {
        let covering = self.covering(demanded, makers);
        let relaxed = relax(&covering, Detail::Fine, self.budget());
        self.steps += relaxed.steps;
        let room: f64 = self.places.iter().map(|view| worth_of(&view.before, demanded, &relaxed.duals)).sum();
        let reserved = self.pools.iter().flat_map(|pool| pool.reserved.iter().map(move |one| (pool, one)));
        let reserved: f64 = reserved
            .map(|(pool, one)| f64::from(one.capacity) * worth_of(&pool.rooms[one.kind], demanded, &relaxed.duals))
            .sum();
        let worth = worth_of_placed(demanded, &relaxed.duals, levels);
        ((worth - room - reserved).max(0.0), relaxed)
    }

    /// Whether no place could take a pod of a class, were it empty of this plan's pods.
    fn is_homeless(&mut self, class: usize) -> bool {
        let stances = self.stances(class);
        let (own, vocabulary) = (&self.classes[class], &self.snapshot.vocabulary);
        let takes = |view: &PlaceView<'_>| stances.iter().any(|stance| view.could_take(own, stance, vocabulary));
        !self.places.iter().any(takes)
    }

    /// What pods are worth at least, wherever they go, rules between pods aside.
    pub(crate) fn worth_of_classes(&mut self) -> (Vec<Demanded>, Vec<f64>) {
        let demanded = self.demanded(&BTreeMap::new());
        let covering = self.covering(&demanded, &demanded);
        let relaxed = relax(&covering, Detail::Fine, self.budget());
        self.steps += relaxed.steps;
        (demanded, relaxed.duals)
    }

    /// All pods that could be placed at all; `left` tells how many of each class the plan does not place.
    fn demanded(&mut self, left: &BTreeMap<usize, usize>) -> Vec<Demanded> {
        let mut rows: BTreeMap<(Amounts, Menus), Vec<usize>> = BTreeMap::new();
        for class in 0..self.classes.len() {
            let menus = self.menus_of(class);
            if !menus.is_empty() || !left.contains_key(&class) || !self.is_homeless(class) {
                rows.entry((self.classes[class].demand.clone(), menus)).or_default().push(class);
            }
        }
        let row = |((demand, menus), classes): ((Amounts, Menus), Vec<usize>)| {
            let mut levels = Levels::new();
            for class in &classes {
                let pods = self.classes[*class].pods.len();
                let placed = pods - left.get(class).copied().unwrap_or(0).min(pods);
                let level = levels.entry(self.classes[*class].spec.priority).or_default();
                level.add(Level { pods: pods as i64, placed: placed as i64 });
            }
            let pods = levels.values().map(|level| level.pods).sum();
            let is_plain = classes.iter().all(|class| self.is_plain(*class));
            Demanded { demand, menus, pods, levels, classes, is_plain }
        };
        rows.into_iter().map(row).collect()
    }

    /// Whether pods of some class could be on nodes of more than one pool, or where one or another of their volumes can be.
    fn has_choice(&mut self) -> bool {
        let classes = 0..self.classes.len();
        classes.clone().any(|class| self.classes[class].volumes.len() > 1)
            || self.pools.len() > 1 && classes.into_iter().any(|class| self.menus_of(class).len() > 1)
    }

    /// Where a class may be bought, in the strictest reading in which it can; in any where limits or other pods may make it
    /// give up its wishes, and where its volumes leave a choice. Every pool counts: a pod may use room on a node that was
    /// made for others.
    fn menus_of(&mut self, class: usize) -> Menus {
        let any_reading = self.overflowed
            || self.gave_wishes_up
            || !self.leftovers.is_empty()
            || self.classes[class].volumes.len() > 1;
        let mut found = Menus::new();
        for stance in self.stances(class).iter() {
            if !found.is_empty() && !any_reading {
                break;
            }
            let pools = 0..self.pools.len();
            found.extend(pools.filter_map(|pool| Some((pool, self.menu_without_limits(pool, class, stance)?))));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn covering(&self, demanded: &[Demanded], makers: &[Demanded]) -> Covering {
        let mut kins: Vec<&Menus> = demanded.iter().map(|row| &row.menus).collect();
        kins.sort();
        kins.dedup();
        let mut sold: Vec<(usize, usize, model::Price)> = Vec::new();
        let made = |row: &Demanded| {
            row.menus.iter().copied().filter(|(pool, _)| self.is_native(row, *pool)).collect::<Menus>()
        };
        let mut menus: Menus = makers.iter().flat_map(made).collect();
        menus.sort_unstable();
        menus.dedup();
        for (pool, menu) in &menus {
            let candidates = self.pools[*pool].menu(*menu).candidates.iter();
            sold.extend(candidates.map(|candidate| (*pool, candidate.kind, candidate.price)));
        }
        sold.sort_unstable();
        sold.dedup();
        let mut columns = Columns::with_capacity(sold.len(), self.table.len(), kins.len());
        for (pool, kind, price) in &sold {
            let view = &self.pools[*pool];
            let is_sold = |menus: &&Menus| {
                let own = menus.iter().filter(|(own, _)| own == pool);
                own.into_iter().any(|(_, menu)| view.menu(*menu).price_of(*kind).is_some_and(|own| own <= *price))
            };
            let room = view.rooms[*kind].iter().map(|amount| (*amount).max(0) as f64);
            columns.push(price.dollars(), room, kins.iter().map(is_sold));
        }
        let mut sizes: Vec<&Amounts> = demanded.iter().map(|row| &row.demand).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let row = |row: &Demanded| {
            let placed: i64 = row.levels.values().map(|level| level.placed).sum();
            // A row of which nothing is placed has its worth all the same: another plan may place it.
            let count = placed.max(1);
            Row {
                count: u64::try_from(count).unwrap_or(0),
                spare: u64::try_from(row.pods - count).unwrap_or(0),
                size: sizes.binary_search(&&row.demand).unwrap_or(0),
                kin: kins.binary_search(&&row.menus).unwrap_or(0),
            }
        };
        let rows = demanded.iter().map(row).collect();
        let size = |demand: &&Amounts| Size { demand: demand.iter().map(|one| *one as f64).collect(), most: u32::MAX };
        Covering { sizes: sizes.iter().map(size).collect(), rows, columns }
    }
}

/// Pods by priority of all rows together.
fn levels(demanded: &[Demanded]) -> Levels {
    let mut levels = Levels::new();
    for (priority, level) in demanded.iter().flat_map(|row| &row.levels) {
        levels.entry(*priority).or_default().add(*level);
    }
    levels
}

/// What pods are worth together if of each priority as many are placed as the plan places, be it those that are worth
/// least.
fn worth_of_placed(demanded: &[Demanded], duals: &[f64], levels: &Levels) -> f64 {
    let mut least = 0.0;
    for (priority, all) in levels {
        let own = |(row, dual): (&Demanded, &f64)| Some((*dual, row.levels.get(priority)?.pods));
        let mut pods: Vec<(f64, i64)> = demanded.iter().zip(duals).filter_map(own).collect();
        pods.sort_by(|left, right| left.0.total_cmp(&right.0));
        // Those that are not asked about may be among the placed ones.
        let others = all.pods - pods.iter().map(|(_, pods)| pods).sum::<i64>();
        let mut needed = all.placed - others;
        for (dual, pods) in pods {
            let taken = needed.min(pods).max(0);
            least += dual * taken as f64;
            needed -= taken;
        }
    }
    least
}

/// No choice of pods for this room is worth more.
pub(crate) fn worth_of(room: &[i64], demanded: &[Demanded], duals: &[f64]) -> f64 {
    let fitting: Vec<(&Demanded, f64, i64)> = demanded
        .iter()
        .zip(duals)
        .map(|(row, worth)| (row, *worth, copies(&row.demand, room).min(row.pods)))
        .filter(|(_, worth, copies)| *worth > 0.0 && *copies > 0)
        .collect();
    let mut least: f64 = fitting.iter().map(|(_, worth, copies)| worth * *copies as f64).sum();
    for (resource, room) in room.iter().enumerate() {
        let rate = |(row, worth, _): &(&Demanded, f64, i64)| match row.demand[resource] {
            amount if amount > 0 => *worth / amount as f64,
            _ => f64::INFINITY,
        };
        let best = fitting.iter().map(rate).fold(0.0, f64::max);
        if best.is_finite() {
            least = least.min(best * (*room).max(0) as f64);
        }
    }
    least
}
