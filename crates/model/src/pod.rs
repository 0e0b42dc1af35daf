//! Pods as the planner sees them: classes of equal pods, and daemons that come with every node.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::{Effect, PodKey, Requirements, Resources, Text, Toleration};

/// A scheduling rule that pods can state and that this planner does not know yet.
///
/// Pods with such a rule are refused with it: launching a node that the kube-scheduler then rejects helps nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A topology spread constraint that must hold.
    TopologySpread,
    /// A required pod affinity.
    PodAffinity,
    /// A required pod anti-affinity.
    PodAntiAffinity,
    /// A persistent volume claim.
    PersistentVolume,
    /// A port of the host.
    HostPort,
    /// A dynamic resource claim.
    ResourceClaim,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TopologySpread => "a topology spread constraint with whenUnsatisfiable DoNotSchedule",
            Self::PodAffinity => "a required pod affinity",
            Self::PodAntiAffinity => "a required pod anti-affinity",
            Self::PersistentVolume => "a persistent volume claim",
            Self::HostPort => "a host port",
            Self::ResourceClaim => "a dynamic resource claim",
        })
    }
}

/// A wish about labels, with its weight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Preference {
    /// 1 to 100; heavier wishes are tried first.
    pub weight: i32,
    /// The wish.
    pub requirements: Requirements,
}

/// Everything about a pod that decides where it may run. Equal pods share one class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodClass {
    /// The pod's priority; higher first.
    pub priority: i32,
    /// What it asks for, with `pods` = 1.
    pub requests: Resources,
    /// Node selector and required node affinity; one of these must hold. Never empty.
    pub alternatives: Vec<Requirements>,
    /// Preferred node affinity.
    pub preferences: Vec<Preference>,
    /// Taints it puts up with.
    pub tolerations: Vec<Toleration>,
    /// Rules of the pod that the planner does not know.
    pub unplanned_rules: BTreeSet<Rule>,
}

/// One reading of a class: preferences are taken for requirements as long as that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Requirements of this reading.
    pub requirements: Requirements,
    /// Tolerations of this reading.
    pub tolerations: Vec<Toleration>,
}

impl PodClass {
    /// The readings of this class, strictest first: every preference in turn with each alternative, then without
    /// preferences, and last without regard to `PreferNoSchedule` taints.
    pub fn attempts(&self) -> Vec<Attempt> {
        let mut preferences: Vec<&Preference> = self.preferences.iter().collect();
        preferences.sort_by_key(|preference| std::cmp::Reverse(preference.weight));
        let preferred = preferences.iter().flat_map(|preference| {
            // A wish that contradicts an alternative is no reading of the pod: together they would ask for absence.
            let possible = |alternative: &&Requirements| alternative.intersect(&preference.requirements).is_ok();
            self.alternatives.iter().filter(possible).map(|alternative| alternative.and(&preference.requirements))
        });
        let strict = preferred.chain(self.alternatives.iter().cloned());
        let attempt = |requirements| Attempt { requirements, tolerations: self.tolerations.clone() };
        let mut attempts: Vec<Attempt> = strict.map(attempt).collect();
        let mut relaxed = self.tolerations.clone();
        relaxed.push(Toleration::of_effect(Effect::PreferNoSchedule));
        let last =
            |requirements: &Requirements| Attempt { requirements: requirements.clone(), tolerations: relaxed.clone() };
        attempts.extend(self.alternatives.iter().map(last));
        attempts
    }
}

/// Equal pods that wait for a place, in the order of their age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingGroup {
    /// Their common class.
    pub class: Arc<PodClass>,
    /// The pods.
    pub pods: Vec<PodKey>,
}

/// A DaemonSet: one pod of this class comes with every node that it may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Namespace and name of the DaemonSet.
    pub name: Text,
    /// What its pods look like.
    pub class: Arc<PodClass>,
}
