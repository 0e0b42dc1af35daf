//! A seed's cluster, its plan, and what the planned nodes turn into.

use std::collections::BTreeMap;

use fastrand::Rng;
use model::{
    Labels, NodeName, Place, PlaceId, Plan, PlannedClaim, PodKey, Requirement, Requirements, Resources, Snapshot,
    Taint, Text, labels,
};
use planner::{PlaceConfig, place};

use crate::chance::{Size, cluster};
use crate::language::Scenario;

/// The label that keeps seeds apart.
const SEED: &str = "agreement";

/// Volumes are left out: their claims would have to be bound by hand.
const SIZE: Size = Size { pods_min: 2, pods_max: 12, limits: true, volumes: false };

/// What happens to the pods of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// They come one after the other, where they were planned.
    Steered,
    /// They come all at once, wherever they like. Without limits: what a pool may not add, no second round can mend.
    LeftAlone,
}

/// A node to make.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) taints: Vec<Taint>,
    pub(crate) allocatable: Resources,
}

/// A cluster that is planned.
pub(crate) struct Case {
    /// Namespace of its pods, and the beginning of its nodes' names.
    pub(crate) name: String,
    text: String,
    scenario: Scenario,
    pub(crate) plan: Plan,
    /// Nodes that are there.
    pub(crate) existing: Vec<Machine>,
    /// Nodes that the plan makes.
    pub(crate) planned: Vec<Machine>,
    /// The node of each planned pod.
    pub(crate) seats: BTreeMap<PodKey, String>,
}

impl Case {
    pub(crate) fn new(seed: u64, phase: Phase) -> Self {
        let (name, limits) = match phase {
            Phase::Steered => (format!("steered-{seed}"), true),
            Phase::LeftAlone => (format!("alone-{seed}"), false),
        };
        let text = fenced(&cluster(seed, Size { limits, ..SIZE }), &name);
        let scenario = Scenario::parse(&text);
        let plan = place(&scenario.snapshot, &PlaceConfig::default());
        let existing = scenario.snapshot.places.iter().map(|place| existing(&name, place)).collect();
        let mut case =
            Self { name, text, scenario, existing, planned: Vec::new(), seats: BTreeMap::new(), plan: Plan::default() };
        (case.planned, case.seats) = case.carried_out(case.snapshot(), &plan, seed, 1);
        case.plan = plan;
        case
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.scenario.snapshot
    }

    /// The cluster and its plan, ready to become a scenario.
    pub(crate) fn shown(&self) -> String {
        format!("{}\nplanned:\n{}\n", self.text, self.scenario.render(&self.plan))
    }

    /// The nodes that a plan makes in a round, each turned by chance into one that its claim admits, and the node of
    /// every pod.
    pub(crate) fn carried_out(
        &self,
        snapshot: &Snapshot,
        plan: &Plan,
        seed: u64,
        round: u32,
    ) -> (Vec<Machine>, BTreeMap<PodKey, String>) {
        let mut rng = Rng::with_seed(seed);
        let mut machines = Vec::new();
        let mut seats = BTreeMap::new();
        for (index, claim) in plan.claims.iter().enumerate() {
            let machine = bought(snapshot, claim, &mut rng, format!("{}-new-{round}-{index}", self.name));
            seats.extend(claim.pods.iter().map(|pod| (pod.clone(), machine.name.clone())));
            machines.push(machine);
        }
        for nomination in &plan.nominations {
            let node = self.node_name(&nomination.place);
            seats.extend(nomination.pods.iter().map(|pod| (pod.clone(), node.clone())));
        }
        (machines, seats)
    }

    fn node_name(&self, place: &PlaceId) -> String {
        match place {
            PlaceId::Node(name) => node_name(&self.name, name.as_str()),
            PlaceId::Claim(name) => node_name(&self.name, name.as_str()),
        }
    }

    /// The name of a node of the snapshot on the API server.
    pub(crate) fn real_name(&self, node: &NodeName) -> String {
        node_name(&self.name, node.as_str())
    }
}

fn node_name(case: &str, node: &str) -> String {
    if node.starts_with(case) { node.to_owned() } else { format!("{case}-{node}") }
}

/// The cluster with a fence around it: pools and nodes give a label, and pods ask for it.
fn fenced(text: &str, name: &str) -> String {
    let fence = |line: &str| match line.split(' ').next() {
        Some("pool" | "node" | "joining") => format!("{line} label={SEED}={name}"),
        Some("pod") => format!("{line} select={SEED}={name}"),
        _ => line.to_owned(),
    };
    text.lines().map(fence).collect::<Vec<_>>().join("\n")
}

fn existing(case: &str, place: &Place) -> Machine {
    let name = match &place.id {
        PlaceId::Node(name) => node_name(case, name.as_str()),
        PlaceId::Claim(name) => node_name(case, name.as_str()),
    };
    let mut labels = single_values(&place.requirements);
    labels.insert(Text::from(labels::HOSTNAME), Text::from(name.as_str()));
    // What runs there is taken off what there is: nobody needs to see those pods.
    Machine { name, labels, taints: place.taints.clone(), allocatable: place.allocatable.minus(&place.used) }
}

fn bought(snapshot: &Snapshot, claim: &PlannedClaim, rng: &mut Rng, name: String) -> Machine {
    let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool).expect("plans use pools that exist");
    let listed: Vec<_> = pool.types.iter().filter(|kind| claim.types.contains(&kind.name)).collect();
    let kind = listed[rng.usize(..listed.len())];
    let offerings: Vec<_> = kind.offerings_for(&claim.requirements).collect();
    let offering = offerings[rng.usize(..offerings.len())];
    let mut labels = single_values(&claim.requirements);
    labels.extend(single_values(&kind.requirements));
    labels.extend(single_values(&offering.requirements));
    for (key, requirement) in claim.requirements.iter() {
        let custom = !snapshot.vocabulary.is_well_known(key) && !labels.contains_key(key);
        let value = requirement.values().find(|value| requirement.admits(value)).filter(|_| custom);
        labels.extend(value.map(|value| (key.clone(), value.clone())));
    }
    labels.insert(Text::from(labels::HOSTNAME), Text::from(name.as_str()));
    Machine { name, labels, taints: pool.taints.clone(), allocatable: kind.allocatable.clone() }
}

fn single_values(requirements: &Requirements) -> Labels {
    let single = |(key, requirement): (&Text, &Requirement)| Some((key.clone(), requirement.single_value()?.clone()));
    requirements.iter().filter_map(single).collect()
}
