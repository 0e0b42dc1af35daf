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

mod certificate;
mod families;
mod knapsack;
mod limits;
mod master;
mod melted;
mod scaled;
#[cfg(test)]
mod tests;

use crate::interrupt::Budget;
use certificate::{Certificate, Repair};
pub(crate) use families::Families;
use families::{alike, families, families_max, merged};
use knapsack::{Knapsack, Warm, ceiling};
use master::{Master, Pattern};
use scaled::{Offer, Scaled};

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

/// The resource prices of so many columns are told.
const PRICES_MAX: usize = 3;

/// A column that carries this much per unit of price may soon pay off.
const PROMISING: f64 = 0.98;

/// Patterns added in one round: this and one per eight rows. More make the master slow and help it little.
const FOUND_BASE: u32 = 20;

/// How well rows are told apart where they are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// As well as it pays for a bound.
    Fine,
    /// Well enough for a guide.
    Coarse,
}

/// What pods need, each of them.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Size {
    /// Of each resource, in the units of the columns' room.
    pub(crate) demand: Vec<f64>,
    /// No machine carries more of them, whatever its room.
    pub(crate) most: u32,
}

impl Size {
    fn demand(&self, resource: usize) -> f64 {
        self.demand.get(resource).map_or(0.0, |demand| demand.max(0.0))
    }
}

/// A group of equal pods.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Row {
    /// How many there are; a row without pods is ignored.
    pub(crate) count: u64,
    /// How many more there could be in another placement that the bound is to hold for.
    pub(crate) spare: u64,
    /// Index into [`Covering::sizes`]. Rows are many, and sizes are few.
    pub(crate) size: usize,
    /// Rows of one kin differ in size only: where one may run, others that fit may too.
    pub(crate) kin: usize,
}

/// Kinds of machines, one after the other.
pub(crate) struct Columns {
    resources: usize,
    prices: Vec<f64>,
    rooms: Vec<f64>,
    /// A bit for each kin that may run there, so many words for each column.
    sold: Vec<u64>,
    words: usize,
}

impl Columns {
    /// Room for some columns, each with so many resources, and for so many kins of rows.
    pub(crate) fn with_capacity(columns: usize, resources: usize, kins: usize) -> Self {
        let words = kins.div_ceil(64);
        Self {
            resources,
            prices: Vec::with_capacity(columns),
            rooms: Vec::with_capacity(columns * resources),
            sold: Vec::with_capacity(columns * words),
            words,
        }
    }

    /// Adds a column: the price of one machine (without one, not a finite number, it is ignored), its room for pods
    /// in each resource (less than nothing counts as nothing), and whether rows of each kin may run there.
    pub(crate) fn push(
        &mut self,
        price: f64,
        room: impl IntoIterator<Item = f64>,
        sold: impl IntoIterator<Item = bool>,
    ) {
        self.prices.push(price);
        self.rooms.extend(room);
        self.rooms.resize(self.prices.len() * self.resources, 0.0);
        let start = self.sold.len();
        self.sold.resize(self.prices.len() * self.words, 0);
        for (kin, _) in sold.into_iter().enumerate().filter(|(_, sold)| *sold) {
            self.sold[start + kin / 64] |= 1 << (kin % 64);
        }
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

    /// The kins that may run on a column, as bits.
    fn kins_of(&self, column: usize) -> &[u64] {
        &self.sold[column * self.words..(column + 1) * self.words]
    }

    fn is_sold(&self, column: usize, kin: usize) -> bool {
        self.sold[column * self.words + kin / 64] >> (kin % 64) & 1 == 1
    }

    /// Whether whoever may run on one column may run on another.
    fn is_sold_wherever(&self, other: usize, column: usize) -> bool {
        self.kins_of(column).iter().zip(self.kins_of(other)).all(|(own, other)| own & !other == 0)
    }
}

/// The covering problem. All demands and rooms must be finite numbers.
pub(crate) struct Covering {
    pub(crate) sizes: Vec<Size>,
    pub(crate) rows: Vec<Row>,
    pub(crate) columns: Columns,
}

impl Covering {
    fn resources(&self) -> usize {
        self.columns.resources
    }
}

/// What one pod of a row needs of a resource.
fn demand(problem: &Covering, row: usize, resource: usize) -> f64 {
    problem.sizes[problem.rows[row].size].demand(resource)
}

fn room(problem: &Covering, column: usize, resource: usize) -> f64 {
    problem.columns.room(column)[resource].max(0.0)
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
    /// The columns that no other one undercuts: without the rest, the same is found for these rows, or for some of them.
    pub(crate) useful: Vec<usize>,
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
pub(crate) fn relax(problem: &Covering, detail: Detail, budget: Budget<'_>) -> Relaxed {
    if problem.rows.len() <= ROWS_MAX {
        return relax_exactly(problem, budget);
    }
    relax_families(problem, detail, budget)
}

fn relax_exactly(problem: &Covering, budget: Budget<'_>) -> Relaxed {
    let scaled = Scaled::new(problem);
    let mut search = Search::new(&scaled, budget);
    search.run();
    let Search { master, best, steps, complete, warm, .. } = search;
    let duals = proven(&scaled, &best);
    Relaxed {
        bound: worth(problem, &duals),
        duals,
        families: (0..problem.rows.len()).map(|row| vec![row]).collect(),
        shares: shares(problem, &scaled, &master),
        prices: prices(&scaled, &master, &warm),
        useful: useful(problem, &scaled),
        steps: steps.used,
        uncoverable: scaled.uncoverable,
        complete,
    }
}

fn relax_families(problem: &Covering, detail: Detail, budget: Budget<'_>) -> Relaxed {
    let scaled = Scaled::new(problem);
    let alike = alike(problem, &scaled);
    let families = families(problem, &alike, families_max(&alike, detail));
    let coarse = merged(problem, &families, &scaled.columns);
    let mixed = Scaled::merged(&coarse, &families, &scaled);
    let mut search = Search::new(&mixed, budget);
    search.run();
    let priced = search.settle();
    let mut shares = shares(&coarse, &mixed, &search.master);
    shares.iter_mut().for_each(|share| share.column = scaled.columns[share.column]);
    let mut best = Certificate::obvious(&scaled);
    best.improve(Certificate::priced(&scaled, &priced));
    let duals = proven(&scaled, &best);
    Relaxed {
        bound: worth(problem, &duals),
        duals,
        shares,
        families,
        prices: prices(&mixed, &search.master, &search.warm),
        useful: useful(problem, &scaled),
        steps: search.steps.used,
        uncoverable: scaled.uncoverable,
        complete: false,
    }
}

/// The duals of a certificate in the units of the caller, lowered to leave room for rounding.
fn proven(scaled: &Scaled<'_>, certificate: &Certificate) -> Vec<f64> {
    let mut duals = scaled.plain_duals(&certificate.duals);
    duals.iter_mut().for_each(|dual| *dual *= 1.0 - MARGIN);
    duals
}

/// What all pods are worth together.
fn worth(problem: &Covering, duals: &[f64]) -> f64 {
    problem.rows.iter().zip(duals).map(|(row, dual)| row.count as f64 * dual).sum()
}

/// The pods the search found to share machines, in the units of the caller.
fn shares(problem: &Covering, scaled: &Scaled<'_>, master: &Master) -> Vec<Share> {
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

/// The columns that were kept, and those that cost nothing.
fn useful(problem: &Covering, scaled: &Scaled<'_>) -> Vec<usize> {
    let gifts = (0..problem.columns.len()).filter(|column| problem.columns.price(*column) <= 0.0);
    scaled.columns.iter().copied().chain(gifts).collect()
}

/// What resources cost on the columns that most is spent on.
fn prices(scaled: &Scaled<'_>, master: &Master, warm: &[Warm]) -> Vec<Vec<f64>> {
    let spent = master.spent(scaled.columns.len());
    let mut columns: Vec<usize> = (0..spent.len()).filter(|column| spent[*column] > 0.0).collect();
    columns.sort_by(|a, b| spent[*b].total_cmp(&spent[*a]).then(a.cmp(b)));
    let known = columns.iter().map(|column| &warm[*column].prices).filter(|prices| !prices.is_empty());
    known.take(PRICES_MAX).map(|prices| scaled.plain_prices(prices)).collect()
}

/// Counted work.
struct Steps<'a> {
    used: u64,
    budget: Budget<'a>,
}

impl Steps<'_> {
    fn are_left(&self) -> bool {
        self.used < self.budget.steps
    }

    /// Uses some steps up; false, and none used, when not enough are left.
    fn take(&mut self, count: u64) -> bool {
        let enough = self.budget.steps - self.used >= count && !self.budget.interrupt.is_raised();
        if enough {
            self.used += count;
        }
        enough
    }
}

/// Column generation in progress.
struct Search<'a> {
    problem: &'a Scaled<'a>,
    /// Caps by column then row.
    most: Vec<f64>,
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
    fn new(problem: &'a Scaled<'a>, budget: Budget<'a>) -> Self {
        let rows = problem.rows.len();
        let mut most = vec![0.0; problem.columns.len() * rows];
        for (column, most) in most.chunks_exact_mut(rows.max(1)).enumerate() {
            problem.write_most(column, most);
        }
        let alone = |k: usize| {
            let best = |&a: &usize, &b: &usize| most[a * rows + k].total_cmp(&most[b * rows + k]).then(b.cmp(&a));
            (0..problem.columns.len()).max_by(best).unwrap_or(0)
        };
        let alone: Vec<usize> = (0..rows).map(alone).collect();
        Self {
            problem,
            most,
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
        let (mut missed, mut narrow) = (false, false);
        loop {
            self.master.optimise(&mut self.steps);
            let price = self.master.price();
            let target: Vec<f64> = self.master.duals().iter().map(|dual| dual.max(0.0)).collect();
            // If nothing pays off half-way, the master's duals may be the best already.
            let pull = if missed { 0.0 } else { SMOOTHING };
            let mix = |(aim, proven): (&f64, &f64)| pull * proven + (1.0 - pull) * aim;
            let duals: Vec<f64> = target.iter().zip(&self.best.duals).map(mix).collect();
            if narrow && self.look_at_promising(&duals, &target) > 0 {
                continue;
            }
            let Some(found) = self.look(&duals, &target) else { return };
            let closed = price - self.best.bound <= GAP_MAX * self.best.bound;
            if closed || found == 0 && pull == 0.0 {
                // Where the steps ran out over the last column, there may have been more to find.
                self.complete = closed || self.steps.are_left();
                return;
            }
            (missed, narrow) = (found == 0, found > 0);
        }
    }

    /// What each column says that resources cost under the best duals, if all that it carries cost as much as it does.
    ///
    /// Most columns priced them long ago, under others.
    fn settle(&mut self) -> Vec<Vec<f64>> {
        let mut priced = Vec::with_capacity(self.warm.len());
        for (column, warm) in self.warm.iter_mut().enumerate() {
            let offer = offer(self.problem, &self.most, column);
            let worth = self.knapsack.solve(self.problem, offer, &self.best.duals, warm, &mut self.steps);
            let scale = if worth > 0.0 { 1.0 / worth } else { 1.0 };
            priced.push(warm.prices.iter().map(|price| price * scale).collect());
        }
        priced
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
            repair.apply(duals, worth, self.offer(column).most, &self.knapsack.excess);
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

    fn offer(&self, column: usize) -> Offer<'_> {
        offer(self.problem, &self.most, column)
    }

    fn found_max(&self) -> u32 {
        FOUND_BASE + self.problem.rows.len() as u32 / 8
    }

    /// The worth of a column; its best pattern is kept, and counted, if it pays off under the target.
    fn try_column(&mut self, column: usize, duals: &[f64], target: &[f64], found: &mut u32) -> f64 {
        let offer = offer(self.problem, &self.most, column);
        let worth = self.knapsack.solve(self.problem, offer, duals, &mut self.warm[column], &mut self.steps);
        let amounts = self.knapsack.amounts(offer);
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
        let offer = offer(self.problem, &self.most, column);
        let own = ceiling(self.problem, offer, duals, &self.warm[column].prices, excess);
        let Some(other) = other.filter(|_| own > 1.0 + WORTH_MIN) else { return own };
        let foreign = ceiling(self.problem, offer, duals, &self.warm[other].prices, excess);
        if foreign < own {
            self.warm[column].prices = self.warm[other].prices.clone();
            return foreign;
        }
        ceiling(self.problem, offer, duals, &self.warm[column].prices, excess)
    }
}

/// What a column offers, of caps by column then row.
fn offer<'o>(problem: &'o Scaled<'_>, most: &'o [f64], column: usize) -> Offer<'o> {
    let rows = problem.rows.len();
    Offer { room: problem.room_of(column), most: &most[column * rows..(column + 1) * rows] }
}
