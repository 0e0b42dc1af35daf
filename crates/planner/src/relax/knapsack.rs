//! What one unit of price spent on a column can carry at best, for given row duals.
//!
//! The value of a column is the fractional knapsack `max { duals . y : demand y <= room, 0 <= y <= most }`. It is
//! solved by the simplex method with bounded variables; the basis has one slot per resource and is remembered per
//! column, because between two rounds only the duals change and the last optimum stays feasible. Whatever the
//! simplex method returns, [`ceiling`] turns its resource prices into an upper bound that holds for any prices.

use super::Steps;
use super::scaled::{Offer, Scaled};

/// A move that could gain less than this is not made.
const GAIN_MIN: f64 = 2e-12;
/// Smallest pivot element.
const PIVOT_MIN: f64 = 1e-10;
/// Steps shorter than this leave the value where it is.
const STEP_MIN: f64 = 1e-13;

/// Where the last solve of a column ended.
#[derive(Clone, Default)]
pub(super) struct Warm {
    /// Price per resource; empty before the first solve.
    pub(super) prices: Vec<f64>,
    basic: Vec<usize>,
    tight: Vec<usize>,
    full: Vec<usize>,
}

/// An upper bound on the knapsack value of a column, valid for any resource prices that are not negative.
///
/// Each unit of room is worth its price, and each row at most what its dual exceeds the price of its demand by.
/// Leaves that excess in `excess`.
pub(super) fn ceiling(
    problem: &Scaled<'_>,
    offer: Offer<'_>,
    duals: &[f64],
    prices: &[f64],
    excess: &mut [f64],
) -> f64 {
    excess.copy_from_slice(duals);
    let mut total = 0.0;
    for (r, (&price, &room)) in prices.iter().zip(offer.room).enumerate() {
        if price > 0.0 {
            total += price * room;
            subtract(excess, price, problem.demand_of(r));
        }
    }
    // Four sums side by side let the compiler use wide registers; their order is fixed.
    let mut lanes = [0.0; 4];
    let most = offer.most;
    let (head, tail) = (most.chunks_exact(4), most.chunks_exact(4).remainder());
    let rest = excess.chunks_exact(4).remainder();
    for (u, e) in head.zip(excess.chunks_exact(4)) {
        for lane in 0..4 {
            lanes[lane] += if e[lane] > 0.0 { u[lane] * e[lane] } else { 0.0 };
        }
    }
    for (u, e) in tail.iter().zip(rest) {
        total += u * e.max(0.0);
    }
    total + (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

fn subtract(from: &mut [f64], factor: f64, values: &[f64]) {
    for (target, value) in from.iter_mut().zip(values) {
        *target -= factor * value;
    }
}

/// What enters the basis.
#[derive(Clone, Copy)]
enum Entering {
    /// A row; `up` tells whether its amount grows from zero or shrinks from its cap.
    Row { row: usize, up: bool },
    /// Unused room of a resource.
    Slack(usize),
}

/// Work space for solving knapsacks of one problem.
pub(super) struct Knapsack {
    rows: usize,
    resources: usize,
    pub(super) excess: Vec<f64>,
    /// Per row: one at zero, minus one at its cap, zero in the basis.
    side: Vec<f64>,
    slack_basic: Vec<bool>,
    /// Per slot, a row, or `rows + resource` for slack.
    basis: Vec<usize>,
    level: Vec<f64>,
    inverse: Vec<f64>,
    prices: Vec<f64>,
    change: Vec<f64>,
}

impl Knapsack {
    pub(super) fn new(problem: &Scaled<'_>) -> Self {
        let (rows, resources) = (problem.rows.len(), problem.resources);
        Self {
            rows,
            resources,
            excess: vec![0.0; rows],
            side: vec![1.0; rows],
            slack_basic: vec![true; resources],
            basis: (rows..rows + resources).collect(),
            level: vec![0.0; resources],
            inverse: vec![0.0; resources * resources],
            prices: vec![0.0; resources],
            change: vec![0.0; resources],
        }
    }

    /// Solves the knapsack of a column from where it was left, and returns an upper bound on its value.
    ///
    /// The bound is the value itself when the steps suffice.
    pub(super) fn solve(
        &mut self,
        problem: &Scaled<'_>,
        offer: Offer<'_>,
        duals: &[f64],
        warm: &mut Warm,
        steps: &mut Steps<'_>,
    ) -> f64 {
        self.load(problem, offer, warm);
        // Far more than ever seen; with the lowest-index rule below it only guards against rounding.
        let pivots_max = 40 + 8 * self.resources + 4 * self.rows;
        let (mut idle, idle_max) = (0, 8 + self.resources);
        for _ in 0..pivots_max {
            self.reprice(problem, duals);
            let Some(entering) = self.choose(offer, idle > idle_max) else { break };
            if !steps.take(1) {
                break;
            }
            let Some(length) = self.advance(problem, offer, entering, idle > idle_max) else { break };
            idle = if length < STEP_MIN { idle + 1 } else { 0 };
        }
        self.reprice(problem, duals);
        self.store(warm);
        ceiling(problem, offer, duals, &warm.prices, &mut self.excess)
    }

    /// The amounts of the last solve, by row, without zeros.
    pub(super) fn amounts(&self, offer: Offer<'_>) -> Vec<(usize, f64)> {
        let most = offer.most;
        let mut amounts: Vec<(usize, f64)> = Vec::new();
        for (k, (&side, &most)) in self.side.iter().zip(most).enumerate() {
            if side < 0.0 && most > 0.0 {
                amounts.push((k, most));
            }
        }
        for (&variable, &level) in self.basis.iter().zip(&self.level) {
            if variable < self.rows && level > 1e-11 {
                amounts.push((variable, level.min(most[variable])));
            }
        }
        amounts.sort_by_key(|&(k, _)| k);
        amounts
    }

    /// Starts from nothing carried.
    fn reset(&mut self) {
        self.side.fill(1.0);
        self.slack_basic.fill(true);
        self.inverse.fill(0.0);
        for r in 0..self.resources {
            self.basis[r] = self.rows + r;
            self.inverse[r * self.resources + r] = 1.0;
        }
    }

    fn load(&mut self, problem: &Scaled<'_>, offer: Offer<'_>, warm: &Warm) {
        self.reset();
        let (room, most) = (offer.room, offer.most);
        if !self.enter_all(problem, warm) {
            self.reset();
            self.level.copy_from_slice(room);
            return;
        }
        let mut left = room.to_vec();
        for &k in &warm.full {
            self.side[k] = -1.0;
            for (r, left) in left.iter_mut().enumerate() {
                *left -= problem.demand_of(r)[k] * most[k];
            }
        }
        for slot in 0..self.resources {
            let inverse = &self.inverse[slot * self.resources..(slot + 1) * self.resources];
            let level: f64 = inverse.iter().zip(&left).map(|(x, y)| x * y).sum();
            let variable = self.basis[slot];
            let top = if variable < self.rows { most[variable] } else { f64::INFINITY };
            if level < -1e-8 || level > top + 1e-8 {
                self.reset();
                self.level.copy_from_slice(room);
                return;
            }
            self.level[slot] = level.clamp(0.0, top);
        }
    }

    /// Brings the remembered rows into the basis in place of the slacks that were tight; false when they do not fit.
    fn enter_all(&mut self, problem: &Scaled<'_>, warm: &Warm) -> bool {
        let mut open = warm.tight.clone();
        for &k in &warm.basic {
            self.set_change(problem, Entering::Row { row: k, up: true });
            let size = |i: usize| self.change[open[i]].abs();
            let Some(best) = (0..open.len()).max_by(|&a, &b| size(a).total_cmp(&size(b)).then(b.cmp(&a))) else {
                return false;
            };
            let slot = open.remove(best);
            if self.change[slot].abs() < PIVOT_MIN {
                return false;
            }
            self.slack_basic[slot] = false;
            self.basis[slot] = k;
            self.side[k] = 0.0;
            self.pivot(slot);
        }
        true
    }

    fn store(&self, warm: &mut Warm) {
        warm.prices.clear();
        warm.prices.extend(self.prices.iter().map(|price| price.max(0.0)));
        warm.basic.clear();
        warm.basic.extend(self.basis.iter().copied().filter(|&variable| variable < self.rows));
        warm.tight.clear();
        warm.tight.extend((0..self.resources).filter(|&r| !self.slack_basic[r]));
        warm.full.clear();
        warm.full.extend((0..self.rows).filter(|&k| self.side[k] < 0.0));
    }

    /// Resource prices of the present basis, and what each row's dual exceeds its demand's price by.
    fn reprice(&mut self, problem: &Scaled<'_>, duals: &[f64]) {
        self.prices.fill(0.0);
        for (slot, &variable) in self.basis.iter().enumerate() {
            if variable < self.rows {
                let inverse = &self.inverse[slot * self.resources..(slot + 1) * self.resources];
                for (price, x) in self.prices.iter_mut().zip(inverse) {
                    *price += duals[variable] * x;
                }
            }
        }
        self.excess.copy_from_slice(duals);
        for (r, &price) in self.prices.iter().enumerate() {
            if price != 0.0 {
                subtract(&mut self.excess, price, problem.demand_of(r));
            }
        }
    }

    /// The move with the largest possible gain, or under `lowest` the first that gains at all, which cannot cycle.
    fn choose(&self, offer: Offer<'_>, lowest: bool) -> Option<Entering> {
        let mut best = GAIN_MIN;
        let mut choice = None;
        for (k, ((excess, side), most)) in self.excess.iter().zip(&self.side).zip(offer.most).enumerate() {
            let gain = excess * side * most;
            if gain > best {
                choice = Some(Entering::Row { row: k, up: *side > 0.0 });
                if lowest {
                    return choice;
                }
                best = gain;
            }
        }
        for (r, (price, room)) in self.prices.iter().zip(offer.room).enumerate() {
            let gain = -price * room;
            if gain > best && !self.slack_basic[r] {
                choice = Some(Entering::Slack(r));
                if lowest {
                    return choice;
                }
                best = gain;
            }
        }
        choice
    }

    /// How the basic levels fall per unit of the entering variable.
    fn set_change(&mut self, problem: &Scaled<'_>, entering: Entering) {
        for slot in 0..self.resources {
            let inverse = &self.inverse[slot * self.resources..(slot + 1) * self.resources];
            self.change[slot] = match entering {
                Entering::Slack(r) => inverse[r],
                Entering::Row { row, .. } => inverse.iter().zip(problem.demands_of(row)).map(|(x, d)| x * d).sum(),
            };
        }
    }

    /// Moves along the entering variable as far as the bounds allow and returns how far; nothing when unlimited.
    fn advance(&mut self, problem: &Scaled<'_>, offer: Offer<'_>, entering: Entering, lowest: bool) -> Option<f64> {
        self.set_change(problem, entering);
        let most = offer.most;
        let (sign, own) = match entering {
            Entering::Row { row, up } => (if up { 1.0 } else { -1.0 }, most[row]),
            Entering::Slack(_) => (1.0, f64::INFINITY),
        };
        let mut length = own;
        let mut leaving: Option<usize> = None;
        for slot in 0..self.resources {
            let rate = sign * self.change[slot];
            let variable = self.basis[slot];
            let limit = if rate > PIVOT_MIN {
                self.level[slot] / rate
            } else if rate < -PIVOT_MIN && variable < self.rows {
                (most[variable] - self.level[slot]).max(0.0) / -rate
            } else {
                continue;
            };
            let tied = leaving.is_some_and(|other| {
                limit <= length + STEP_MIN
                    && if lowest { variable < self.basis[other] } else { rate.abs() > self.change[other].abs() }
            });
            if limit < length - STEP_MIN || tied {
                length = limit.min(length);
                leaving = Some(slot);
            }
        }
        if !length.is_finite() {
            return None;
        }
        for (level, change) in self.level.iter_mut().zip(&self.change) {
            *level = (*level - sign * change * length).max(0.0);
        }
        match leaving {
            None => {
                if let Entering::Row { row, .. } = entering {
                    self.side[row] = -self.side[row];
                }
            }
            Some(slot) => self.exchange(slot, entering, length, own),
        }
        Some(length)
    }

    fn exchange(&mut self, slot: usize, entering: Entering, length: f64, own: f64) {
        let left = self.basis[slot];
        let falls = |up: bool| (self.change[slot] > 0.0) == up;
        let at_zero = match entering {
            Entering::Row { up, .. } => falls(up),
            Entering::Slack(_) => falls(true),
        };
        if left < self.rows {
            self.side[left] = if at_zero { 1.0 } else { -1.0 };
        } else {
            self.slack_basic[left - self.rows] = false;
        }
        match entering {
            Entering::Row { row, up } => {
                self.basis[slot] = row;
                self.side[row] = 0.0;
                self.level[slot] = if up { length } else { own - length };
            }
            Entering::Slack(r) => {
                self.basis[slot] = self.rows + r;
                self.slack_basic[r] = true;
                self.level[slot] = length;
            }
        }
        self.pivot(slot);
    }

    /// Updates the inverse for the variable whose column is in `change` taking over a slot.
    fn pivot(&mut self, slot: usize) {
        let n = self.resources;
        let scale = 1.0 / self.change[slot];
        for r in 0..n {
            self.inverse[slot * n + r] *= scale;
        }
        let (above, rest) = self.inverse.split_at_mut(slot * n);
        let (pivot, below) = rest.split_at_mut(n);
        let others = above.chunks_exact_mut(n.max(1)).chain(below.chunks_exact_mut(n.max(1)));
        let changes = self.change[..slot].iter().chain(&self.change[slot + 1..]);
        for (row, &change) in others.zip(changes) {
            if change != 0.0 {
                subtract(row, change, pivot);
            }
        }
    }
}
