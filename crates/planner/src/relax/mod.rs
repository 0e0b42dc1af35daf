//! A lower bound on what any set of machines that carries given pods must cost.
//!
//! Groups of equal pods are rows, kinds of machines are columns. The relaxation lets machines and pods be split:
//!
//! ```text
//! min  sum_j price_j x_j
//! s.t. sum_j y_kj = count_k                  every pod of row k is placed
//!      sum_k demand_kr y_kj <= room_jr x_j   capacity of column j in resource r
//!      y_kj <= cap_kj x_j                    at most cap_kj pods of row k on one machine of column j
//!      x, y >= 0
//! ```
//!
//! Every real placement satisfies these constraints, so it costs at least the optimum. It is found by column
//! generation: a small master problem mixes known patterns (what one machine carries), and one knapsack per column
//! looks for better patterns under the master's duals. The bound never rests on the search having gone well: it is
//! derived from the duals alone, by an upper bound on what each column could carry under them ([`certify`]).
//!
//! The same input gives the same result on every machine: plain arithmetic in a fixed order, bounded by counted
//! steps.

mod families;
mod knapsack;
mod master;
mod scaled;
#[cfg(test)]
mod tests;

use crate::interrupt::{Budget, Interrupt};
pub(crate) use families::Families;
use families::{families, merged};
use knapsack::{Knapsack, Warm, ceiling};
use master::{Master, Pattern};
use scaled::Scaled;

/// So many rows are told apart exactly; the work grows with their square and more.
const ROWS_MAX: usize = 64;
/// Bounds are lowered by this fraction, far more than rounding can add to them.
const MARGIN: f64 = 1e-9;
/// Columns worth less than this above their price bring no new pattern.
const WORTH_MIN: f64 = 1e-10;
/// The bound counts as the optimum once it is this close to the price of the mix found.
const GAP_MAX: f64 = 2e-10;

/// How far the duals that columns are looked at under are drawn from the master's towards the best proven ones.
///
/// The master's duals jump about while patterns are few; this needs several times fewer rounds when rows are many.
const SMOOTHING: f64 = 0.8;

/// Resources are few, and so are the exchanges it takes to price them.
const MELTING_STEPS_MAX: u64 = 1_000;

/// The resource prices of so many columns are told.
const PRICES_MAX: usize = 3;

/// A column that carries this much per unit of price may soon pay off.
const PROMISING: f64 = 0.98;

/// Patterns added in one round: this and one per eight rows. More make the master slow and help it little.
const FOUND_BASE: u32 = 20;

/// A group of equal pods.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Row {
    /// How many there are; a row without pods is ignored.
    pub(crate) count: u64,
    /// How many more there could be in another placement that the bound is to hold for.
    pub(crate) spare: u64,
    /// What one pod needs of each resource, in the units of the columns' room.
    pub(crate) demand: Vec<f64>,
    /// Rows of one kin differ in size only: where one may run, others that fit may too.
    pub(crate) kin: usize,
}

/// Kinds of machines, one after the other.
pub(crate) struct Columns {
    resources: usize,
    rows: usize,
    prices: Vec<f64>,
    rooms: Vec<f64>,
    /// Rows times columns are many, and caps are small: see [`Self::cap`].
    caps: Vec<u16>,
}

impl Columns {
    /// Room for some columns, each with so many resources, and caps for so many rows.
    pub(crate) fn with_capacity(columns: usize, resources: usize, rows: usize) -> Self {
        Self {
            resources,
            rows,
            prices: Vec::with_capacity(columns),
            rooms: Vec::with_capacity(columns * resources),
            caps: Vec::with_capacity(columns * rows),
        }
    }

    /// Adds a column: the price of one machine (without one, not a finite number, it is ignored), its room for pods
    /// in each resource (less than nothing counts as nothing), and the most pods of each row on one machine (zero
    /// when the row may not run there).
    pub(crate) fn push(
        &mut self,
        price: f64,
        room: impl IntoIterator<Item = f64>,
        caps: impl IntoIterator<Item = u32>,
    ) {
        self.prices.push(price);
        self.rooms.extend(room);
        self.rooms.resize(self.prices.len() * self.resources, 0.0);
        self.caps.extend(caps.into_iter().map(|cap| u16::try_from(cap).unwrap_or(u16::MAX)));
        self.caps.resize(self.prices.len() * self.rows, 0);
    }

    fn len(&self) -> usize {
        self.prices.len()
    }

    fn price(&self, column: usize) -> f64 {
        self.prices[column]
    }

    fn room(&self, column: usize) -> &[f64] {
        &self.rooms[column * self.resources..(column + 1) * self.resources]
    }

    /// The most pods of each row on one machine of a column.
    fn caps(&self, column: usize) -> impl Iterator<Item = u32> {
        self.caps[column * self.rows..(column + 1) * self.rows].iter().map(|cap| Self::cap(*cap))
    }

    /// A cap that is too large to be told is none.
    fn cap(told: u16) -> u32 {
        if told == u16::MAX { u32::MAX } else { u32::from(told) }
    }
}

/// The covering problem. All demands and rooms must be finite numbers.
pub(crate) struct Covering {
    pub(crate) rows: Vec<Row>,
    pub(crate) columns: Columns,
}

/// A number of equally filled machines in the optimal mix. A column may have several shares.
pub(crate) struct Share {
    /// Index into [`Covering::columns`].
    pub(crate) column: usize,
    /// How many machines, usually not whole.
    pub(crate) machines: f64,
    /// Family and pods of that family on one machine, usually not whole, by family.
    pub(crate) pods: Vec<(usize, f64)>,
}

/// What [`relax`] found.
pub(crate) struct Relaxed {
    /// No placement of all coverable rows is cheaper.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests ask"))]
    pub(crate) bound: f64,
    /// Worth of one pod of each row; the bound is their sum over all pods. Zero for uncoverable rows.
    pub(crate) duals: Vec<f64>,
    /// Which rows were taken together; one by one unless they are many.
    pub(crate) families: Families,
    /// The cheapest mix found; together it carries at least all coverable pods.
    pub(crate) shares: Vec<Share>,
    /// What resources cost on the columns that most is spent on, by resource.
    pub(crate) prices: Vec<Vec<f64>>,
    /// Steps used.
    pub(crate) steps: u64,
    /// Rows no column may carry, which the bound leaves out.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests ask"))]
    pub(crate) uncoverable: Vec<usize>,
    /// Whether the bound is the optimum of the relaxation, up to rounding.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests ask"))]
    pub(crate) complete: bool,
}

/// Solves the relaxation.
///
/// A step is one column looked at or one pivot of a simplex method; a look costs about rows times tight resources,
/// a pivot of the master rows squared. When the budget is exhausted the best bound so far is returned, which holds
/// all the same. When rows are few, caps above the number of pods that a row may have are lowered to it, which makes the bound
/// better than that of the plain relaxation if machines are large for the pods there are.
///
/// Rows beyond [`ROWS_MAX`] are mixed by families of like ones. The bound is then proven for each row as it is, from
/// the prices that the mix puts on resources; it may be less than the best one by a trifle.
pub(crate) fn relax(problem: &Covering, budget: Budget<'_>) -> Relaxed {
    if problem.rows.len() > ROWS_MAX { relax_families(problem, budget) } else { relax_exactly(problem, budget) }
}

fn relax_exactly(problem: &Covering, budget: Budget<'_>) -> Relaxed {
    let scaled = Scaled::new(problem);
    let mut search = Search::new(&scaled, budget);
    search.run();
    let Search { master, best, steps, complete, warm, .. } = search;
    let duals = proven(problem, &scaled, &best);
    Relaxed {
        bound: worth(problem, &duals),
        duals,
        families: (0..problem.rows.len()).map(|row| vec![row]).collect(),
        shares: shares(problem, &scaled, &master),
        prices: prices(problem, &scaled, &master, &warm),
        steps: steps.used,
        uncoverable: scaled.uncoverable,
        complete,
    }
}

fn relax_families(problem: &Covering, budget: Budget<'_>) -> Relaxed {
    let families = families(problem, ROWS_MAX);
    let coarse = merged(problem, &families);
    let mixed = Scaled::new(&coarse);
    let mut search = Search::new(&mixed, budget);
    search.run();
    let scaled = Scaled::new(problem);
    let prices = prices(&coarse, &mixed, &search.master, &search.warm);
    let mut warm = vec![Warm::default(); problem.columns.len()];
    for (column, known) in mixed.columns.iter().zip(search.warm) {
        warm[*column] = known.without_basis();
    }
    let mut warm: Vec<Warm> = scaled.columns.iter().map(|column| std::mem::take(&mut warm[*column])).collect();
    let mut best = Certificate::obvious(&scaled);
    let explained = explained(&scaled, &warm);
    best.improve(prove(&scaled, &explained, &mut warm, &mut search.steps));
    let duals = proven(problem, &scaled, &best);
    Relaxed {
        bound: worth(problem, &duals),
        duals,
        shares: shares(&coarse, &mixed, &search.master),
        families,
        prices,
        steps: search.steps.used,
        uncoverable: scaled.uncoverable,
        complete: false,
    }
}

/// What each row is worth at the resource prices of the column where it is worth least.
fn explained(problem: &Scaled, warm: &[Warm]) -> Vec<f64> {
    let mut duals = vec![1.0_f64; problem.rows.len()];
    for (column, known) in warm.iter().enumerate() {
        let full: f64 = known.prices.iter().zip(problem.room_of(column)).map(|(price, room)| price * room).sum();
        if full <= 0.0 {
            continue;
        }
        for (k, dual) in duals.iter_mut().enumerate().filter(|(k, _)| problem.most_of(column)[*k] > 0.0) {
            let worth = known.prices.iter().enumerate().map(|(r, price)| price * problem.demand_of(r)[k]).sum::<f64>();
            *dual = dual.min(worth / full);
        }
    }
    duals
}

/// The bound that some duals prove, lowered where a column carries more than its price.
fn prove(problem: &Scaled, duals: &[f64], warm: &mut [Warm], steps: &mut Steps<'_>) -> Certificate {
    let mut knapsack = Knapsack::new(problem);
    let mut repair = Repair::new(duals);
    for (column, known) in warm.iter_mut().enumerate() {
        let mut worth = ceiling(problem, column, duals, &known.prices, &mut knapsack.excess);
        if worth > 1.0 {
            worth = knapsack.solve(problem, column, duals, known, steps);
        }
        repair.apply(duals, worth, problem.most_of(column), &knapsack.excess);
    }
    repair.certificate(problem)
}

/// The duals of a certificate in the units of the caller, lowered to leave room for rounding.
fn proven(problem: &Covering, scaled: &Scaled, certificate: &Certificate) -> Vec<f64> {
    let mut duals = scaled.plain_duals(problem, &certificate.duals);
    duals.iter_mut().for_each(|dual| *dual *= 1.0 - MARGIN);
    duals
}

/// What all pods are worth together.
fn worth(problem: &Covering, duals: &[f64]) -> f64 {
    problem.rows.iter().zip(duals).map(|(row, dual)| row.count as f64 * dual).sum()
}

/// A lower bound on the price of any placement, from what each pod of a row is said to be worth.
///
/// Holds for any duals: they are scaled so that no column carries more than its price is worth. Negative ones count
/// as zero, as do those of rows that cannot be covered or that a column of price zero may carry.
#[cfg(test)]
pub(crate) fn certify(problem: &Covering, duals: &[f64]) -> f64 {
    let scaled = Scaled::new(problem);
    let clean =
        |(&k, unit): (&usize, &f64)| duals.get(k).filter(|dual| dual.is_finite()).map_or(0.0, |d| d.max(0.0) * unit);
    let duals: Vec<f64> = scaled.rows.iter().zip(&scaled.unit).map(clean).collect();
    let mut warm = vec![Warm::default(); scaled.columns.len()];
    let certificate = prove(
        &scaled,
        &duals,
        &mut warm,
        &mut Steps { used: 0, budget: Budget { steps: u64::MAX, interrupt: &Interrupt::new() } },
    );
    worth(problem, &proven(problem, &scaled, &certificate))
}

/// The pods the search found to share machines, in the units of the caller.
fn shares(problem: &Covering, scaled: &Scaled, master: &Master) -> Vec<Share> {
    let mut shares: Vec<Share> = master
        .mix()
        .map(|(pattern, spent)| {
            let price = scaled.price[pattern.column];
            let pods = pattern.amounts.iter().map(|&(k, amount)| (scaled.rows[k], amount * scaled.unit[k] * price));
            Share { column: scaled.columns[pattern.column], machines: spent / price, pods: pods.collect() }
        })
        .collect();
    shares.extend(scaled.free.iter().map(|free| Share {
        column: free.column,
        machines: problem.rows[free.row].count as f64 / free.pods_per_machine,
        pods: vec![(free.row, free.pods_per_machine)],
    }));
    shares.sort_by(|a, b| a.column.cmp(&b.column).then(b.machines.total_cmp(&a.machines)));
    shares
}

/// What resources cost on the columns that most is spent on.
fn prices(problem: &Covering, scaled: &Scaled, master: &Master, warm: &[Warm]) -> Vec<Vec<f64>> {
    let mut spent: Vec<f64> = vec![0.0; scaled.columns.len()];
    master.mix().for_each(|(pattern, share)| spent[pattern.column] += share);
    let mut columns: Vec<usize> = (0..spent.len()).filter(|column| spent[*column] > 0.0).collect();
    columns.sort_by(|a, b| spent[*b].total_cmp(&spent[*a]).then(a.cmp(b)));
    let known = columns.iter().map(|column| &warm[*column].prices).filter(|prices| !prices.is_empty());
    known.take(PRICES_MAX).map(|prices| scaled.plain_prices(problem, prices)).collect()
}

/// Counted work.
struct Steps<'a> {
    used: u64,
    budget: Budget<'a>,
}

impl Steps<'_> {
    /// Uses some steps up; false, and none used, when not enough are left.
    fn take(&mut self, count: u64) -> bool {
        let enough = self.budget.steps - self.used >= count && !self.budget.interrupt.is_raised();
        if enough {
            self.used += count;
        }
        enough
    }
}

/// Duals that no column can outdo, and the bound they prove, up to rounding.
struct Certificate {
    bound: f64,
    duals: Vec<f64>,
}

impl Certificate {
    /// Takes duals that are proven once divided by the most that one unit of price carries under them.
    fn new(problem: &Scaled, duals: &[f64], most: f64) -> Self {
        let scale = if most > 0.0 { 1.0 / most } else { 0.0 };
        let duals: Vec<f64> = duals.iter().map(|dual| dual * scale).collect();
        let bound = duals.iter().zip(&problem.need).map(|(dual, need)| dual * need).sum();
        Self { bound, duals }
    }

    /// The best bound to be had without search: one row alone, or one resource alone.
    fn obvious(problem: &Scaled) -> Self {
        let mut best = Self { bound: 0.0, duals: vec![0.0; problem.rows.len()] };
        if let Some(row) = (0..problem.rows.len()).max_by(|&a, &b| problem.need[a].total_cmp(&problem.need[b])) {
            let mut duals = vec![0.0; problem.rows.len()];
            duals[row] = 1.0;
            best.improve(Self::new(problem, &duals, 1.0));
        }
        for r in 0..problem.resources {
            let most = (0..problem.columns.len()).map(|j| problem.room_of(j)[r]).fold(0.0, f64::max);
            best.improve(Self::new(problem, problem.demand_of(r), most));
        }
        best.improve(Self::melted(problem));
        best
    }

    /// The bound if pods were liquid and every column took all of them: one price per resource explains it.
    fn melted(problem: &Scaled) -> Self {
        let total = |r: usize| problem.demand_of(r).iter().zip(&problem.need).map(|(demand, need)| demand * need).sum();
        let need: Vec<f64> = (0..problem.resources).map(total).collect();
        let roomiest = |r: usize| {
            let room = |j: &usize| problem.room_of(*j)[r];
            (0..problem.columns.len()).max_by(|a, b| room(a).total_cmp(&room(b)).then(b.cmp(a))).unwrap_or(0)
        };
        let alone: Vec<usize> = (0..problem.resources).map(roomiest).collect();
        let mut master = Master::new(&need, &alone);
        for column in 0..problem.columns.len() {
            let amounts = problem.room_of(column).iter().copied().enumerate().collect();
            master.add(Pattern { column, amounts });
        }
        let budget = Budget { steps: MELTING_STEPS_MAX, interrupt: &Interrupt::new() };
        master.optimise(&mut Steps { used: 0, budget });
        let prices = master.duals();
        let priced = |k: usize| (0..problem.resources).map(|r| problem.demand_of(r)[k] * prices[r].max(0.0)).sum();
        let duals: Vec<f64> = (0..problem.rows.len()).map(priced).collect();
        let worth = |j: usize| problem.room_of(j).iter().zip(prices).map(|(room, price)| room * price.max(0.0)).sum();
        let most = (0..problem.columns.len()).map(worth).fold(0.0, f64::max);
        Self::new(problem, &duals, most)
    }

    fn improve(&mut self, other: Self) {
        if other.bound > self.bound {
            *self = other;
        }
    }
}

/// Duals on the way to a certificate: lowered, column by column, to what the column's price allows.
struct Repair {
    duals: Vec<f64>,
    /// The most that one unit of price carried on any column before.
    most: f64,
}

impl Repair {
    fn new(duals: &[f64]) -> Self {
        Self { duals: duals.to_vec(), most: 0.0 }
    }

    /// Makes up for a column that carries more than its price.
    ///
    /// Its resource prices and the excess they leave to each row explain `worth`, so divided by `worth` they explain
    /// its price. Rows worth no more than that explains may stay as they are, which beats lowering all alike.
    fn apply(&mut self, duals: &[f64], worth: f64, most: &[f64], excess: &[f64]) {
        self.most = self.most.max(worth);
        if worth > 1.0 {
            let share = 1.0 / worth;
            for (((repaired, dual), most), excess) in self.duals.iter_mut().zip(duals).zip(most).zip(excess) {
                let explained = (dual + (-excess).max(0.0)) * share;
                if *most > 0.0 && explained < *repaired {
                    *repaired = explained;
                }
            }
        }
    }

    fn certificate(&self, problem: &Scaled) -> Certificate {
        Certificate::new(problem, &self.duals, self.most.min(1.0))
    }
}

/// Column generation in progress.
struct Search<'a> {
    problem: &'a Scaled,
    master: Master,
    knapsack: Knapsack,
    warm: Vec<Warm>,
    steps: Steps<'a>,
    best: Certificate,
    complete: bool,
    /// The column to look at first in the next round, so that all get their turn.
    next: usize,
    /// Columns that were near to paying off when all were looked at.
    promising: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Scaled, budget: Budget<'a>) -> Self {
        let alone = |k: usize| {
            let best = |&a: &usize, &b: &usize| problem.most_of(a)[k].total_cmp(&problem.most_of(b)[k]).then(b.cmp(&a));
            (0..problem.columns.len()).max_by(best).unwrap_or(0)
        };
        let alone: Vec<usize> = (0..problem.rows.len()).map(alone).collect();
        Self {
            problem,
            master: Master::new(&problem.need, &alone),
            knapsack: Knapsack::new(problem),
            warm: vec![Warm::default(); problem.columns.len()],
            steps: Steps { used: 0, budget },
            best: Certificate::obvious(problem),
            complete: false,
            next: 0,
            promising: Vec::new(),
        }
    }

    fn run(&mut self) {
        let (mut misses, mut narrow) = (0, false);
        loop {
            self.master.optimise(&mut self.steps);
            let target: Vec<f64> = self.master.duals().iter().map(|dual| dual.max(0.0)).collect();
            let pull = (SMOOTHING - f64::from(misses) * (1.0 - SMOOTHING)).max(0.0);
            let mix = |(aim, proven): (&f64, &f64)| pull * proven + (1.0 - pull) * aim;
            let duals: Vec<f64> = target.iter().zip(&self.best.duals).map(mix).collect();
            if narrow && self.look_at_promising(&duals, &target) > 0 {
                continue;
            }
            let Some(found) = self.look(&duals, &target) else { return };
            let gap = self.master.price() - self.best.bound;
            if gap <= GAP_MAX * self.best.bound || found == 0 && pull == 0.0 {
                self.complete = true;
                return;
            }
            misses = if found == 0 { misses + 1 } else { 0 };
            narrow = found > 0;
        }
    }

    /// Looks for patterns under some duals that are worth more than their price under the target, and takes the
    /// bound that those duals prove. Returns the number of patterns found.
    ///
    /// Nothing when the steps do not suffice to look at all columns.
    fn look(&mut self, duals: &[f64], target: &[f64]) -> Option<u32> {
        let found_max = self.found_max();
        let mut repair = Repair::new(duals);
        let (mut found, mut last) = (0, None);
        let count = self.problem.columns.len();
        self.promising.clear();
        for column in (self.next..count).chain(0..self.next) {
            if !self.steps.take(1) {
                return None;
            }
            let mut worth = self.glance(column, duals, last);
            if worth > PROMISING {
                self.promising.push(column);
            }
            if worth > 1.0 + WORTH_MIN && found < found_max {
                worth = self.try_column(column, duals, target, &mut found);
                last = Some(column);
            }
            repair.apply(duals, worth, self.problem.most_of(column), &self.knapsack.excess);
        }
        self.best.improve(repair.certificate(self.problem));
        Some(found)
    }

    /// Looks for patterns on the columns only that came near to paying off when all were looked at.
    fn look_at_promising(&mut self, duals: &[f64], target: &[f64]) -> u32 {
        let mut found = 0;
        for column in self.promising.clone() {
            if found >= self.found_max() || !self.steps.take(1) {
                break;
            }
            if self.glance(column, duals, None) > 1.0 + WORTH_MIN {
                self.try_column(column, duals, target, &mut found);
            }
        }
        found
    }

    fn found_max(&self) -> u32 {
        FOUND_BASE + self.problem.rows.len() as u32 / 8
    }

    /// The worth of a column; its best pattern is kept, and counted, if it pays off under the target.
    fn try_column(&mut self, column: usize, duals: &[f64], target: &[f64], found: &mut u32) -> f64 {
        let worth = self.knapsack.solve(self.problem, column, duals, &mut self.warm[column], &mut self.steps);
        let amounts = self.knapsack.amounts(self.problem, column);
        if amounts.iter().map(|&(k, amount)| target[k] * amount).sum::<f64>() > 1.0 + WORTH_MIN {
            self.master.add(Pattern { column, amounts });
            *found += 1;
            self.next = column;
        }
        worth
    }

    /// An upper bound on the worth of a column by its own resource prices of old, or by those of another column if
    /// they do better: in uniform units columns are much alike.
    fn glance(&mut self, column: usize, duals: &[f64], other: Option<usize>) -> f64 {
        let excess = &mut self.knapsack.excess;
        let own = ceiling(self.problem, column, duals, &self.warm[column].prices, excess);
        let Some(other) = other.filter(|_| own > 1.0 + WORTH_MIN) else { return own };
        let foreign = ceiling(self.problem, column, duals, &self.warm[other].prices, excess);
        if foreign < own {
            self.warm[column].prices = self.warm[other].prices.clone();
            return foreign;
        }
        ceiling(self.problem, column, duals, &self.warm[column].prices, excess)
    }
}
