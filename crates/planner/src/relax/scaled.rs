//! The covering problem in uniform units.
//!
//! Every column is rescaled to price one and every row to "one unit of price buys at most one", so demands, rooms,
//! caps and duals all lie near the interval from zero to one whatever the units of the caller. Columns that can
//! never pay off in the relaxation are left out.

use super::families::Families;
use super::limits::Limits;
use super::{Columns, Covering, demand, room};

/// Needs are raised by up to this fraction, each row differently: rows that run out together would let the simplex
/// method turn on the spot for long. Duals found so are off the best by no more than this.
const UNEVEN: f64 = 1e-9;

/// Two quantities closer than this, relatively, are taken for the same.
const SAME: f64 = 1e-12;

/// A row served for nothing by a column of price zero.
pub(super) struct Free {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) pods_per_machine: f64,
}

/// What one unit of price buys on a column.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    /// Room by resource.
    pub(super) room: &'a [f64],
    /// Caps by row.
    pub(super) most: &'a [f64],
}

/// The problem without free and uncoverable rows, without dominated columns, in uniform units.
///
/// Matrices are flat: `demand` by resource then row, `room` by column then resource. Caps by column and row are much,
/// and few columns are looked at more than once: see [`Scaled::write_most`].
pub(super) struct Scaled<'a> {
    problem: &'a Covering,
    /// By row of the problem, and how many there are: rows of one group have the same caps where both may run.
    group_of: Vec<usize>,
    groups: usize,
    pub(super) rows: Vec<usize>,
    pub(super) columns: Vec<usize>,
    pub(super) resources: usize,
    /// The caller's resource behind each of ours, and how much of it is one of our units.
    scales: Vec<(usize, f64)>,
    demand: Vec<f64>,
    room: Vec<f64>,
    /// By column then group: pods that one unit of price carries.
    pods: Vec<f64>,
    /// Price units each row would take alone, made uneven by a trifle.
    pub(super) need: Vec<f64>,
    /// Pods of each row that one unit of price carries at most.
    pub(super) unit: Vec<f64>,
    /// Price of one machine of each kept column.
    pub(super) price: Vec<f64>,
    pub(super) free: Vec<Free>,
    pub(super) uncoverable: Vec<usize>,
}

impl<'a> Scaled<'a> {
    pub(super) fn new(problem: &'a Covering) -> Self {
        let limits = Limits::new(problem);
        let priced = uncovered(problem, priced(&problem.columns));
        let mut pods = Vec::with_capacity(priced.len() * limits.groups());
        for column in &priced {
            let start = pods.len();
            limits.write(problem.columns.room(*column), &mut pods);
            pods[start..].iter_mut().for_each(|pods| *pods /= problem.columns.price(*column));
        }
        let gifts = gifts(problem, &limits);
        let mut scaled = Self::of(problem, limits.into_groups(), &priced, pods, &gifts);
        scaled.choose_scales(&priced);
        scaled.measure_rows();
        let rooms = scaled.usable_rooms(&priced);
        let undominated = scaled.undominated(&priced, &rooms);
        scaled.keep(&priced, &rooms, &undominated);
        scaled
    }

    /// A problem with one row for each family of another one's rows, and the columns that are kept of it.
    ///
    /// Caps are between those of a family's largest and its smallest pods: a guide, on which no bound rests.
    pub(super) fn merged(problem: &'a Covering, families: &Families, fine: &Scaled<'_>) -> Self {
        let mut pods = Vec::with_capacity(fine.columns.len() * families.len());
        for (column, price) in fine.price.iter().enumerate() {
            let known = fine.pods_of(column);
            pods.extend(families.iter().zip(&problem.sizes).map(|(family, size)| {
                let caps = family.iter().map(|row| known[fine.group_of[*row]]);
                let ends = |(least, most): (f64, f64), cap: f64| (least.min(cap), most.max(cap));
                let (least, most) = caps.fold((f64::INFINITY, 0.0), ends);
                let middle = ((least + most) / 2.0 * price + SAME).floor();
                let held = |r: usize| room(problem, column, r) / size.demand(r);
                (0..problem.resources()).map(held).fold(middle, f64::min) / price
            }));
        }
        let priced: Vec<usize> = (0..fine.columns.len()).collect();
        let mut scaled = Self::of(problem, (0..families.len()).collect(), &priced, pods, &vec![None; families.len()]);
        // In the units of the other, so that prices mean the same there.
        scaled.scales = fine.scales.clone();
        scaled.measure_rows();
        let rooms = scaled.usable_rooms(&priced);
        scaled.keep(&priced, &rooms, &priced);
        scaled
    }

    /// The problem with some of its columns, of which these pods are known, by column then group.
    fn of(
        problem: &'a Covering,
        group_of: Vec<usize>,
        priced: &[usize],
        pods: Vec<f64>,
        gifts: &[Option<Gift>],
    ) -> Self {
        let mut scaled = Self {
            problem,
            groups: pods.len() / priced.len().max(1),
            group_of,
            rows: Vec::new(),
            columns: Vec::new(),
            resources: 0,
            scales: Vec::new(),
            demand: Vec::new(),
            room: Vec::new(),
            pods,
            need: Vec::new(),
            unit: Vec::new(),
            price: Vec::new(),
            free: Vec::new(),
            uncoverable: Vec::new(),
        };
        scaled.sort_rows(priced, gifts);
        scaled
    }

    /// Scaled duals in the units of the caller, by row of the problem.
    pub(super) fn plain_duals(&self, duals: &[f64]) -> Vec<f64> {
        let mut plain = vec![0.0; self.problem.rows.len()];
        for ((&k, unit), dual) in self.rows.iter().zip(&self.unit).zip(duals) {
            plain[k] = dual / unit;
        }
        plain
    }

    /// Scaled resource prices in the units of the caller, by resource of the problem.
    pub(super) fn plain_prices(&self, prices: &[f64]) -> Vec<f64> {
        let mut plain = vec![0.0; self.problem.resources()];
        for ((resource, scale), price) in self.scales.iter().zip(prices) {
            plain[*resource] = price / scale;
        }
        plain
    }

    /// Room of one column, by resource.
    pub(super) fn room_of(&self, column: usize) -> &[f64] {
        &self.room[column * self.resources..(column + 1) * self.resources]
    }

    /// Demand for one resource, by row.
    pub(super) fn demand_of(&self, resource: usize) -> &[f64] {
        &self.demand[resource * self.rows.len()..(resource + 1) * self.rows.len()]
    }

    /// What one row needs of each resource.
    pub(super) fn demands_of(&self, row: usize) -> impl Iterator<Item = f64> {
        self.demand.iter().skip(row).step_by(self.rows.len().max(1)).copied()
    }

    pub(super) fn kin(&self, row: usize) -> usize {
        self.problem.rows[self.rows[row]].kin
    }

    pub(super) fn size(&self, row: usize) -> usize {
        self.problem.rows[self.rows[row]].size
    }

    /// By kin, the kept columns where its rows may run.
    pub(super) fn sellers(&self) -> Vec<Vec<usize>> {
        sellers(self.problem, &self.columns)
    }

    /// The cap of a row on a column where it may run.
    pub(super) fn most_on(&self, column: usize, row: usize) -> f64 {
        self.pods_of(column)[self.group_of[self.rows[row]]] / self.unit[row]
    }

    /// Writes the caps of a column, by row.
    pub(super) fn write_most(&self, column: usize, most: &mut [f64]) {
        let pods = self.pods_of(column);
        let (own, kins) = (self.columns[column], &self.problem.columns);
        for ((most, &k), unit) in most.iter_mut().zip(&self.rows).zip(&self.unit) {
            let sold = kins.is_sold(own, self.problem.rows[k].kin);
            *most = if sold { pods[self.group_of[k]] / unit } else { 0.0 };
        }
    }

    /// Pods that one unit of price carries on a column, by group.
    fn pods_of(&self, column: usize) -> &[f64] {
        &self.pods[column * self.groups..(column + 1) * self.groups]
    }

    /// Tells rows that cost something from those that cost nothing and those that nothing carries.
    fn sort_rows(&mut self, priced: &[usize], gifts: &[Option<Gift>]) {
        let problem = self.problem;
        let sellers = sellers(problem, priced);
        for k in (0..problem.rows.len()).filter(|&k| problem.rows[k].count > 0) {
            let (group, sellers) = (self.group_of[k], &sellers[problem.rows[k].kin]);
            let best = sellers.iter().map(|position| self.pods[position * self.groups + group]).fold(0.0, f64::max);
            if let Some((column, pods_per_machine)) = gifts[k] {
                self.free.push(Free { row: k, column, pods_per_machine });
            } else if best > 0.0 {
                self.rows.push(k);
                self.unit.push(best);
            } else {
                self.uncoverable.push(k);
            }
        }
        let need = |(i, (&k, unit)): (usize, (&usize, &f64))| {
            let spread = (i as f64 * 0.618_033_988_749_894_9).fract();
            problem.rows[k].count as f64 / unit * (1.0 + UNEVEN * (0.5 + 0.5 * spread))
        };
        self.need = self.rows.iter().zip(&self.unit).enumerate().map(need).collect();
    }

    /// Finds units for resources.
    fn choose_scales(&mut self, priced: &[usize]) {
        let problem = self.problem;
        for r in 0..problem.resources() {
            let rooms = priced.iter().map(|&j| room(problem, j, r) / problem.columns.price(j));
            let scale = rooms.fold(0.0, f64::max);
            if scale > 0.0 && self.rows.iter().any(|k| demand(problem, *k, r) > 0.0) {
                self.scales.push((r, scale));
            }
        }
    }

    /// Writes what rows need, in the units of the resources.
    fn measure_rows(&mut self) {
        let problem = self.problem;
        self.resources = self.scales.len();
        for &(r, scale) in &self.scales {
            self.demand.extend(self.rows.iter().zip(&self.unit).map(|(&k, unit)| demand(problem, k, r) * unit / scale));
        }
    }

    /// Of some columns, by position, those for which no other offers at least as much of everything for the same money.
    ///
    /// Machines may be split in the relaxation, so prices need not match: what counts is what one unit of price buys.
    fn undominated(&self, priced: &[usize], rooms: &[f64]) -> Vec<usize> {
        let room_of = |position: usize| &rooms[position * self.resources..(position + 1) * self.resources];
        // Nothing that has less room in all covers what has more; of equals the first is asked first.
        let weight = |column: usize| {
            let part = |(r, scale): &(usize, f64)| room(self.problem, column, *r) / scale;
            self.scales.iter().map(part).sum::<f64>() / self.problem.columns.price(column)
        };
        let mut weights: Vec<(f64, usize)> =
            priced.iter().enumerate().map(|(position, column)| (weight(*column), position)).collect();
        weights.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let holds = |mine: &[f64], yours: &[f64]| mine.iter().zip(yours).all(|(x, y)| *x >= y * (1.0 - SAME));
        let mut kept: Vec<usize> = Vec::new();
        let mut last = None;
        for (_, position) in weights {
            let covers = |other: &usize| {
                self.problem.columns.is_sold_wherever(priced[*other], priced[position])
                    && holds(room_of(*other), room_of(position))
                    && holds(self.pods_of(*other), self.pods_of(position))
            };
            if self.pods_of(position).iter().all(|pods| *pods <= 0.0) {
                continue;
            }
            last = last.filter(covers).or_else(|| kept.iter().copied().find(covers));
            if last.is_none() {
                kept.push(position);
            }
        }
        kept.sort_unstable();
        kept
    }

    /// Writes down some of the columns, by position, and forgets the others.
    fn keep(&mut self, priced: &[usize], rooms: &[f64], kept: &[usize]) {
        let mut pods = Vec::with_capacity(kept.len() * self.groups);
        for &position in kept {
            pods.extend(self.pods_of(position));
            self.room.extend(&rooms[position * self.resources..(position + 1) * self.resources]);
            self.columns.push(priced[position]);
            self.price.push(self.problem.columns.price(priced[position]));
        }
        self.pods = pods;
    }

    /// The room of some columns in our units, one after the other: what even full caps could not use is worth nothing.
    fn usable_rooms(&self, priced: &[usize]) -> Vec<f64> {
        let kins = self.rows.iter().map(|row| self.problem.rows[*row].kin + 1).max().unwrap_or(0);
        let mut by_kin: Vec<Vec<usize>> = vec![Vec::new(); kins];
        (0..self.rows.len()).for_each(|row| by_kin[self.kin(row)].push(row));
        let mut rooms = Vec::with_capacity(priced.len() * self.resources);
        for (position, column) in priced.iter().enumerate() {
            let pods = self.pods_of(position);
            for (i, &(r, scale)) in self.scales.iter().enumerate() {
                let all = room(self.problem, *column, r) / (self.problem.columns.price(*column) * scale);
                let sold = by_kin.iter().enumerate().filter(|(kin, _)| self.problem.columns.is_sold(*column, *kin));
                let mut usable = 0.0;
                for row in sold.flat_map(|(_, rows)| rows) {
                    usable += self.demand_of(i)[*row] * pods[self.group_of[self.rows[*row]]] / self.unit[*row];
                    if usable >= all {
                        break;
                    }
                }
                rooms.push(usable.min(all));
            }
        }
        rooms
    }
}

/// By kin of a problem's rows, those of some columns where they may run, by position.
fn sellers(problem: &Covering, columns: &[usize]) -> Vec<Vec<usize>> {
    let kins = problem.rows.iter().map(|row| row.kin + 1).max().unwrap_or(0);
    let is_sold = |position: &usize, kin: usize| problem.columns.is_sold(columns[*position], kin);
    (0..kins).map(|kin| (0..columns.len()).filter(|position| is_sold(position, kin)).collect()).collect()
}

/// A column that carries pods of a row for nothing, and how many of them.
type Gift = (usize, f64);

/// The first gift for each row.
fn gifts(problem: &Covering, limits: &Limits) -> Vec<Option<Gift>> {
    let mut gifts = vec![None; problem.rows.len()];
    let mut pods = Vec::new();
    for column in (0..problem.columns.len()).filter(|column| problem.columns.price(*column) <= 0.0) {
        pods.clear();
        limits.write(problem.columns.room(column), &mut pods);
        for (k, gift) in gifts.iter_mut().enumerate().filter(|(_, gift)| gift.is_none()) {
            let held = pods[limits.group(k)];
            if held > 0.0 && problem.columns.is_sold(column, problem.rows[k].kin) {
                *gift = Some((column, held));
            }
        }
    }
    gifts
}

/// Columns that cost something.
fn priced(columns: &Columns) -> Vec<usize> {
    let costs = |column: &usize| columns.price(*column).is_finite() && columns.price(*column) > 0.0;
    (0..columns.len()).filter(costs).collect()
}

/// Those of some columns for which no other is sold to all the same rows, costs no more and has no less room of anything
/// that is asked for. Most columns of a large market go here, before anybody reckons what fits on them.
fn uncovered(problem: &Covering, columns: Vec<usize>) -> Vec<usize> {
    let asked = |r: &usize| (0..problem.rows.len()).any(|k| demand(problem, k, *r) > 0.0);
    let asked: Vec<usize> = (0..problem.resources()).filter(asked).collect();
    let mut order = columns;
    let size = |column: usize| asked.iter().map(move |r| room(problem, column, *r));
    let price = |column: usize| problem.columns.price(column);
    // They come in runs by price, which a stable sort makes use of.
    order.sort_by(|a, b| {
        let roomier = || size(*b).zip(size(*a)).map(|(b, a)| b.total_cmp(&a)).find(|order| order.is_ne());
        let sold = || problem.columns.kins_of(*b).cmp(problem.columns.kins_of(*a));
        price(*a).total_cmp(&price(*b)).then_with(|| roomier().unwrap_or_else(sold)).then(a.cmp(b))
    });
    let mut kept: Vec<usize> = Vec::new();
    // Room of those kept, one after the other.
    let mut rooms: Vec<f64> = Vec::new();
    let mut own: Vec<f64> = Vec::new();
    let mut last = None;
    for column in order {
        own.clear();
        own.extend(size(column));
        let covers = |(other, room): (&usize, &[f64])| {
            room.iter().zip(&own).all(|(room, own)| room >= own) && problem.columns.is_sold_wherever(*other, column)
        };
        // What covered the one before often covers this one too.
        let at = |position: usize| (&kept[position], &rooms[position * asked.len()..(position + 1) * asked.len()]);
        last = last.filter(|last| covers(at(*last))).or_else(|| {
            let known = rooms.chunks_exact(asked.len().max(1));
            kept.iter().zip(known).position(covers)
        });
        if last.is_none() {
            kept.push(column);
            rooms.extend(&own);
        }
    }
    kept.sort_unstable();
    kept
}
