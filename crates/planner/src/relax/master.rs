//! The restricted master problem: the cheapest mix of known patterns that covers every row.
//!
//! A pattern is one way to spend one unit of price on a column. The mix is found by the revised simplex method with
//! a dense inverse of the basis; the duals it yields tell the knapsacks which patterns to look for next.

use super::Steps;

/// Reduced costs above this do not count as an improvement.
const GAIN_MIN: f64 = 5e-11;
/// Smallest pivot element.
const PIVOT_MIN: f64 = 1e-9;
/// Basic variables must price out to zero within this, or the inverse is computed afresh.
const DRIFT_MAX: f64 = 1e-10;
/// After more exchanges than this, duals and levels are derived afresh. Each adds rounding of about its size, 1e-16.
const EXCHANGES_MAX: u32 = 24;
/// Elements of the inverse below this are rounding, and taken for zero to keep it sparse.
const NOISE: f64 = 1e-15;
/// Variables with reduced costs below this are watched while pivoting; few others ever come to pay off.
const NEAR: f64 = 0.02;
/// Patterns this far from paying off are forgotten when there are many.
const HOPELESS: f64 = 0.1;

/// What one unit of price on a column carries.
pub(super) struct Pattern {
    /// Index among the kept columns.
    pub(super) column: usize,
    /// Row and amount, by row.
    pub(super) amounts: Vec<(usize, f64)>,
}

/// A variable that may enter the basis.
#[derive(Clone, Copy)]
struct Candidate {
    variable: usize,
    /// Price less what it carries is worth.
    cost: f64,
    /// Estimate of how far the basis moves, squared, per unit (Devex weight).
    weight: f64,
}

/// The restricted master and its present basis.
///
/// Variables are numbered: first per row what is carried beyond its need, then the patterns as they came, of which
/// the first ones carry one row each.
pub(super) struct Master {
    rows: usize,
    need: Vec<f64>,
    variables: Vec<Pattern>,
    /// Variables not forgotten.
    pool: Vec<usize>,
    watched: Vec<Candidate>,
    basis: Vec<usize>,
    level: Vec<f64>,
    /// By row, then slot.
    inverse: Vec<f64>,
    duals: Vec<f64>,
    change: Vec<f64>,
    pivot_row: Vec<f64>,
    /// Exchanges since duals and levels were derived from the inverse.
    exchanges: u32,
}

impl Master {
    /// Starts with one pattern per row that carries one unit of that row alone on the given column.
    pub(super) fn new(need: &[f64], alone: &[usize]) -> Self {
        let rows = need.len();
        let surplus = alone.iter().enumerate().map(|(k, &column)| Pattern { column, amounts: vec![(k, -1.0)] });
        let single = alone.iter().enumerate().map(|(k, &column)| Pattern { column, amounts: vec![(k, 1.0)] });
        let mut master = Self {
            rows,
            need: need.to_vec(),
            variables: surplus.chain(single).collect(),
            pool: (0..2 * rows).collect(),
            watched: Vec::new(),
            basis: (rows..2 * rows).collect(),
            level: need.to_vec(),
            inverse: vec![0.0; rows * rows],
            duals: vec![1.0; rows],
            change: vec![0.0; rows],
            pivot_row: vec![0.0; rows],
            exchanges: 0,
        };
        master.identity();
        master
    }

    /// Worth of one unit of each row at the present basis.
    pub(super) fn duals(&self) -> &[f64] {
        &self.duals
    }

    /// Price of the present mix.
    pub(super) fn price(&self) -> f64 {
        self.mix().map(|(_, level)| level).sum()
    }

    /// The patterns in use and the price spent on each.
    pub(super) fn mix(&self) -> impl Iterator<Item = (&Pattern, f64)> {
        let used =
            self.basis.iter().zip(&self.level).filter(|&(&variable, &level)| variable >= self.rows && level > 0.0);
        used.map(|(&variable, &level)| (&self.variables[variable], level))
    }

    /// The price spent on each of so many columns.
    pub(super) fn spent(&self, columns: usize) -> Vec<f64> {
        let mut spent = vec![0.0; columns];
        self.mix().for_each(|(pattern, share)| spent[pattern.column] += share);
        spent
    }

    pub(super) fn add(&mut self, pattern: Pattern) {
        self.pool.push(self.variables.len());
        self.variables.push(pattern);
    }

    /// Finds the cheapest mix of the patterns known, as far as the steps go.
    ///
    /// Gives up when ties keep it on the spot for long, or rounding leaves nothing to exchange; the mix then is merely
    /// not the cheapest.
    pub(super) fn optimise(&mut self, steps: &mut Steps<'_>) {
        let (mut idle, idle_max) = (0, 20 + self.rows);
        let mut moving = true;
        while moving && self.watch() {
            moving = false;
            while let Some(entering) = self.choose(idle > idle_max) {
                if idle > 4 * idle_max || !steps.take(1) {
                    break;
                }
                let Some(length) = self.advance(entering, idle > idle_max) else { break };
                idle = if length < 1e-13 { idle + 1 } else { 0 };
                moving |= idle == 0;
            }
            if self.exchanges > EXCHANGES_MAX {
                self.refresh();
            }
        }
        self.forget();
    }

    /// The sum of given row values over what a variable carries.
    fn weigh(&self, variable: usize, values: &[f64]) -> f64 {
        self.variables[variable].amounts.iter().map(|&(k, amount)| values[k] * amount).sum()
    }

    fn reduced_cost(&self, variable: usize) -> f64 {
        self.price_of(variable) - self.weigh(variable, &self.duals)
    }

    fn price_of(&self, variable: usize) -> f64 {
        if variable < self.rows { 0.0 } else { 1.0 }
    }

    /// Chooses the variables to watch; false when none of all pays off.
    fn watch(&mut self) -> bool {
        let mut watched = std::mem::take(&mut self.watched);
        watched.clear();
        let candidates =
            self.pool.iter().map(|&variable| Candidate { variable, cost: self.reduced_cost(variable), weight: 1.0 });
        watched.extend(candidates.filter(|candidate| candidate.cost < NEAR));
        self.watched = watched;
        self.watched.iter().any(|candidate| candidate.cost < -GAIN_MIN)
    }

    /// The variable to enter next, with its cost computed afresh: an outdated cost must not lead uphill.
    fn choose(&mut self, lowest: bool) -> Option<Candidate> {
        loop {
            let position = self.steepest(lowest)?;
            let cost = self.reduced_cost(self.watched[position].variable);
            self.watched[position].cost = cost;
            if cost < -GAIN_MIN {
                return Some(self.watched[position]);
            }
        }
    }

    /// Where the descent is steepest, or under `lowest` the first descent at all, which cannot cycle.
    fn steepest(&self, lowest: bool) -> Option<usize> {
        let mut best = 0.0;
        let mut choice = None;
        for (position, candidate) in self.watched.iter().enumerate() {
            if candidate.cost < -GAIN_MIN {
                let descent = candidate.cost * candidate.cost / candidate.weight;
                if descent > best {
                    choice = Some(position);
                    if lowest {
                        return choice;
                    }
                    best = descent;
                }
            }
        }
        choice
    }

    /// How the basic levels fall per unit of a variable.
    fn set_change(&mut self, variable: usize) {
        self.change.fill(0.0);
        for &(k, amount) in &self.variables[variable].amounts {
            let inverse = &self.inverse[k * self.rows..(k + 1) * self.rows];
            for (change, x) in self.change.iter_mut().zip(inverse) {
                *change += amount * x;
            }
        }
    }

    /// Lets a variable into the basis; nothing when no basic level limits it, which only rounding can cause.
    fn advance(&mut self, entering: Candidate, lowest: bool) -> Option<f64> {
        self.set_change(entering.variable);
        let mut leaving: Option<(usize, f64)> = None;
        for (slot, (&change, &level)) in self.change.iter().zip(&self.level).enumerate() {
            if change <= PIVOT_MIN {
                continue;
            }
            let limit = level / change;
            let better = leaving.is_none_or(|(other, length)| {
                let tied = limit <= length * (1.0 + 1e-12)
                    && if lowest { self.basis[slot] < self.basis[other] } else { change > self.change[other] };
                limit < length * (1.0 - 1e-12) || tied
            });
            if better {
                leaving = Some((slot, limit));
            }
        }
        let (slot, length) = leaving?;
        for (level, change) in self.level.iter_mut().zip(&self.change) {
            *level = (*level - change * length).max(0.0);
        }
        self.level[slot] = length;
        self.reweigh(slot, entering);
        self.basis[slot] = entering.variable;
        self.pivot(slot, entering.cost);
        self.exchanges += 1;
        Some(length)
    }

    /// Updates costs and weights of the watched variables for an exchange about to happen.
    fn reweigh(&mut self, slot: usize, entering: Candidate) {
        let mut pivot_row = std::mem::take(&mut self.pivot_row);
        for (k, x) in pivot_row.iter_mut().enumerate() {
            *x = self.inverse[k * self.rows + slot];
        }
        let scale = 1.0 / self.change[slot];
        let mut watched = std::mem::take(&mut self.watched);
        for candidate in &mut watched {
            let ratio = self.weigh(candidate.variable, &pivot_row) * scale;
            if candidate.variable == self.basis[slot] {
                candidate.weight = (entering.weight * scale * scale).max(1.0);
                candidate.cost = -entering.cost * ratio;
            } else if candidate.variable == entering.variable {
                candidate.cost = 0.0;
            } else if ratio != 0.0 {
                candidate.cost -= entering.cost * ratio;
                candidate.weight = candidate.weight.max(ratio * ratio * entering.weight);
            }
        }
        self.watched = watched;
        self.pivot_row = pivot_row;
    }

    /// Updates inverse and duals for the variable whose column is in `change` taking over a slot.
    fn pivot(&mut self, slot: usize, cost: f64) {
        let scale = 1.0 / self.change[slot];
        for (inverse, dual) in self.inverse.chunks_exact_mut(self.rows).zip(&mut self.duals) {
            let pivot = inverse[slot];
            if pivot.abs() < NOISE {
                inverse[slot] = 0.0;
                continue;
            }
            let factor = pivot * scale;
            *dual += cost * factor;
            for (x, change) in inverse.iter_mut().zip(&self.change) {
                *x -= change * factor;
            }
            inverse[slot] = factor;
        }
    }

    /// Recomputes duals and levels from the inverse, and the inverse itself when it has drifted.
    fn refresh(&mut self) {
        self.exchanges = 0;
        self.derive();
        if self.basis.iter().any(|&variable| self.reduced_cost(variable).abs() > DRIFT_MAX) {
            self.invert();
            self.derive();
        }
    }

    fn derive(&mut self) {
        let prices: Vec<f64> = self.basis.iter().map(|&variable| self.price_of(variable)).collect();
        self.level.fill(0.0);
        for (k, inverse) in self.inverse.chunks_exact(self.rows.max(1)).enumerate() {
            self.duals[k] = inverse.iter().zip(&prices).map(|(x, price)| x * price).sum();
            for (level, x) in self.level.iter_mut().zip(inverse) {
                *level += self.need[k] * x;
            }
        }
        for level in &mut self.level {
            *level = level.max(0.0);
        }
    }

    /// Computes the inverse afresh by bringing the basic variables in one by one.
    fn invert(&mut self) {
        let variables = std::mem::take(&mut self.basis);
        let mut placed: Vec<Option<usize>> = vec![None; self.rows];
        self.identity();
        for variable in variables {
            self.set_change(variable);
            let open = (0..self.rows).filter(|&slot| placed[slot].is_none());
            let size = |slot: usize| self.change[slot].abs();
            let best = open.max_by(|&a, &b| size(a).total_cmp(&size(b)).then(b.cmp(&a)));
            let Some(slot) = best.filter(|&slot| size(slot) > PIVOT_MIN * 1e-3) else {
                // Rounding let a dependent basis through: the patterns that carry one row each always serve.
                self.identity();
                self.basis = (self.rows..2 * self.rows).collect();
                return;
            };
            placed[slot] = Some(variable);
            self.pivot(slot, 0.0);
        }
        self.basis = placed.into_iter().flatten().collect();
    }

    fn identity(&mut self) {
        self.inverse.fill(0.0);
        for k in 0..self.rows {
            self.inverse[k * self.rows + k] = 1.0;
        }
    }

    /// Forgets patterns that are far from paying off once there are many.
    fn forget(&mut self) {
        if self.pool.len() > 200 + 6 * self.rows {
            let mut pool = std::mem::take(&mut self.pool);
            pool.retain(|&variable| variable < 2 * self.rows || self.reduced_cost(variable) < HOPELESS);
            self.pool = pool;
        }
    }
}
