//! Runs the planner on a scenario.

use std::collections::BTreeMap;
use std::time::Instant;

use model::{CapacityType, InstanceType, Offering, PlaceId, Plan, PlannedClaim, Snapshot, labels};
use planner::place;

use crate::lower::Cluster;
use crate::report::{Claim, Launch, Memory, Range, Report, Sizes, Spread, Statistics, Timing, Told};
use crate::scenario::{Scenario, ScenarioError};

/// A report with the plan it tells of.
pub struct Measured {
    /// The report.
    pub report: Report,
    /// What was planned for.
    pub snapshot: Snapshot,
    /// The plan.
    pub plan: Plan,
}

/// Does some work and says what it took of the heap. Only a program can choose its allocator, so only a program can tell.
pub type HeapMeter = fn(&mut dyn FnMut()) -> Memory;

/// The meter of a program that cannot tell: the work is done, and all counts are zero.
pub fn uncounted(work: &mut dyn FnMut()) -> Memory {
    work();
    Memory::default()
}

/// How a scenario is measured.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// How often.
    pub runs: usize,
    /// Whether the report tells every claim.
    pub detail: bool,
    /// Whether the referee looks at the plan. It takes its time: minutes for tens of thousands of pods.
    pub audit: bool,
    /// What counts memory.
    pub heap: HeapMeter,
}

/// Runs the planner so many times, each time from lowered pods and nodes, and once more to count memory.
///
/// Every run must give the same plan, and the referee looks at it; what it objects to is in the report.
pub fn measure(scenario: &Scenario, way: Way) -> Result<Measured, ScenarioError> {
    let Way { runs, detail, audit, heap } = way;
    let cluster = Cluster::of(scenario)?;
    let (mut taking, mut solving, mut total) = (Vec::new(), Vec::new(), Vec::new());
    let mut first: Option<(Snapshot, Plan)> = None;
    let mut violations = Vec::new();
    for _ in 0..runs.max(1) {
        let pending = cluster.pending();
        let begin = Instant::now();
        let snapshot = cluster.snapshot(pending);
        let taken = begin.elapsed();
        let plan = place(&snapshot, &cluster.config);
        let all = begin.elapsed();
        let milliseconds = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
        taking.push(milliseconds(taken));
        solving.push(milliseconds(all.saturating_sub(taken)));
        total.push(milliseconds(all));
        match &first {
            None => first = Some((snapshot, plan)),
            Some((_, known)) if *known != plan => violations.push("two runs gave two plans".to_owned()),
            Some(_) => {}
        }
    }
    let (snapshot, plan) = first.unwrap_or_else(|| {
        let snapshot = cluster.snapshot(cluster.pending());
        let plan = place(&snapshot, &cluster.config);
        (snapshot, plan)
    });
    let memory = memory(&cluster, heap);
    if audit {
        violations.extend(referee::audit(&snapshot, &plan).iter().map(ToString::to_string));
    }
    let result = told(&snapshot, &plan, detail);
    let total = Statistics::of(total);
    let sizes = sizes(scenario, &snapshot);
    let report = Report {
        runs: runs.max(1),
        spread: Spread {
            new_node_claims: Range::at(result.new_node_claims),
            price_per_hour: Range::at(result.price_per_hour),
            pod_errors: Range::at(result.pod_error_count),
        },
        timing: Timing {
            snapshot: Statistics::of(taking),
            solve: Statistics::of(solving),
            pods_per_second: if total.median > 0.0 { sizes.pods as f64 / total.median * 1e3 } else { 0.0 },
            total,
        },
        scenario: sizes,
        memory,
        violations,
        result,
    };
    Ok(Measured { report, snapshot, plan })
}

fn memory(cluster: &Cluster, heap: HeapMeter) -> Memory {
    let mut pending = Some(cluster.pending());
    // Kept beyond the count, as a controller keeps a plan: dropping it is no part of the work.
    let mut kept = None;
    heap(&mut || {
        let snapshot = cluster.snapshot(pending.take().unwrap_or_default());
        kept = Some(place(&snapshot, &cluster.config));
    })
}

fn sizes(scenario: &Scenario, snapshot: &Snapshot) -> Sizes {
    let bound = snapshot.bound.iter().flat_map(|(_, nodes)| nodes.values());
    Sizes {
        name: scenario.name.clone(),
        pods: snapshot.pending.len(),
        instance_types: scenario.instance_types.len(),
        node_pools: scenario.node_pools.len(),
        nodes: scenario.nodes.len(),
        bound_pods: bound.map(|count| usize::try_from(*count).unwrap_or(0)).sum(),
    }
}

fn told(snapshot: &Snapshot, plan: &Plan, detail: bool) -> Told {
    let claims: Vec<Claim> = plan.claims.iter().filter_map(|claim| claim_told(snapshot, claim)).collect();
    let names = |pods: &[model::PodKey]| pods.iter().map(ToString::to_string).collect::<Vec<_>>();
    let place_name = |id: &PlaceId| match id {
        PlaceId::Node(name) => name.to_string(),
        PlaceId::Claim(name) => name.to_string(),
    };
    let mut pod_errors = BTreeMap::new();
    for unplaced in &plan.unplaced {
        let reasons: Vec<String> = unplaced.refusals.iter().map(ToString::to_string).collect();
        pod_errors.extend(unplaced.pods.iter().map(|pod| (pod.to_string(), reasons.join("; "))));
    }
    Told {
        new_node_claims: plan.claims.len(),
        pods_on_new_nodes: plan.claims.iter().map(|claim| claim.pods.len()).sum(),
        pods_on_existing_nodes: plan.nominations.iter().map(|nomination| nomination.pods.len()).sum(),
        pod_error_count: pod_errors.len(),
        existing_nodes_used: plan.nominations.len(),
        price_per_hour: plan.price().dollars(),
        worst_launch_per_hour: claims.iter().map(|claim| claim.worst_launch_per_hour).sum(),
        bound_per_hour: plan.bound.dollars(),
        gap: plan.gap(),
        steps: plan.steps,
        timed_out: plan.interrupted,
        claims: if detail { claims } else { Vec::new() },
        existing: if detail {
            plan.nominations.iter().map(|one| (place_name(&one.place), names(&one.pods))).collect()
        } else {
            BTreeMap::new()
        },
        pod_errors,
    }
}

fn claim_told(snapshot: &Snapshot, claim: &PlannedClaim) -> Option<Claim> {
    let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool)?;
    let kind = pool.types.iter().find(|kind| Some(&kind.name) == claim.types.first())?;
    let offerings = offerings(kind, claim);
    let cheapest = offerings.iter().min_by_key(|offering| offering.price)?;
    let preferred = offerings.iter().map(|offering| offering.capacity_type()).min()?;
    let same = offerings.iter().filter(|offering| offering.capacity_type() == preferred);
    let worst = same.map(|offering| offering.price).max()?;
    let value = |key: &str| cheapest.requirements.get(key).and_then(|one| one.single_value()).map(ToString::to_string);
    let capacity_type: CapacityType = cheapest.capacity_type();
    Some(Claim {
        node_pool: claim.pool.to_string(),
        cheapest: Launch {
            instance_type: kind.name.to_string(),
            zone: value(labels::ZONE).unwrap_or_default(),
            capacity_type: capacity_type.as_str().to_owned(),
            price: cheapest.price.dollars(),
        },
        worst_launch_per_hour: worst.dollars(),
        requests: claim
            .requests
            .iter()
            .map(|(name, amount)| (name.to_string(), model::format_quantity(name, amount)))
            .collect(),
        pods: claim.pods.iter().map(ToString::to_string).collect(),
        instance_types: claim.types.iter().map(ToString::to_string).collect(),
    })
}

fn offerings<'a>(kind: &'a InstanceType, claim: &'a PlannedClaim) -> Vec<&'a Offering> {
    kind.offerings_for(&claim.requirements).collect()
}
