//! Telling people what was planned: logs, events, gauges.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::lower::{PodFacts, PodFault};
use model::{ClaimName, Plan, PlannedClaim, PodKey, Unplaced};
use tokio::time::Instant;

use super::{CreatedClaim, RealPods};
use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};

/// A pod's failure is told every five minutes, not every pass.
const FAILURE_QUIET: std::time::Duration = std::time::Duration::from_secs(300);
const POOL_QUIET: std::time::Duration = std::time::Duration::from_secs(60);
/// A batch of a thousand pods is not a reason for a thousand events.
const NOMINATED_EVENTS_MAX: usize = 10;
/// Types shown in a log line.
const SHOWN_TYPES: usize = 5;

/// What the planner said.
pub(super) fn plan(plan: &Plan, no_pools: bool, closed: Instant, solve_started: Instant) {
    let pods = |count: usize, unplaced: &Unplaced| count + unplaced.pods.len();
    let unplaced = plan.unplaced.iter().fold(0, pods);
    let planned: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    let nominated: usize = plan.nominations.iter().map(|nomination| nomination.pods.len()).sum();
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

/// Events for pods and pools, and the gauges of pods without a place.
pub(super) fn events(context: &Context, plan: &Plan, created: &[CreatedClaim], real: &RealPods<'_>) {
    let on_claims = created.iter().flat_map(|claim| {
        real.among(&claim.planned.pods).map(|pod| (pod, format!("Pod should schedule on: nodeclaim/{}", claim.name)))
    });
    let on_places = plan.nominations.iter().flat_map(|nomination| {
        real.among(&nomination.pods).map(|pod| (pod, format!("Pod should schedule on: {}", nomination.place)))
    });
    for (pod, message) in on_claims.chain(on_places).take(NOMINATED_EVENTS_MAX) {
        notify(context, pod, |facts| Notice {
            about: about::pod(facts),
            tone: Tone::Normal,
            reason: "Nominated",
            message: message.clone(),
            quiet: QUIET,
        });
    }
    let mut unschedulable = 0;
    for unplaced in plan.unplaced.iter().filter(|unplaced| !is_deferred(unplaced)) {
        let pods: Vec<&PodKey> = real.among(&unplaced.pods).collect();
        let Some(first) = pods.first() else { continue };
        unschedulable += pods.len();
        let error = reasons(unplaced);
        tracing::error!(pods = pods.len(), %first, error, "could not schedule pod");
        let message = format!("Failed to schedule pod, {error}");
        for pod in pods {
            notify(context, pod, |facts| failure(facts, message.clone()));
        }
    }
    for barren in &plan.barren_pools {
        let pool = context.cluster().pool(&barren.pool).cloned();
        let Some(pool) = pool else { continue };
        let notice = Notice {
            about: about::pool(&pool),
            tone: Tone::Warning,
            reason: "NoCompatibleInstanceTypes",
            message: "NodePool requirements filtered out all compatible available instance types".to_owned(),
            quiet: POOL_QUIET,
        };
        context.recorder.publish(context.now(), notice);
    }
    let ignored = ignored(context);
    context.metrics.pods_unplaced(unschedulable, ignored);
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
        let message = format!("Failed to schedule pod, {}", texts.join("; "));
        context.recorder.publish(context.now(), failure(pod, message));
    }
    context.metrics.pods_unplaced(0, faulty.len());
    faulty.len()
}

fn failure(pod: &PodFacts, message: String) -> Notice {
    Notice { about: about::pod(pod), tone: Tone::Warning, reason: "FailedScheduling", message, quiet: FAILURE_QUIET }
}

fn notify(context: &Context, pod: &PodKey, notice: impl FnOnce(&PodFacts) -> Notice) {
    let facts = context.cluster().pod(pod).cloned();
    if let Some(facts) = facts {
        context.recorder.publish(context.now(), notice(&facts));
    }
}

#[cfg(test)]
mod tests {
    use model::{PodClass, PoolName, PoolRefusal, Refusal, Resources, Taint};

    use super::*;

    fn unplaced(refusals: Vec<Refusal>) -> Unplaced {
        let pool = |refusal| PoolRefusal { pool: PoolName::new("default"), refusal };
        let class = Arc::new(PodClass::plain(Resources::none()));
        Unplaced { class, pods: Vec::new(), refusals: refusals.into_iter().map(pool).collect(), places: Vec::new() }
    }

    /// Nobody is told of pods that only wait for the next pass, unless a pool says otherwise.
    #[test]
    fn deferrals_are_no_news() {
        let tainted = || Refusal::Untolerated { taint: Taint::new("gpu", "", model::Effect::NoSchedule) };
        let table = [
            (vec![], false),
            (vec![Refusal::ReservationsTaken], true),
            (vec![Refusal::ReservationsFull, Refusal::NotReached], true),
            (vec![Refusal::ReservationsTaken, tainted()], false),
        ];
        for (refusals, deferred) in table {
            assert_eq!(is_deferred(&unplaced(refusals.clone())), deferred, "{refusals:?}");
        }
    }

    /// One reason per pool.
    #[test]
    fn reasons_name_every_pool() {
        assert_eq!(reasons(&unplaced(vec![])), "no dynamic nodepools found");
        let both = unplaced(vec![Refusal::ReservationsFull, Refusal::NotReached]);
        assert_eq!(reasons(&both).matches("nodepool \"default\": ").count(), 2);
    }
}
