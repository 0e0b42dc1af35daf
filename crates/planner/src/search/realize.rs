//! Carries a found arrangement out.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Found, Kind, Node, Site};
use crate::bins::Bin;
use crate::interner::Want;
use crate::solver::{Leftover, Order, Solver};

pub(super) fn realize(solver: &mut Solver<'_>, kinds: &[Kind], found: Found) {
    let Found { nodes, types, order } = found;
    let mut taken: Vec<usize> = vec![0; kinds.len()];
    // Which of equal pods go where follows the order, so that the sequence names them as they come.
    let mut seats: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    let mut take = |kind: usize, node: usize, taken: &mut Vec<usize>| {
        let pod = taken[kind];
        taken[kind] += 1;
        seats.entry((node, kind)).or_default().push(pod);
        pod
    };
    for (kind, node) in order {
        let pod = take(kind, node, &mut taken);
        let sequence =
            if kinds[kind].stance.rules.come_first() { &mut solver.sequence } else { &mut solver.host_sequence };
        sequence.push((kinds[kind].class, pod));
    }
    for (position, node) in nodes.iter().enumerate() {
        for (kind, _) in kinds.iter().enumerate().filter(|(_, kind)| kind.stance.rules.is_free()) {
            for _ in 0..node.pods[kind] {
                let pod = take(kind, position, &mut taken);
                if let Site::Place(_) = node.site {
                    solver.free_sequence.push((kinds[kind].class, pod));
                }
            }
        }
    }
    count(solver, kinds, &nodes);
    for (position, node) in nodes.into_iter().enumerate() {
        let content = seats.range((position, 0)..(position + 1, 0)).map(|((_, kind), pods)| (*kind, pods.clone()));
        let content: Vec<(usize, Vec<usize>)> = content.collect();
        match node.site {
            Site::Place(place) => {
                for (kind, pods) in content {
                    let Kind { class, stance, .. } = &kinds[kind];
                    solver.places[place].take(&solver.classes[*class], stance, pods.into_iter());
                }
            }
            Site::New { pool, menu } => {
                let mut bin = Bin::opened(pool, menu, node.domains.into_iter().collect(), solver.table.len());
                let candidate = types[&position];
                for (kind, pods) in content {
                    let Kind { class, stance, .. } = &kinds[kind];
                    let (count, settled) = (u32::try_from(pods.len()).unwrap_or(u32::MAX), pods.len());
                    let (class, stance) = (*class, Rc::clone(stance));
                    solver.orders.push(Order { class, stance, pool, pin: Want::NOTHING, menu, pods, settled });
                    solver.put(&mut bin, solver.orders.len() - 1, count);
                }
                bin.menu = menu;
                bin.kind = Some(candidate.kind);
                bin.price = candidate.price;
                let footprint = solver.pools[pool].kinds[candidate.kind].footprint.clone();
                solver.pools[pool].limits.take(&footprint, 1);
                solver.bins.push(bin);
            }
        }
    }
    for (kind, taken) in kinds.iter().zip(taken) {
        if taken < kind.pods {
            solver.leftovers.push(Leftover {
                class: kind.class,
                pods: (taken..kind.pods).collect(),
                crowded_out_of: None,
            });
        }
    }
    for class in 0..solver.classes.len() {
        if !kinds.iter().any(|kind| kind.class == class) {
            let pods = (0..solver.classes[class].pods.len()).collect();
            solver.leftovers.push(Leftover { class, pods, crowded_out_of: None });
        }
    }
}

/// Counts the pods with rules where they went: whoever is refused is told what stands in the way.
fn count(solver: &mut Solver<'_>, kinds: &[Kind], nodes: &[Node]) {
    for node in nodes {
        for (kind, pods) in
            kinds.iter().zip(&node.pods).filter(|(kind, pods)| !kind.stance.rules.is_free() && **pods > 0)
        {
            let pods = u32::try_from(*pods).unwrap_or(u32::MAX);
            let looks = Rc::clone(&solver.looks[kind.class]);
            for tally in looks.counted.iter().chain(&looks.counted_by_host) {
                let key = solver.tallies.get(*tally).key;
                match (node.site, node.domains.get(&key)) {
                    (Site::Place(place), _) => solver.tallies.add_on_place(*tally, place, pods),
                    (Site::New { .. }, Some(domain)) => solver.tallies.add(*tally, *domain, pods),
                    (Site::New { .. }, None) => solver.tallies.add_somewhere(*tally, pods),
                }
            }
        }
    }
}
