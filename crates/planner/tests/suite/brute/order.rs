//! Whether pods can come to their nodes one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::NodeName;
use referee::{Question, Situation};

use super::problem::Problem;

/// So many pods of a kind that go to a node.
#[derive(Clone, Debug)]
pub(super) struct Party {
    pub(super) kind: usize,
    pub(super) node: NodeName,
    pub(super) count: usize,
}

/// Whether there is an order in which the kube-scheduler accepts every pod at its node, both with the nodes that are
/// there alone and with all domains counted that could be made.
pub(super) fn exists(problem: &Problem, situation: &Situation, parties: &[Party], part: Part) -> bool {
    let mut wide = situation.clone();
    problem.domains.iter().for_each(|node| wide.put_node(node.clone()));
    let mut worlds = match part {
        Part::Whole => vec![wide, situation.clone()],
        Part::Beginning => vec![wide],
    };
    let mut search = Order { problem, parties, dead: BTreeSet::new() };
    let mut taken: Vec<usize> = problem.kinds.iter().map(|_| 0).collect();
    let mut left: Vec<usize> = parties.iter().map(|party| party.count).collect();
    search.go(&mut worlds, &mut left, &mut taken)
}

/// How much of a plan is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// Nodes may be added, so that only an answer with all domains counted holds.
    Beginning,
}

struct Order<'a> {
    problem: &'a Problem,
    parties: &'a [Party],
    /// What remained where there was no way on.
    dead: BTreeSet<Vec<usize>>,
}

impl Order<'_> {
    fn go(&mut self, worlds: &mut [Situation], left: &mut Vec<usize>, taken: &mut Vec<usize>) -> bool {
        if left.iter().all(|count| *count == 0) {
            return true;
        }
        if self.dead.contains(left) {
            return false;
        }
        for index in 0..self.parties.len() {
            let party = &self.parties[index];
            if left[index] == 0 {
                continue;
            }
            let pod = Arc::clone(&self.problem.kinds[party.kind].pods[taken[party.kind]]);
            let welcome = |situation: &Situation| Question::new(situation, &pod).objections(&party.node).is_empty();
            if !worlds.iter().all(welcome) {
                continue;
            }
            let kind = party.kind;
            worlds.iter_mut().for_each(|world| world.bind(party.node.clone(), Arc::clone(&pod)));
            left[index] -= 1;
            taken[kind] += 1;
            let arrived = self.go(worlds, left, taken);
            taken[kind] -= 1;
            left[index] += 1;
            worlds.iter_mut().for_each(|world| drop(world.unbind(&pod.key)));
            if arrived {
                return true;
            }
        }
        self.dead.insert(left.clone());
        false
    }
}
