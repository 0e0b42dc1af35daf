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
        let (mut free, mut uncoverable) = (Vec::new(), Vec::new());
        let (mut rows, mut unit) = (Vec::new(), Vec::new());
        let Reach { best, gift } = limits.reach(problem);
        for k in (0..problem.rows.len()).filter(|&k| problem.rows[k].count > 0) {
            if let Some((column, pods_per_machine)) = gift[k] {
                free.push(Free { row: k, column, pods_per_machine });
            } else if best[k] > 0.0 {
                rows.push(k);
                unit.push(best[k]);
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
        for r in 0..limits.resources {
            let demands = |k: &usize| demand(problem, *k, r) > 0.0;
            let rooms = limits.priced.iter().map(|&j| room(problem, j, r) / problem.columns.price(j));
            let scale = rooms.fold(0.0, f64::max);
            if scale > 0.0 && self.rows.iter().any(demands) {
                self.scales.push((r, scale));
            }
        }
        self.resources = self.scales.len();
        for &(r, scale) in &self.scales {
            self.demand.extend(self.rows.iter().zip(&self.unit).map(|(&k, unit)| demand(problem, k, r) * unit / scale));
        }
        let kept = Offers { problem, limits, scaled: self }.undominated();
        let width = self.resources + self.rows.len();
        for (column, start) in kept.columns {
            let (rooms, most) = kept.offers[start..start + width].split_at(self.resources);
            self.columns.push(column);
            self.price.push(problem.columns.price(column));
            self.room.extend(rooms);
            self.most.extend(most);
        }
    }
}

/// What one unit of price buys of each column: its room by resource, then its caps by row.
///
/// It is worked out anew whenever it is looked at: rows times columns of it would be much, and few columns are kept.
struct Offers<'a> {
    problem: &'a Covering,
    limits: &'a Limits,
    scaled: &'a Scaled,
}

/// Columns that are worth keeping, each with where its offer begins.
struct Kept {
    columns: Vec<(usize, usize)>,
    offers: Vec<f64>,
}

impl Offers<'_> {
    /// The offer of a column; false when it carries nothing.
    fn write(&self, column: usize, pods: &mut [f64], offer: &mut [f64]) -> bool {
        let Scaled { rows, unit, scales, .. } = self.scaled;
        let price = self.problem.columns.price(column);
        self.limits.fill(self.problem, column, pods);
        let (rooms, most) = offer.split_at_mut(scales.len());
        for ((most, &k), unit) in most.iter_mut().zip(rows).zip(unit) {
            *most = pods[k] / (price * unit);
        }
        for (i, (own, &(r, scale))) in rooms.iter_mut().zip(scales).enumerate() {
            // Room that even full caps could not use is worth nothing.
            let usable: f64 = self.scaled.demand_of(i).iter().zip(&*most).map(|(d, u)| d * u).sum();
            *own = (room(self.problem, column, r) / (price * scale)).min(usable);
        }
        most.iter().any(|&u| u > 0.0)
    }

    /// The columns for which no other offers at least as much of everything for the same money.
    ///
    /// Machines may be split in the relaxation, so prices need not match: what counts is what one unit of price buys.
    fn undominated(&self) -> Kept {
        let width = self.scaled.scales.len() + self.scaled.rows.len();
        let mut pods = vec![0.0; self.problem.rows.len()];
        let mut offer = vec![0.0; width];
        // Nothing that has less room in all covers what has more; of equals the first is asked first.
        let weight = |column: usize| {
            let part = |(r, scale): &(usize, f64)| room(self.problem, column, *r) / scale;
            self.scaled.scales.iter().map(part).sum::<f64>() / self.problem.columns.price(column)
        };
        let mut weights: Vec<(f64, usize)> =
            self.limits.priced.iter().map(|column| (weight(*column), *column)).collect();
        weights.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let covers = |mine: &[f64], yours: &[f64]| mine.iter().zip(yours).all(|(x, y)| *x >= y * (1.0 - 1e-12));
        let mut kept = Kept { columns: Vec::new(), offers: Vec::new() };
        for (_, column) in weights {
            if self.write(column, &mut pods, &mut offer)
                && !kept.offers.chunks_exact(width).any(|known| covers(known, &offer))
            {
                kept.columns.push((column, kept.offers.len()));
                kept.offers.extend(&offer);
            }
        }
        kept.columns.sort_unstable();
        kept
    }
}

/// How many pods of each row one machine of a column may carry.
struct Limits {
    resources: usize,
    /// Columns that cost something, and those that do not.
    priced: Vec<usize>,
    free: Vec<usize>,
    /// By resource then row how many pods one unit holds; without end where none is needed.
    pods_per_unit: Vec<f64>,
    /// Whether no machine is said to carry more pods of a row than there are.
    few: bool,
}

/// The most that columns do for each row.
struct Reach {
    /// Pods that one unit of price carries.
    best: Vec<f64>,
    /// The first column that carries pods for nothing, and how many.
    gift: Vec<Option<(usize, f64)>>,
}

impl Limits {
    fn new(problem: &Covering) -> Self {
        let resources = problem.rows.iter().map(|row| row.demand.len()).max().unwrap_or(0);
        let mut pods_per_unit = Vec::with_capacity(resources * problem.rows.len());
        for r in 0..resources {
            pods_per_unit.extend((0..problem.rows.len()).map(|k| 1.0 / demand(problem, k, r)));
        }
        let (mut priced, mut free) = (Vec::with_capacity(problem.columns.len()), Vec::new());
        for j in 0..problem.columns.len() {
            let price = problem.columns.price(j);
            if price.is_finite() && price > 0.0 {
                priced.push(j);
            } else if price <= 0.0 {
                free.push(j);
            }
        }
        Self { resources, priced, free, pods_per_unit, few: problem.rows.len() <= ROWS_FEW }
    }

    /// Writes the pods of each row on one machine of a column.
    fn fill(&self, problem: &Covering, column: usize, pods: &mut [f64]) {
        for ((pods, row), cap) in pods.iter_mut().zip(&problem.rows).zip(problem.columns.caps(column)) {
            *pods =
                if self.few { u64::from(cap).min(row.count.saturating_add(row.spare)) as f64 } else { f64::from(cap) };
        }
        for (r, per_unit) in self.pods_per_unit.chunks_exact(pods.len().max(1)).enumerate() {
            let room = room(problem, column, r);
            for (pods, per_unit) in pods.iter_mut().zip(per_unit) {
                let held = room * per_unit;
                // Where nothing is needed and nothing is there this is no number, and no limit.
                *pods = if held < *pods * (1.0 - SAME) { held } else { *pods };
            }
        }
    }

    fn reach(&self, problem: &Covering) -> Reach {
        let count = problem.rows.len();
        let (mut best, mut gift) = (vec![0.0_f64; count], vec![None; count]);
        let mut pods = vec![0.0; count];
        for &column in &self.priced {
            self.fill(problem, column, &mut pods);
            let price = problem.columns.price(column);
            best.iter_mut().zip(&pods).for_each(|(best, pods)| *best = best.max(pods / price));
        }
        for &column in &self.free {
            self.fill(problem, column, &mut pods);
            for (gift, pods) in gift.iter_mut().zip(&pods).filter(|(gift, pods)| gift.is_none() && **pods > 0.0) {
                *gift = Some((column, *pods));
            }
        }
        Reach { best, gift }
    }
}

pub(super) fn demand(problem: &Covering, row: usize, resource: usize) -> f64 {
    problem.rows[row].demand.get(resource).map_or(0.0, |d| d.max(0.0))
}

fn room(problem: &Covering, column: usize, resource: usize) -> f64 {
    problem.columns.room(column).get(resource).map_or(0.0, |a| a.max(0.0))
}
