//! What daemons take of a node before any other pod does.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use model::{
    Daemon, Effect, HostPort, InstanceType, Place, PodClass, Pool, Requirement, Requirements, Resources, Stage, Taint,
    Toleration, Undefined, Vocabulary, labels,
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
    class: &'a PodClass,
    alternatives: Vec<&'a Requirements>,
}

/// What the daemons of a node take.
#[derive(Default)]
pub(crate) struct Burden {
    pub(crate) requests: Resources,
    pub(crate) host_ports: Vec<HostPort>,
}

/// The burden of a pool's types. Types with the same daemons share one value.
pub(crate) struct PoolDaemons<'a> {
    daemons: Vec<PoolDaemon<'a>>,
    sums: BTreeMap<Vec<bool>, Rc<Burden>>,
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
            class: &daemon.class,
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
    pub(crate) fn burden_on(&mut self, kind: &InstanceType) -> Rc<Burden> {
        let runs = |daemon: &PoolDaemon<'_>| {
            daemon.alternatives.iter().any(|alternative| kind.requirements.intersect(alternative).is_ok())
        };
        let running: Vec<bool> = self.daemons.iter().map(runs).collect();
        if let Some(sum) = self.sums.get(&running) {
            return Rc::clone(sum);
        }
        let mut sum = Burden::default();
        for (daemon, _) in self.daemons.iter().zip(&running).filter(|(_, runs)| **runs) {
            sum.requests.add(&daemon.class.requests);
            sum.host_ports.extend(daemon.class.host_ports.iter().cloned());
        }
        let sum = Rc::new(sum);
        self.sums.insert(running, Rc::clone(&sum));
        sum
    }
}

/// What daemons will still take of a place: those that belong there less those that run there, never below zero; and
/// the host ports of those that belong there.
pub(crate) fn still_to_come(
    place: &Place,
    daemons: &[Arc<Daemon>],
    vocabulary: &Vocabulary,
) -> (Resources, Vec<HostPort>) {
    if daemons.is_empty() || place.stage == Stage::Going {
        return (Resources::none(), Vec::new());
    }
    let labelled;
    let (requirements, undefined) = match place.stage {
        Stage::Ready | Stage::Going => (&place.requirements, Undefined::IsAbsent),
        Stage::Joining => {
            labelled = once_usable(&place.requirements);
            (&labelled, Undefined::IsAbsent)
        }
        Stage::Promised => {
            labelled = once_usable(&place.requirements);
            (&labelled, Undefined::MayBeGiven(vocabulary))
        }
    };
    let belongs = |daemon: &&Arc<Daemon>| {
        let class = &daemon.class;
        let satisfied = |alternative: &Requirements| requirements.satisfy(alternative, undefined).is_ok();
        tolerated(&place.taints, &class.tolerations) && class.alternatives.iter().any(satisfied)
    };
    let (mut sum, mut ports) = (Resources::none(), Vec::new());
    for daemon in daemons.iter().filter(belongs) {
        sum.add(&daemon.class.requests);
        ports.extend(daemon.class.host_ports.iter().cloned());
    }
    // A daemon's port that is taken already is most likely taken by that daemon itself.
    ports.retain(|port| !place.host_ports.contains(port));
    (sum.minus(&place.used_by_daemons).floored(), ports)
}
