//! What daemons take of a node before any other pod does.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use model::{
    Daemon, Effect, InstanceType, Place, Pool, Requirement, Requirements, Resources, Stage, Taint, Toleration,
    Undefined, Vocabulary, labels,
};

/// The labels that a node of ours gets on its way to being usable. Daemons that select on them come with the node, so
/// planning takes the labels as given; they are not written to claims.
pub(crate) const GIVEN_LATER: [&str; 2] = [labels::REGISTERED, labels::INITIALIZED];

/// Requirements of a node of ours once it is usable.
pub(crate) fn once_usable(requirements: &Requirements) -> Requirements {
    GIVEN_LATER.into_iter().fold(requirements.clone(), |sum, key| sum.with(key, Requirement::is("true")))
}

/// Daemons never mind `PreferNoSchedule`: it does not keep them away.
fn tolerated(taints: &[Taint], tolerations: &[Toleration]) -> bool {
    let hard = |taint: &&Taint| taint.effect != Effect::PreferNoSchedule;
    taints.iter().filter(hard).all(|taint| tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

/// A daemon that may run on a pool's nodes, with those of its alternatives that the pool allows.
struct PoolDaemon<'a> {
    requests: &'a Resources,
    alternatives: Vec<&'a Requirements>,
}

/// The overhead of a pool's types. Types with the same daemons share one value.
pub(crate) struct PoolDaemons<'a> {
    daemons: Vec<PoolDaemon<'a>>,
    sums: BTreeMap<Vec<bool>, Rc<Resources>>,
}

impl<'a> PoolDaemons<'a> {
    /// The daemons of one pool; `requirements` are those of its nodes once they are usable.
    pub(crate) fn of(
        pool: &Pool,
        requirements: &Requirements,
        daemons: &'a [Arc<Daemon>],
        vocabulary: &Vocabulary,
    ) -> Self {
        let undefined = Undefined::MayBeGiven(vocabulary);
        let tolerating = daemons.iter().filter(|daemon| tolerated(&pool.taints, &daemon.class.tolerations));
        let allowed = tolerating.map(|daemon| PoolDaemon {
            requests: &daemon.class.requests,
            alternatives: daemon
                .class
                .alternatives
                .iter()
                .filter(|alternative| requirements.satisfy(alternative, undefined).is_ok())
                .collect(),
        });
        Self { daemons: allowed.filter(|daemon| !daemon.alternatives.is_empty()).collect(), sums: BTreeMap::new() }
    }

    /// What daemons take of a node of this type.
    pub(crate) fn overhead_on(&mut self, kind: &InstanceType) -> Rc<Resources> {
        let runs = |daemon: &PoolDaemon<'_>| {
            daemon.alternatives.iter().any(|alternative| kind.requirements.intersect(alternative).is_ok())
        };
        let running: Vec<bool> = self.daemons.iter().map(runs).collect();
        if let Some(sum) = self.sums.get(&running) {
            return Rc::clone(sum);
        }
        let mut sum = Resources::none();
        let counted = self.daemons.iter().zip(&running).filter(|(_, runs)| **runs);
        counted.for_each(|(daemon, _)| sum.add(daemon.requests));
        let sum = Rc::new(sum);
        self.sums.insert(running, Rc::clone(&sum));
        sum
    }
}

/// What daemons will still take of a place: those that belong there less those that run there, never below zero.
pub(crate) fn still_to_come(place: &Place, daemons: &[Arc<Daemon>], vocabulary: &Vocabulary) -> Resources {
    let (requirements, undefined) = match place.stage {
        Stage::Ready => (place.requirements.clone(), Undefined::IsAbsent),
        Stage::Joining => (once_usable(&place.requirements), Undefined::IsAbsent),
        Stage::Promised => (once_usable(&place.requirements), Undefined::MayBeGiven(vocabulary)),
    };
    let belongs = |daemon: &&Arc<Daemon>| {
        let class = &daemon.class;
        let satisfied = |alternative: &Requirements| requirements.satisfy(alternative, undefined).is_ok();
        tolerated(&place.taints, &class.tolerations) && class.alternatives.iter().any(satisfied)
    };
    let mut sum = Resources::none();
    daemons.iter().filter(belongs).for_each(|daemon| sum.add(&daemon.class.requests));
    sum.minus(&place.used_by_daemons).floored()
}
