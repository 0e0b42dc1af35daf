//! A few nodes at a time are taken apart, and their pods packed again.
//!
//! Where pods choose among machines, or few fit on one, what the ideal fleet leaves over is many small riddles, and each
//! node is filled with whatever of all pods goes on it best. The pods of a few nodes that waste much, with nobody else to
//! choose from, often find cheaper ones.

use super::anew::dollars_of;
use super::work::Work;
use crate::bins::Bin;
use crate::solver::Solver;

/// What nodes waste has to be this part of what they cost, or there is little to be won.
const WASTE: f64 = 0.03;

/// So often it is tried. Ten times brought four fifths or more of what a hundred did.
const ATTEMPTS: usize = 16;

/// Nodes are chosen from so many that waste most.
const WASTEFUL: usize = 40;

/// So many of them at a time.
const AT_ONCE: [usize; 3] = [2, 3, 4];

impl Solver<'_> {
    /// Packs the pods of some nodes again, and keeps what is cheaper. Whoever has a node keeps one.
    pub(super) fn pack_again(&mut self, work: &mut Work, bins: &mut Vec<Bin>) {
        let mut wasteful = Vec::new();
        for attempt in 0..ATTEMPTS {
            if wasteful.is_empty() {
                if self.waste_of(bins) < dollars_of(bins) * WASTE {
                    return;
                }
                wasteful = self.wasteful(bins);
            }
            if wasteful.len() < AT_ONCE[0] || self.steps >= self.config.steps_max || self.interrupt.is_raised() {
                return;
            }
            let mut chosen = choice(&wasteful, attempt);
            let old: Vec<Bin> = chosen.iter().map(|position| bins[*position].clone()).collect();
            if let Some(new) = self.packed_again(work, &old) {
                chosen.sort_unstable();
                chosen.into_iter().rev().for_each(|position| drop(bins.swap_remove(position)));
                bins.extend(new);
                wasteful.clear();
            }
        }
    }

    /// Nodes for the pods of some others, if they cost less than those. If not, nothing has happened.
    fn packed_again(&mut self, work: &mut Work, old: &[Bin]) -> Option<Vec<Bin>> {
        self.take_apart(work, old);
        let mut new = Vec::new();
        self.build_rest(work, &mut new);
        let all_placed = work.shapes.iter().all(|shape| shape.remaining == 0);
        if all_placed && self.cost_of_bins(&new) < self.cost_of_bins(old) {
            return Some(new);
        }
        self.take_apart(work, &new);
        self.put_back(work, old);
        None
    }

    /// Lets the pods of some nodes wait again.
    fn take_apart(&mut self, work: &mut Work, bins: &[Bin]) {
        self.undo(bins);
        for bin in bins {
            self.release(work.pool, bin);
            work.take_back(bin);
        }
    }

    /// Makes single nodes again as they were.
    fn put_back(&mut self, work: &mut Work, bins: &[Bin]) {
        for bin in bins {
            self.hold(work.pool, bin);
            work.give_out(bin);
            bin.loads.iter().for_each(|load| self.orders[load.order].settled += load.pods as usize);
        }
    }

    /// By position, the single nodes that waste most, from the one that wastes most on.
    fn wasteful(&self, bins: &[Bin]) -> Vec<usize> {
        let single = bins.iter().enumerate().filter(|(_, bin)| bin.times == 1);
        let waste = |(position, bin)| (self.waste_of(std::slice::from_ref(bin)), position);
        let mut ranked: Vec<(f64, usize)> = single.map(waste).collect();
        ranked.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        ranked.into_iter().take(WASTEFUL).map(|(_, position)| position).collect()
    }
}

/// Some of the nodes, the first ones more often, and other ones each time. Needs two of them.
fn choice(ranked: &[usize], attempt: usize) -> Vec<usize> {
    let count = AT_ONCE[attempt % AT_ONCE.len()].min(ranked.len());
    let mut chosen: Vec<usize> = Vec::with_capacity(count);
    for pick in 0.. {
        if chosen.len() == count {
            break;
        }
        let part = evenly(pick, attempt);
        let position = ranked[(part * part.sqrt() * ranked.len() as f64) as usize];
        if !chosen.contains(&position) {
            chosen.push(position);
        }
    }
    chosen
}

/// Numbers from zero to one, spread as evenly over squares as can be (by the powers of the plastic number).
fn evenly(first: usize, second: usize) -> f64 {
    (first as f64 * 0.754_877_666_246_693 + second as f64 * 0.569_840_290_998_053_2).fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_nodes_are_chosen_each_time_and_none_twice() {
        let ranked: Vec<usize> = (10..50).collect();
        let choices: Vec<Vec<usize>> = (0..ATTEMPTS).map(|attempt| choice(&ranked, attempt)).collect();
        assert_eq!(choices[..4], [vec![10, 36], vec![27, 17, 10], vec![12, 43, 30, 20], vec![33, 22]]);
        for chosen in &choices {
            assert!(chosen.iter().enumerate().all(|(at, one)| !chosen[..at].contains(one)), "{chosen:?}");
        }
        assert_eq!(choice(&[3, 7], 2).len(), 2);
    }
}
