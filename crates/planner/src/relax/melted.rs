//! Pods as a liquid, of which every machine takes as much as it has room for: a few prices of resources explain what that
//! costs, and are found in no time.

use super::Steps;
use super::master::{Master, Pattern};
use super::scaled::Scaled;
use crate::interrupt::{Budget, Interrupt};

/// Resources are few, and so are the exchanges it takes to price them.
const STEPS_MAX: u64 = 1_000;

/// The cheapest way to hold all pods as a liquid.
pub(super) struct Melted {
    /// By resource.
    pub(super) prices: Vec<f64>,
    /// The columns that money is spent on.
    columns: Vec<usize>,
}

impl Melted {
    /// On some of the columns.
    pub(super) fn on(problem: &Scaled<'_>, columns: &[usize]) -> Self {
        let total = |r: usize| problem.demand_of(r).iter().zip(&problem.need).map(|(demand, need)| demand * need).sum();
        let need: Vec<f64> = (0..problem.resources).map(total).collect();
        let roomiest = |r: usize| {
            let room = |j: &usize| problem.room_of(*j)[r];
            columns.iter().copied().max_by(|a, b| room(a).total_cmp(&room(b)).then(b.cmp(a))).unwrap_or(0)
        };
        let alone: Vec<usize> = (0..problem.resources).map(roomiest).collect();
        let mut master = Master::new(&need, &alone);
        for column in columns {
            let amounts = problem.room_of(*column).iter().copied().enumerate().collect();
            master.add(Pattern { column: *column, amounts });
        }
        let budget = Budget { steps: STEPS_MAX, interrupt: &Interrupt::new() };
        master.optimise(&mut Steps { used: 0, budget });
        Self { prices: master.duals().to_vec(), columns: master.mix().map(|(pattern, _)| pattern.column).collect() }
    }

    /// What the room on other columns is worth for its price, where it is worth most; nothing unless those that money is
    /// spent on are among them. One means that no way is cheaper there, and more how much cheaper one could be at best.
    pub(super) fn worth_on(&self, problem: &Scaled<'_>, columns: &[usize]) -> Option<f64> {
        self.columns.iter().all(|column| columns.binary_search(column).is_ok()).then_some(())?;
        let worth = |column: &usize| {
            problem.room_of(*column).iter().zip(&self.prices).map(|(room, price)| room * price).sum::<f64>()
        };
        Some(columns.iter().map(worth).fold(0.0, f64::max))
    }
}
