//! Decides where pending pods go: which existing place takes them, which new nodes are worth their price, and why a
//! pod gets none.
//!
//! Everything here is a pure function of a [`model::Snapshot`]: equal snapshots give equal plans, in whatever order
//! their lists come. This crate will never know input or output, time, chance or the order of a hash map.
//!
//! ```text
//! classes  equal pods together            readings  wishes as rules, given up one by one
//! tallies  who is where                   rules     what a reading demands of the pods around it
//! places   nodes that are there           menus     types of a pool that meet demands, with prices
//! seat     a place or an order for each   pack      orders to new nodes, after the relaxed problem
//! search   few pods, arranged exactly     relax     the relaxed problem; bound: what no plan can undercut
//! refuse   why not                        finish    the plan as it is told
//! interrupt  how much work it may still do  rehearsal  who would lose the seat that a plan gave
//! answers  what types say to a demand, asked once
//! ```

mod amounts;
mod answers;
mod attached;
mod bins;
mod bound;
mod cells;
mod classes;
mod config;
mod daemons;
mod finish;
mod interner;
mod interrupt;
mod kept;
mod kinds;
mod limits;
mod menus;
mod pack;
mod places;
mod readings;
mod refuse;
mod rehearsal;
mod relax;
mod reserved;
mod rules;
mod search;
mod seat;
mod solver;
mod stance;
mod tallies;
mod variety;

pub use config::{MinValuesPolicy, PlaceConfig, PreferencePolicy, ReservationPolicy};
pub use interrupt::Interrupt;
pub use rehearsal::{room_to_spare, seats_to_keep};

use std::collections::BTreeMap;

use menus::PoolView;
use model::{Plan, Price, Snapshot};
use search::Wishes;
use solver::{Barred, Solver};

/// Places as many pods as it can; equal snapshots give equal plans, whatever the order of their lists.
///
/// Pods go to what is there, and the others to new claims of the first pool that takes them, sized by price. Pods that
/// fit nowhere come back in [`Plan::unplaced`] with one refusal per pool. No claim lists a type that could carry its
/// pool over a limit. Never panics on input.
pub fn place(snapshot: &Snapshot, config: &PlaceConfig) -> Plan {
    place_until(snapshot, config, &Interrupt::new())
}

/// As [`place`], until somebody interrupts: then the search for cheaper nodes ends, and what was found so far becomes
/// a plan that is dearer perhaps, and otherwise as good as any.
pub fn place_until(snapshot: &Snapshot, config: &PlaceConfig, interrupt: &Interrupt) -> Plan {
    let solver = settled(snapshot, config, interrupt);
    let beyond_search = |pool: &PoolView<'_>| !pool.variety.is_none() || !pool.reserved.is_empty();
    if snapshot.pending.len() > search::PODS_MAX || solver.pools.iter().any(beyond_search) {
        return solver.finish();
    }
    let mut known = solver.cost();
    let mut plan = solver.finish();
    for wishes in [Wishes::Kept, Wishes::GivenUp] {
        let is_whole = known.unplaced.iter().all(|pods| *pods == 0);
        if is_whole && (wishes == Wishes::GivenUp || plan.price() <= plan.bound) {
            break;
        }
        let mut solver = Solver::new(snapshot, config, interrupt, BTreeMap::new());
        let before = plan.steps;
        if search::improve(&mut solver, &known, wishes) {
            let cost = solver.cost();
            // A bound holds for plans that place as many pods, and keep as many wishes.
            solver.gave_wishes_up = wishes == Wishes::GivenUp;
            let is_comparable = cost.unplaced == known.unplaced && !solver.gave_wishes_up;
            let bound = if is_comparable { plan.bound } else { Price::from_dollars(solver.bound_at_large()) };
            known = cost;
            plan = Plan { bound, ..solver.finish() };
            plan.steps += before;
        } else {
            plan.steps += solver.steps;
        }
    }
    plan
}

/// More rounds than this without an end mean that pools close one by one; then all of them do.
const ROUNDS_MAX: usize = 8;

/// Seats and packs all pods. When limits leave no room for pods on whose presence others rely, everything is worked out
/// again with that pool closed to them.
fn settled<'a>(snapshot: &'a Snapshot, config: &'a PlaceConfig, interrupt: &'a Interrupt) -> Solver<'a> {
    let mut known: BTreeMap<usize, Barred> = BTreeMap::new();
    let mut rounds = 0;
    loop {
        let mut solver = Solver::new(snapshot, config, interrupt, known.clone());
        solver.seat_all();
        solver.pack_all();
        let overflow = solver.ruled_overflow();
        if overflow.is_empty() {
            return solver;
        }
        for (class, Barred { pods, pools }) in overflow {
            let barred = known.entry(class).or_default();
            // Pods that were barred already and overflow again are the same ones.
            let news = !pools.is_subset(&barred.pools) || barred.pods == 0;
            barred.pods =
                solver.classes[class].pods.len().min(if news { barred.pods.max(pods) } else { barred.pods + pods });
            barred.pools.extend(pools);
            if rounds >= ROUNDS_MAX || interrupt.is_raised() {
                barred.pods = solver.classes[class].pods.len();
                barred.pools.extend(0..solver.pools.len());
            }
        }
        rounds += 1;
    }
}
