//! What is arranged: kinds of pods in a good order, and the nodes that are there.

use std::rc::Rc;

use model::Stage;

use super::{Kind, Node, Site, Wishes};
use crate::bound::Demanded;
use crate::solver::Solver;
use crate::stance::Stance;
use crate::tallies::TallyId;

/// The ranks of the priorities, highest first.
pub(crate) fn ranks(solver: &Solver<'_>) -> Vec<i32> {
    let mut priorities: Vec<i32> = solver.classes.iter().map(|class| class.spec.priority).collect();
    priorities.sort_unstable_by(|left, right| right.cmp(left));
    priorities.dedup();
    priorities
}

/// Whether a pod of a class could go anywhere at all in a reading.
pub(super) fn goes_somewhere(solver: &mut Solver<'_>, class: usize, stance: &Stance) -> bool {
    let vocabulary = &solver.snapshot.vocabulary;
    solver.places.iter().any(|view| view.takes(&solver.classes[class], stance, vocabulary) > 0)
        || (0..solver.pools.len()).any(|pool| solver.menu_without_limits(pool, class, stance).is_some())
}

/// One kind for each class that can go somewhere.
pub(super) fn kinds(solver: &mut Solver<'_>, demanded: &[Demanded], duals: &[f64], wishes: Wishes) -> Vec<Kind> {
    let ranks = ranks(solver);
    let mut kinds = Vec::new();
    for class in 0..solver.classes.len() {
        let stances = solver.stances(class);
        if !solver.classes[class].spec.unplanned_rules.is_empty() {
            continue;
        }
        let goes = |stance: &&Rc<Stance>| goes_somewhere(solver, class, stance);
        let stance = match wishes {
            Wishes::Kept => stances.iter().find(goes),
            Wishes::GivenUp => stances.iter().rev().find(goes),
        };
        let Some(stance) = stance else { continue };
        let spec = &solver.classes[class].spec;
        let demand = &solver.classes[class].demand;
        let row = demanded.iter().position(|row| row.demand == *demand && row.classes.contains(&class));
        kinds.push(Kind {
            class,
            stance: Rc::clone(stance),
            pods: solver.classes[class].pods.len(),
            rank: ranks.iter().position(|priority| *priority == spec.priority).unwrap_or(0),
            worth: row.and_then(|row| duals.get(row)).copied().unwrap_or(0.0),
        });
    }
    kinds
}

/// Tallies by which others can help a kind to its place.
pub(super) fn heeded(kind: &Kind) -> Vec<TallyId> {
    let rules = &kind.stance.rules;
    let spread = rules.spread.iter().map(|rule| rule.tally);
    let near = rules.near.iter().chain(&rules.host_near).map(|rule| rule.tally);
    spread.chain(near).collect()
}

/// Whether a kind counts for one of these tallies.
pub(super) fn is_counted(solver: &Solver<'_>, kind: &Kind, tallies: &[TallyId]) -> bool {
    let looks = &solver.looks[kind.class];
    looks.counted.iter().chain(&looks.counted_by_host).any(|tally| tallies.contains(tally))
}

/// Whoever is heeded comes before those who heed, as far as possible: what cannot come about shows early then.
pub(super) fn in_order(solver: &Solver<'_>, kinds: Vec<Kind>) -> Vec<Kind> {
    let mut left: Vec<Kind> = kinds;
    let mut ordered = Vec::with_capacity(left.len());
    // Those with rules and those they heed first: whoever is free fits in afterwards.
    while !left.is_empty() {
        let waits = |position: usize| {
            let heeded = heeded(&left[position]);
            left.iter().enumerate().any(|(other, kind)| other != position && is_counted(solver, kind, &heeded))
        };
        let ready = |position: &usize| !waits(*position);
        let ruled = |position: &usize| !left[*position].stance.rules.is_free();
        let next = (0..left.len()).filter(ruled).find(ready).or_else(|| (0..left.len()).find(ruled)).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

/// Whether a kind has rules that depend on who comes first, and nobody up to it heeds anybody after it.
pub(super) fn settles(solver: &Solver<'_>, kinds: &[Kind], last: usize) -> bool {
    let closed = |kind: &Kind| {
        let heeded = heeded(kind);
        !kinds[last + 1..].iter().any(|later| is_counted(solver, later, &heeded))
    };
    !heeded(&kinds[last]).is_empty() && kinds[..=last].iter().all(closed)
}

/// Whether each pool is the first for some kind, limits of the earlier ones permitting.
pub(super) fn useful(solver: &mut Solver<'_>, kinds: &[Kind]) -> Vec<bool> {
    let mut useful = vec![false; solver.pools.len()];
    for kind in kinds {
        for (pool, useful) in useful.iter_mut().enumerate() {
            if solver.menu_without_limits(pool, kind.class, &kind.stance).is_some() {
                *useful = true;
                if solver.pools[pool].limits.is_unlimited() {
                    break;
                }
            }
        }
    }
    useful
}

/// Whether pods of some kind could go to a place.
pub(super) fn takes_any(solver: &Solver<'_>, place: usize, kinds: &[Kind]) -> bool {
    let (view, vocabulary) = (&solver.places[place], &solver.snapshot.vocabulary);
    kinds.iter().any(|kind| view.takes(&solver.classes[kind.class], &kind.stance, vocabulary) > 0)
}

pub(super) fn place_node(solver: &Solver<'_>, place: usize, kinds: usize) -> Node {
    let view = &solver.places[place];
    Node {
        site: Site::Place(place),
        used: vec![0; solver.table.len()].into(),
        pods: vec![0; kinds],
        host_ports: view.host_ports.clone(),
        attached: view.attached.clone(),
        domains: solver.tallies.domains_of_place(place),
        relied_on: (view.place.stage == Stage::Promised).then(|| view.place.requirements.clone()),
    }
}
