//! Telling people what was planned: logs, events, gauges.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::NodePool;
use api::lower::{PodFacts, PodFault};
use model::{
    ClaimName, PendingPod, PlaceId, Plan, PlannedClaim, PodKey, PoolRefusal, Purpose, Refusal, Snapshot, Unplaced,
};
use state::Cluster;
use tokio::time::Instant;

use super::{CreatedClaim, RealPods, zones};
use crate::context::Context;
use crate::events::{Notice, Quiet, Tone, about};
use crate::lifecycle::name_of;

/// A pod's failure is told every five minutes, not every pass, be it that the numbers in it change.
const FAILURE_QUIET: Quiet = Quiet::of_gist(Duration::from_secs(300));
const POOL_QUIET: Quiet = Quiet::of_reason(Duration::from_secs(60));
const NOMINATED_QUIET: Quiet = Quiet::of_reason(Duration::from_secs(120));
/// Types shown in a log line.
const SHOWN_TYPES: usize = 5;

/// What the planner said.
pub(super) fn plan(plan: &Plan, real: &RealPods<'_>, no_pools: bool, closed: Instant, solve_started: Instant) {
    let count = |pods: &Vec<PodKey>| real.among(pods).count();
    let unplaced: usize = plan.unplaced.iter().map(|unplaced| count(&unplaced.pods)).sum();
    let planned: usize = plan.claims.iter().map(|claim| count(&claim.pods)).sum();
    let nominated: usize = plan.nominations.iter().map(|nomination| count(&nomination.pods)).sum();
    tracing::info!(
        pods = planned + nominated + unplaced,
        revision = %plan.revision,
        queued_milliseconds = solve_started.duration_since(closed).as_secs_f64() * 1e3,
        solve_milliseconds = solve_started.elapsed().as_secs_f64() * 1e3,
        "found provisionable pod(s)"
    );
    if no_pools {
        tracing::info!("no dynamic nodepools found");
    }
    if !plan.claims.is_empty() {
        tracing::info!(
            nodeclaims = plan.claims.len(), pods = planned, price = %plan.price(), bound = %plan.bound, gap = plan.gap(),
            "computed new nodeclaim(s) to fit pod(s)"
        );
    }
    if nominated > 0 {
        tracing::info!(nodes = plan.nominations.len(), pods = nominated, "computed unready node(s) will fit pod(s)");
    }
}

/// Which pods the plan has a place for, and which not.
pub(super) fn decisions(context: &Context, plan: &Plan, real: &RealPods<'_>) {
    let on_claims = plan.claims.iter().map(|claim| &claim.pods);
    let on_places = plan.nominations.iter().map(|nomination| &nomination.pods);
    let placed = on_claims.chain(on_places).flat_map(|pods| real.among(pods));
    let unplaced = plan.unplaced.iter().filter(|unplaced| !is_deferred(unplaced));
    context.census.decided(context, placed, unplaced.flat_map(|unplaced| real.among(&unplaced.pods)));
}

/// A claim that now exists.
pub(super) fn created(name: &ClaimName, planned: &PlannedClaim) {
    let shown: Vec<&str> = planned.types.iter().take(SHOWN_TYPES).map(|kind| kind.as_str()).collect();
    let more = planned.types.len().saturating_sub(SHOWN_TYPES);
    let types = if more > 0 { format!("{} and {more} other(s)", shown.join(", ")) } else { shown.join(", ") };
    tracing::info!(
        NodePool.name = %planned.pool, NodeClaim.name = %name, requests = %planned.requests, "instance-types" = types,
        pods = planned.pods.len(), price = %planned.price, "created nodeclaim"
    );
}

/// A claim that a process that only observes would have made. The same pods are told of once.
pub(super) fn would_create(context: &Context, planned: &PlannedClaim) {
    let is_new = context.notes().observed_pods(&planned.pods);
    if is_new {
        context.metrics.own.decisions.inc(["create", planned.pool.as_str()]);
        let types: Vec<&str> = planned.types.iter().take(SHOWN_TYPES).map(|kind| kind.as_str()).collect();
        tracing::info!(
            NodePool.name = %planned.pool, requests = %planned.requests, "instance-types" = types.join(", "),
            pods = planned.pods.len(), price = %planned.price, "would have created nodeclaim"
        );
    }
}

/// Events for pods and pools, and the gauges of pods without a place.
pub(super) fn events(context: &Context, plan: &Plan, created: &[CreatedClaim], real: &RealPods<'_>) {
    tell_nominations(context, plan, created, real);
    let mut unschedulable = 0;
    for unplaced in plan.unplaced.iter().filter(|unplaced| !is_deferred(unplaced)) {
        let pods: Vec<&PodKey> = real.among(&unplaced.pods).collect();
        let Some(first) = pods.first() else { continue };
        unschedulable += pods.len();
        let error = reasons(unplaced);
        tracing::error!(pods = pods.len(), %first, error, "could not schedule pod");
        for facts in pods.into_iter().filter_map(|pod| facts_of(context, pod)) {
            context.recorder.publish(context.now(), failure(&facts, &error));
        }
    }
    for refusal in &plan.barren_pools {
        let pool = context.cluster().pool(&refusal.pool).cloned();
        if let Some(pool) = pool {
            context.recorder.publish(context.now(), barren(&pool, refusal));
        }
    }
    let ignored = ignored(context);
    context.metrics.pods_unplaced(unschedulable, ignored);
}

/// Tells pods where they are expected, as far as the pace of such events allows: a batch of a thousand pods is not a
/// reason for a thousand events.
fn tell_nominations(context: &Context, plan: &Plan, created: &[CreatedClaim], real: &RealPods<'_>) {
    let on_claims = created.iter().map(|claim| (PlaceId::Claim(claim.name.clone()), &claim.planned.pods));
    let on_places = plan.nominations.iter().map(|nomination| (nomination.place.clone(), &nomination.pods));
    for (place, pods) in on_claims.chain(on_places) {
        let destination = destination(&context.cluster(), &place);
        for facts in real.among(pods).filter_map(|pod| facts_of(context, pod)) {
            if !context.recorder.publish_paced(context.now(), nominated(&facts, &destination)) {
                return;
            }
        }
    }
}

/// A place by the names that people look for: the claim's, the node's, or both.
fn destination(cluster: &Cluster, place: &PlaceId) -> String {
    let PlaceId::Node(name) = place else { return place.to_string() };
    let claim = cluster.node(name).and_then(|node| cluster.claim_of(node));
    let claim = claim.map(|claim| PlaceId::Claim(name_of(claim)));
    claim.iter().chain([place]).map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn nominated(pod: &PodFacts, destination: &str) -> Notice {
    Notice {
        about: about::pod(pod),
        tone: Tone::Normal,
        reason: "Nominated",
        message: format!("Pod should schedule on: {destination}"),
        quiet: NOMINATED_QUIET,
    }
}

/// A pool that can make no node at all.
fn barren(pool: &NodePool, refusal: &PoolRefusal) -> Notice {
    let cause = match refusal.refusal {
        Refusal::TooFewValues { .. } => " due to minValues incompatibility",
        _ => "",
    };
    Notice {
        about: about::pool(pool),
        tone: Tone::Warning,
        reason: "NoCompatibleInstanceTypes",
        message: format!("NodePool requirements filtered out all compatible available instance types{cause}"),
        quiet: POOL_QUIET,
    }
}

/// The gauge of pods that wait, by the zone they can be in.
pub(super) fn zones(context: &Context, snapshot: &Snapshot) {
    let waiting: Vec<&PendingPod> = {
        let cluster = context.cluster();
        let waits = |pod: &&PendingPod| {
            pod.purpose == Purpose::Work && cluster.pod(&pod.key).is_some_and(|facts| facts.node.is_none())
        };
        snapshot.pending.iter().filter(waits).collect()
    };
    context.metrics.pods_by_zone(&zones::by_zone(snapshot, context.place_config.preferences, waiting));
}

/// Pods that only have to wait for the next pass: no news, and no reason for an alert.
fn is_deferred(unplaced: &Unplaced) -> bool {
    let refusals = &unplaced.refusals;
    !refusals.is_empty() && refusals.iter().all(|refusal| refusal.refusal.is_deferral())
}

fn reasons(unplaced: &Unplaced) -> String {
    if unplaced.refusals.is_empty() {
        return "no dynamic nodepools found".to_owned();
    }
    unplaced.refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Tells about pods that cannot be planned at all; answers how many there are.
pub(super) fn ignored(context: &Context) -> usize {
    let faulty: Vec<(Arc<PodFacts>, BTreeSet<PodFault>)> = {
        let cluster = context.cluster();
        let told = cluster.waiting().map(|pod| (Arc::clone(pod), cluster.faults_of(pod)));
        told.filter(|(_, faults)| !faults.is_empty()).collect()
    };
    for (pod, faults) in &faulty {
        if faults.contains(&PodFault::KeepsAway) {
            continue;
        }
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        context.recorder.publish(context.now(), failure(pod, &texts.join("; ")));
    }
    context.metrics.pods_unplaced(0, faulty.len());
    faulty.len()
}

fn failure(pod: &PodFacts, error: &str) -> Notice {
    Notice {
        about: about::pod(pod),
        tone: Tone::Warning,
        reason: "FailedScheduling",
        message: format!("Failed to schedule pod, {error}"),
        quiet: FAILURE_QUIET,
    }
}

fn facts_of(context: &Context, pod: &PodKey) -> Option<Arc<PodFacts>> {
    context.cluster().pod(pod).cloned()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
