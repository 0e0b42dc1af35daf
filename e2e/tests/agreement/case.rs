//! A seed's cluster, its plan, and what the planned nodes turn into.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, ensure};
use fastrand::Rng;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::ResourceExt;
use model::{
    Daemon, InstanceType, Labels, PlaceId, Plan, PlannedClaim, PodKey, Requirement, Requirements, ResourceName,
    Resources, Snapshot, Taint, Text, labels,
};
use planner::{PlaceConfig, place};
use referee::Violation;
use serde_json::{Value, json};

use crate::bench::{Bench, unschedulable};
use crate::draw::{DRIVER, Draft, csi_node, read};

/// A plan for the waiting pods of a draft, and the nodes it makes.
pub(crate) struct Case {
    pub(crate) plan: Plan,
    pub(crate) carried_out: CarriedOut,
    /// The waiting pods by their keys.
    pub(crate) pods: BTreeMap<PodKey, Pod>,
}

impl Case {
    /// Plans for the waiting pods; nodes and pods are still to be made.
    pub(crate) async fn planned(bench: &Bench<'_>, draft: &Draft, seed: u64) -> Result<Self> {
        let mut pods: Vec<Pod> = bench.list().await?;
        let filled_in = try_join_all(draft.waiting.iter().map(|pod| bench.filled_in(pod))).await?;
        pods.extend(filled_in.into_iter().map(unschedulable));
        let snapshot = bench.snapshot(&pods).await?;
        let plan = judged_plan(&snapshot)?;
        let carried_out = CarriedOut::new(&draft.name, &snapshot, &plan, &Round { number: 1, seed, cordoned: false });
        let pods = draft.waiting.iter().map(|pod| (key_of(pod), pod.clone())).collect();
        Ok(Self { plan, carried_out, pods })
    }
}

/// The name of a pod.
pub(crate) fn key_of(pod: &Pod) -> PodKey {
    PodKey::new(pod.namespace().unwrap_or_default(), pod.name_any())
}

/// A plan that the referee has nothing against.
///
/// The planner leaves room for a daemon wherever its pool lets it run, though it be limited to one zone, as the reference
/// does. A pod that is refused for that alone is not refused needlessly.
pub(crate) fn judged_plan(snapshot: &Snapshot) -> Result<Plan> {
    let plan = place(snapshot, &PlaceConfig::default());
    let mut violations = referee::audit(snapshot, &plan);
    if violations.iter().any(is_needless) {
        let with_daemons = referee::audit(&with_daemons_everywhere(snapshot), &plan);
        violations.retain(|violation| !is_needless(violation) || with_daemons.contains(violation));
    }
    let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
    ensure!(violations.is_empty(), "the referee objects: {}\nto\n{}", violations.join("; "), shown(&plan));
    Ok(plan)
}

fn is_needless(violation: &Violation) -> bool {
    matches!(violation, Violation::NeedlesslyRefused { .. })
}

/// The snapshot with daemons that run wherever their pool and a type let them.
pub(crate) fn with_daemons_everywhere(snapshot: &Snapshot) -> Snapshot {
    let offerings = snapshot.pools.iter().flat_map(|pool| pool.types.iter()).flat_map(|kind| &kind.offerings);
    let chosen: BTreeSet<Text> =
        offerings.flat_map(|one| one.requirements.iter().map(|(key, _)| key.clone())).collect();
    let everywhere = |daemon: &Arc<Daemon>| {
        let mut class = daemon.class.as_ref().clone();
        for alternative in &mut class.alternatives {
            chosen.iter().for_each(|key| alternative.remove(key));
        }
        Arc::new(Daemon { class: Arc::new(class), ..daemon.as_ref().clone() })
    };
    Snapshot { daemons: snapshot.daemons.iter().map(everywhere).collect(), ..snapshot.clone() }
}

/// A plan as text.
pub(crate) fn shown(plan: &Plan) -> String {
    let names = |pods: &[PodKey]| pods.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let claims = plan.claims.iter().map(|claim| {
        let types: Vec<&str> = claim.types.iter().map(|kind| kind.as_str()).collect();
        format!("{} {} {}: {}", claim.pool, types.join("|"), claim.requirements, names(&claim.pods))
    });
    let places = plan.nominations.iter().map(|nomination| format!("{}: {}", nomination.place, names(&nomination.pods)));
    let nowhere = plan.unplaced.iter().map(|unplaced| {
        let reasons: Vec<String> = unplaced.refusals.iter().map(ToString::to_string).collect();
        format!("nowhere: {} ({})", names(&unplaced.pods), reasons.join("; "))
    });
    let sequence = std::iter::once(format!("in this order: {}", names(&plan.sequence)));
    claims.chain(places).chain(nowhere).chain(sequence).collect::<Vec<_>>().join("\n")
}

/// How a plan is carried out.
pub(crate) struct Round {
    pub(crate) number: u32,
    /// Chooses what claims turn into.
    pub(crate) seed: u64,
    /// Whether the new nodes take no pods yet.
    pub(crate) cordoned: bool,
}

/// The nodes that a plan makes, each turned by chance into one that its claim admits.
pub(crate) struct CarriedOut {
    pub(crate) nodes: Vec<Node>,
    pub(crate) csi_nodes: Vec<CSINode>,
    /// The node of every pod.
    pub(crate) seats: BTreeMap<PodKey, String>,
}

impl CarriedOut {
    pub(crate) fn new(cluster: &str, snapshot: &Snapshot, plan: &Plan, round: &Round) -> Self {
        let mut rng = Rng::with_seed(round.seed);
        let mut made = Self { nodes: Vec::new(), csi_nodes: Vec::new(), seats: BTreeMap::new() };
        for (index, claim) in plan.claims.iter().enumerate() {
            let name = format!("{cluster}-new-{}-{index}", round.number);
            let bought = Bought::new(snapshot, claim, &mut rng);
            let limit = bought.kind.attach_limits.get(DRIVER);
            made.csi_nodes.extend(limit.map(|limit| csi_node(cluster, &name, *limit)));
            made.nodes.push(bought.node(&name, round.cordoned));
            made.seats.extend(claim.pods.iter().map(|pod| (pod.clone(), name.clone())));
        }
        for nomination in &plan.nominations {
            let node = match &nomination.place {
                PlaceId::Node(name) => name.to_string(),
                PlaceId::Claim(name) => name.to_string(),
            };
            made.seats.extend(nomination.pods.iter().map(|pod| (pod.clone(), node.clone())));
        }
        made
    }
}

/// What a claim turned into.
struct Bought {
    kind: Arc<InstanceType>,
    labels: Labels,
    taints: Vec<Taint>,
}

impl Bought {
    fn new(snapshot: &Snapshot, claim: &PlannedClaim, rng: &mut Rng) -> Self {
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
        Self { kind: Arc::clone(kind), labels, taints: pool.taints.clone() }
    }

    fn node(&self, name: &str, cordoned: bool) -> Node {
        let mut own = self.labels.clone();
        own.insert(Text::from(labels::HOSTNAME), Text::from(name));
        let room = quantities(&self.kind.allocatable.clone().floored());
        let taint = |taint: &Taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect.as_str()});
        read(json!({
            "metadata": {"name": name, "labels": own, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "spec": {"taints": self.taints.iter().map(taint).collect::<Vec<_>>(), "unschedulable": cordoned},
            "status": {"allocatable": room, "capacity": room},
        }))
    }
}

fn single_values(requirements: &Requirements) -> Labels {
    let single = |(key, requirement): (&Text, &Requirement)| Some((key.clone(), requirement.single_value()?.clone()));
    requirements.iter().filter_map(single).collect()
}

fn quantities(resources: &Resources) -> Value {
    let quantity = |(name, amount): (&ResourceName, i64)| {
        let text = if name.is_cpu() { format!("{amount}m") } else { amount.to_string() };
        (name.to_string(), json!(text))
    };
    Value::Object(resources.iter().map(quantity).collect())
}
