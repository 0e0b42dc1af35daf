//! The covering problem in uniform units.
//!
//! Every column is rescaled to price one and every row to "one unit of price buys at most one", so demands, rooms,
//! caps and duals all lie near the interval from zero to one whatever the units of the caller. Columns that can
//! never pay off in the relaxation are left out.

use super::Covering;

/// Two quantities closer than this, relatively, are taken for the same number written in different units.
const SAME: f64 = 1e-9;

/// Needs are raised by up to this fraction, each row differently: rows that run out together would let the simplex
/// method turn on the spot for long. Duals found so are off the best by no more than this.
const UNEVEN: f64 = 1e-9;

/// Up to this many rows, caps are lowered to the number of pods. It sharpens the bound while machines are large for
/// the pods there are, which many rows together rarely let happen; with many rows it would make patterns long and slow.
const ROWS_FEW: usize = 24;

/// A row served for nothing by a column of price zero.
pub(super) struct Free {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) pods_per_machine: f64,
}

/// The problem without free and uncoverable rows, without dominated columns, in uniform units.
///
/// Matrices are flat: `demand` by resource then row, `room` by column then resource, `most` by column then row.
pub(super) struct Scaled {
    pub(super) rows: Vec<usize>,
    pub(super) columns: Vec<usize>,
    pub(super) resources: usize,
    /// The caller's resource behind each of ours, and how much of it is one of our units.
    pub(super) scales: Vec<(usize, f64)>,
    pub(super) demand: Vec<f64>,
    pub(super) room: Vec<f64>,
    pub(super) most: Vec<f64>,
    /// Price units each row would take alone, made uneven by a trifle.
    pub(super) need: Vec<f64>,
    /// Pods of each row that one unit of price carries at most.
    pub(super) unit: Vec<f64>,
    /// Price of one machine of each kept column.
    pub(super) price: Vec<f64>,
    pub(super) free: Vec<Free>,
    pub(super) uncoverable: Vec<usize>,
}

impl Scaled {
    pub(super) fn new(problem: &Covering) -> Self {
        let limits = Limits::new(problem);
        let count = problem.rows.len();
        let mut free = Vec::new();
        let mut uncoverable = Vec::new();
        let (mut rows, mut unit) = (Vec::new(), Vec::new());
        for k in (0..problem.rows.len()).filter(|&k| problem.rows[k].count > 0) {
            let gift = limits.free.iter().copied().find(|&j| limits.pods[j * count + k] > 0.0);
            let best = limits.priced.iter().map(|&j| limits.pods[j * count + k] / problem.columns[j].price);
            let best = best.fold(0.0, f64::max);
            if let Some(column) = gift {
                free.push(Free { row: k, column, pods_per_machine: limits.pods[column * count + k] });
            } else if best > 0.0 {
                rows.push(k);
                unit.push(best);
            } else {
                uncoverable.push(k);
            }
        }
        let need = |(i, (&k, unit)): (usize, (&usize, &f64))| {
            let spread = (i as f64 * 0.618_033_988_749_894_9).fract();
            problem.rows[k].count as f64 / unit * (1.0 + UNEVEN * (0.5 + 0.5 * spread))
        };
        let need = rows.iter().zip(&unit).enumerate().map(need).collect();
        let mut scaled = Self {
            rows,
            columns: Vec::new(),
            resources: 0,
            scales: Vec::new(),
            demand: Vec::new(),
            room: Vec::new(),
            most: Vec::new(),
            need,
            unit,
            price: Vec::new(),
            free,
            uncoverable,
        };
        scaled.fill(problem, &limits);
        scaled
    }

    /// Scaled duals in the units of the caller, by row of the problem.
    pub(super) fn plain_duals(&self, problem: &Covering, duals: &[f64]) -> Vec<f64> {
        let mut plain = vec![0.0; problem.rows.len()];
        for ((&k, unit), dual) in self.rows.iter().zip(&self.unit).zip(duals) {
            plain[k] = dual / unit;
        }
        plain
    }

    /// Scaled resource prices in the units of the caller, by resource of the problem.
    pub(super) fn plain_prices(&self, problem: &Covering, prices: &[f64]) -> Vec<f64> {
        let resources = problem.rows.iter().map(|row| row.demand.len()).max().unwrap_or(0);
        let mut plain = vec![0.0; resources];
        for ((resource, scale), price) in self.scales.iter().zip(prices) {
            plain[*resource] = price / scale;
        }
        plain
    }

    /// Caps of one column, by row.
    pub(super) fn most_of(&self, column: usize) -> &[f64] {
        &self.most[column * self.rows.len()..(column + 1) * self.rows.len()]
    }

    /// Room of one column, by resource.
    pub(super) fn room_of(&self, column: usize) -> &[f64] {
        &self.room[column * self.resources..(column + 1) * self.resources]
    }

    /// Demand for one resource, by row.
    pub(super) fn demand_of(&self, resource: usize) -> &[f64] {
        &self.demand[resource * self.rows.len()..(resource + 1) * self.rows.len()]
    }

    /// Writes the matrices of all columns worth keeping.
    fn fill(&mut self, problem: &Covering, limits: &Limits) {
        let (m, count) = (self.rows.len(), problem.rows.len());
        let mut scales = Vec::new();
        for r in 0..limits.resources {
            let demands = |k: &usize| demand(problem, *k, r) > 0.0;
            let rooms = limits.priced.iter().map(|&j| room(problem, j, r) / problem.columns[j].price);
            let scale = rooms.fold(0.0, f64::max);
            if scale > 0.0 && self.rows.iter().any(demands) {
                scales.push((r, scale));
            }
        }
        self.resources = scales.len();
        for &(r, scale) in &scales {
            self.demand.extend(self.rows.iter().zip(&self.unit).map(|(&k, unit)| demand(problem, k, r) * unit / scale));
        }
        let mut drafts = Vec::with_capacity(limits.priced.len());
        for &j in &limits.priced {
            let price = problem.columns[j].price;
            let pods = &limits.pods[j * count..(j + 1) * count];
            let most: Vec<f64> = (0..m).map(|i| pods[self.rows[i]] / (price * self.unit[i])).collect();
            let mut rooms = Vec::with_capacity(scales.len());
            for (i, &(r, scale)) in scales.iter().enumerate() {
                // Room that even full caps could not use is worth nothing.
                let usable: f64 = self.demand_of(i).iter().zip(&most).map(|(d, u)| d * u).sum();
                rooms.push((room(problem, j, r) / (price * scale)).min(usable));
            }
            let weight = most.iter().sum::<f64>() + rooms.iter().sum::<f64>();
            if most.iter().any(|&u| u > 0.0) {
                drafts.push(Draft { column: j, price, rooms, most, weight });
            }
        }
        self.scales = scales;
        for draft in undominated(drafts) {
            self.columns.push(draft.column);
            self.price.push(draft.price);
            self.room.extend(draft.rooms);
            self.most.extend(draft.most);
        }
    }
}

/// A column in uniform units, before the dominated ones are dropped.
struct Draft {
    column: usize,
    price: f64,
    rooms: Vec<f64>,
    most: Vec<f64>,
    weight: f64,
}

/// Keeps the columns for which no other offers at least as much of everything for the same money.
///
/// Machines may be split in the relaxation, so prices need not match: what counts is what one unit of price buys.
fn undominated(mut drafts: Vec<Draft>) -> Vec<Draft> {
    let covers = |mine: &[f64], yours: &[f64]| mine.iter().zip(yours).all(|(x, y)| *x >= y * (1.0 - 1e-12));
    drafts.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.column.cmp(&b.column)));
    let mut kept: Vec<Draft> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        if !kept.iter().any(|k| covers(&k.rooms, &draft.rooms) && covers(&k.most, &draft.most)) {
            kept.push(draft);
        }
    }
    kept.sort_by_key(|draft| draft.column);
    kept
}

/// How many pods of each row one machine of each column may carry, split by whether the column costs anything.
struct Limits {
    resources: usize,
    priced: Vec<usize>,
    free: Vec<usize>,
    pods: Vec<f64>,
}

impl Limits {
    fn new(problem: &Covering) -> Self {
        let resources = problem.rows.iter().map(|row| row.demand.len()).max().unwrap_or(0);
        let mut inverse: Vec<Vec<(usize, f64)>> = vec![Vec::new(); resources];
        for k in 0..problem.rows.len() {
            for (r, list) in inverse.iter_mut().enumerate() {
                let demand = demand(problem, k, r);
                if demand > 0.0 {
                    list.push((k, 1.0 / demand));
                }
            }
        }
        // No machine carries more pods of a row than there are.
        let few = problem.rows.len() <= ROWS_FEW;
        let (mut priced, mut free, mut pods) = (Vec::new(), Vec::new(), Vec::new());
        for (j, column) in problem.columns.iter().enumerate() {
            if column.price.is_finite() && column.price > 0.0 {
                priced.push(j);
            } else if column.price <= 0.0 {
                free.push(j);
            }
            let start = pods.len();
            pods.extend(problem.rows.iter().enumerate().map(|(k, row)| {
                let cap = column.caps.get(k).copied().unwrap_or(0);
                if few { u64::from(cap).min(row.count) as f64 } else { f64::from(cap) }
            }));
            for (r, list) in inverse.iter().enumerate() {
                let room = room(problem, j, r);
                for &(k, inverse) in list {
                    let most: &mut f64 = &mut pods[start + k];
                    if room * inverse < *most * (1.0 - SAME) {
                        *most = room * inverse;
                    }
                }
            }
        }
        Self { resources, priced, free, pods }
    }
}

pub(super) fn demand(problem: &Covering, row: usize, resource: usize) -> f64 {
    problem.rows[row].demand.get(resource).map_or(0.0, |d| d.max(0.0))
}

fn room(problem: &Covering, column: usize, resource: usize) -> f64 {
    problem.columns[column].room.get(resource).map_or(0.0, |a| a.max(0.0))
}
