//! Provisioning: waiting pods in, claims out.

mod batch;
mod claims;
mod report;
mod spare;
mod untried;
mod zones;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::NodePool;
use cloud::{CloudError, InstanceTypes};
use futures::future::join_all;
use jiff::SignedDuration;
use model::{ClaimName, PlaceId, Plan, PlannedClaim, PodKey, PoolName, Purpose, Snapshot};
use state::{Cluster, Object};
use tokio::time::Instant;

pub(crate) use batch::{Batch, Trigger};
pub(crate) use claims::{Defaults, Particulars, from_template, quantities, seed_of};
pub(crate) use zones::EffectiveZone;

use crate::buffers::{self, Found};
use crate::context::Context;
use crate::lifecycle;
use crate::work::{Next, Outcome, WorkError};
use crate::write::{self, WriteError};

/// Pods that need a place are looked at again after this long, should nothing change before.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Prices are asked for this often, should no pod need a place before.
const PRICES_LAST: Duration = Duration::from_secs(3600);
/// Room that is only kept free is looked for anew after this long: a node may have gone or filled up unnoticed.
const LOOK_AGAIN_AT_ROOM: Duration = Duration::from_secs(30);
const SHORTEST_NOMINATION: Duration = Duration::from_secs(10);

/// A claim of the plan that now exists.
pub(crate) struct CreatedClaim {
    pub(crate) name: ClaimName,
    pub(crate) planned: PlannedClaim,
}

/// One pass: snapshot, plan, create, report.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    let closed = context.notes().window_closed.take().unwrap_or_else(Instant::now);
    refresh_types(context).await;
    let now = context.now();
    let (snapshot, pools, room) = {
        let mut cluster = context.cluster();
        let room = buffers::refresh(&mut cluster);
        let pools: BTreeMap<PoolName, Arc<NodePool>> =
            cluster.pools().map(|(name, pool)| (name.clone(), Arc::clone(pool))).collect();
        (cluster.snapshot(now), pools, room)
    };
    report::zones(context, &snapshot);
    let real = RealPods::of(&snapshot);
    if snapshot.pending.is_empty() {
        report::ignored(context);
        buffers::settle(context, &room, Found { plan: &Plan::default(), created: &[], real: &real }).await;
        context.notes().passes += 1;
        return Ok(Next::OnChange);
    }
    let solve_started = Instant::now();
    context.census.solving(now, snapshot.revision.to_string(), snapshot.pending.len());
    let solved = spare::solved(context, snapshot).await;
    context.census.solved();
    let (snapshot, mut plan) = solved.ok_or(WorkError::Unsolved)?;
    let real = RealPods::of(&snapshot);
    context.metrics.solved(solve_started.elapsed().as_secs_f64(), &plan);
    let untried = untried::put_off(context, &mut plan, &real);
    if real.are_waiting() || !plan.claims.is_empty() {
        report::plan(&plan, &real, snapshot.pools.is_empty(), closed, solve_started);
    }
    report::decisions(context, &plan, &real);
    nominate(context, real.expected_on(&plan).cloned());
    expect_pods(context, &plan, &real);
    let creations = plan.claims.iter().enumerate().map(|(index, planned)| {
        let pool = pools.get(&planned.pool).cloned();
        let expected: Vec<PodKey> = real.among(&planned.pods).cloned().collect();
        create(context, pool, planned, NewClaim { index, closed, expected })
    });
    let (created, failed) = split(join_all(creations).await);
    let kept = untried.iter().filter_map(|pod| Some((pod.clone(), snapshot.seats.get(pod)?.clone())));
    let seats = seats(&plan, &created, &real).into_iter().chain(kept).collect();
    context.cluster().set_seats(seats);
    report::events(context, &plan, &created, &real);
    buffers::settle(context, &room, Found { plan: &plan, created: &created, real: &real }).await;
    context.notes().passes += 1;
    let look_again = match () {
        () if !untried.is_empty() => untried::AT_WORK,
        () if real.are_waiting() || !created.is_empty() => LOOK_AGAIN,
        () => LOOK_AGAIN_AT_ROOM,
    };
    finish(failed, look_again)
}

/// Tells pods that wait from room that is only kept free.
pub(crate) struct RealPods<'a> {
    headroom: BTreeSet<&'a PodKey>,
    count: usize,
}

impl<'a> RealPods<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let headroom = snapshot.pending.iter().filter(|pod| pod.purpose == Purpose::Headroom);
        let headroom: BTreeSet<&PodKey> = headroom.map(|pod| &pod.key).collect();
        Self { count: snapshot.pending.len() - headroom.len(), headroom }
    }

    /// Whether pods need a place, rather than room be kept.
    fn are_waiting(&self) -> bool {
        self.count > 0
    }

    /// Those of these pods that only stand for room.
    pub(crate) fn headroom_among<'b>(&'b self, pods: &'b [PodKey]) -> impl Iterator<Item = &'b PodKey> {
        pods.iter().filter(|pod| self.headroom.contains(pod))
    }

    /// The places that pods will come to. Room that is kept free keeps no place: the place may be taken away, and the
    /// room be kept elsewhere.
    fn expected_on<'b>(&'b self, plan: &'b Plan) -> impl Iterator<Item = &'b PlaceId> {
        plan.nominations
            .iter()
            .filter(|nomination| self.is_any_of(&nomination.pods))
            .map(|nomination| &nomination.place)
    }

    fn is_any_of(&self, pods: &[PodKey]) -> bool {
        self.among(pods).next().is_some()
    }

    fn among<'b>(&'b self, pods: &'b [PodKey]) -> impl Iterator<Item = &'b PodKey> {
        pods.iter().filter(|pod| !self.headroom.contains(pod))
    }
}

/// As long as pods need a place they are planned again now and then: it renews the nominations that keep their nodes.
fn finish(failed: Vec<WriteError>, look_again: Duration) -> Outcome {
    failed.into_iter().next().map_or(Ok(Next::After(look_again)), |error| Err(error.into()))
}

fn split(results: Vec<Result<Option<CreatedClaim>, WriteError>>) -> (Vec<CreatedClaim>, Vec<WriteError>) {
    let mut created = Vec::new();
    let mut failed = Vec::new();
    for result in results {
        match result {
            Ok(claim) => created.extend(claim),
            Err(error) => failed.push(error),
        }
    }
    (created, failed)
}

/// Asks what machines cost, every hour: prices change, and a process that has nothing to plan tells costs as well.
pub(crate) async fn refresh_prices(context: &Context) -> Outcome {
    refresh_types(context).await;
    Ok(Next::After(PRICES_LAST))
}

/// Asks the provider what each pool can buy now; answers whether every question was answered.
pub(crate) async fn refresh_types(context: &Context) -> bool {
    let pools: Vec<Arc<NodePool>> = context.cluster().pools().map(|(_, pool)| Arc::clone(pool)).collect();
    ask_types(context, pools).await
}

/// Asks what those pools can buy of which nothing is known: right after a start there may have been no pod to plan for.
pub(crate) async fn learn_types(context: &Context) {
    let pools: Vec<Arc<NodePool>> = {
        let cluster = context.cluster();
        let unknown = cluster.pools().filter(|(name, _)| cluster.types(name).is_none());
        unknown.map(|(_, pool)| Arc::clone(pool)).collect()
    };
    ask_types(context, pools).await;
}

async fn ask_types(context: &Context, pools: Vec<Arc<NodePool>>) -> bool {
    let mut is_complete = true;
    for pool in pools {
        let Some(name) = pool.metadata.name.as_deref().map(PoolName::new) else { continue };
        let answer = context.provider.instance_types(&pool).await;
        if answer.is_err() {
            is_complete = false;
            context.metrics.pools.cost_tracker_errors.inc([name.as_str()]);
        }
        hear_types(&mut context.cluster(), name, answer);
    }
    is_complete
}

/// A pool whose question fails keeps its last answer, and without one is left out; others go on.
fn hear_types(cluster: &mut Cluster, pool: PoolName, answer: Result<InstanceTypes, CloudError>) {
    match answer {
        Ok(types) => cluster.set_types(pool, types),
        Err(error) => tracing::error!(NodePool.name = %pool, %error, "could not list instance types"),
    }
}

/// What is to be known about a claim that is about to be made.
struct NewClaim {
    /// Its number in the plan.
    index: usize,
    /// When the window of the pass closed.
    closed: Instant,
    /// Pods that will come; none where only room is kept.
    expected: Vec<PodKey>,
}

async fn create(
    context: &Context,
    pool: Option<Arc<NodePool>>,
    planned: &PlannedClaim,
    NewClaim { index, closed, expected }: NewClaim,
) -> Result<Option<CreatedClaim>, WriteError> {
    // The pool went away while the planner was thinking: its pods are planned anew.
    let Some(pool) = pool else { return Ok(None) };
    let (types, marks) = {
        let cluster = context.cluster();
        let types = cluster.types(&planned.pool).cloned().unwrap_or_else(|| Arc::from([]));
        (types, cluster.overlay_marks(&planned.pool, &planned.types))
    };
    let sold = claims::Sold { types: &types, marks };
    let launch_id = context.draw_launch_id();
    let defaults = claims::Defaults { launch_id, grace: context.provider.default_termination_grace_period() };
    let draft = claims::draft(planned, &pool, sold, &context.provider.vocabulary(), defaults);
    let claim = match write::create_claim(context, &draft).await {
        Err(WriteError::Observed { .. }) => {
            report::would_create(context, planned);
            return Ok(None);
        }
        created => created?,
    };
    let name = ClaimName::new(claim.metadata.name.as_deref().unwrap_or_default());
    context.note_fresh(&name);
    if !expected.is_empty() {
        nominate(context, [PlaceId::Claim(name.clone())]);
        context.notes().expected.insert(name.clone(), expected);
    }
    context.learn(Object::Claim(claim));
    context.metrics.claim_created(planned.pool.as_str(), planned.min_values_relaxed);
    if index == 0 {
        let waited = closed.elapsed();
        context.metrics.first_claim_after(waited.as_secs_f64());
        tracing::info!(
            milliseconds = waited.as_secs_f64() * 1e3,
            "created first nodeclaim after the batch window closed"
        );
    }
    report::created(&name, planned);
    Ok(Some(CreatedClaim { name, planned: planned.clone() }))
}

/// Where the plan put pods, new claims by the names that they got. Room that is only kept free may be kept elsewhere the
/// next time.
fn seats(plan: &Plan, created: &[CreatedClaim], real: &RealPods<'_>) -> BTreeMap<PodKey, PlaceId> {
    let on_places = plan.nominations.iter().map(|nomination| (nomination.place.clone(), &nomination.pods));
    let on_claims = created.iter().map(|claim| (PlaceId::Claim(claim.name.clone()), &claim.planned.pods));
    let seats = on_places.chain(on_claims);
    seats.flat_map(|(place, pods)| real.among(pods).map(move |pod| (pod.clone(), place.clone()))).collect()
}

/// Remembers who waits for claims that are not launched yet, should that fail.
fn expect_pods(context: &Context, plan: &Plan, real: &RealPods<'_>) {
    let waits = |name: &ClaimName| context.cluster().claim(name).is_some_and(|claim| !lifecycle::is_launched(claim));
    let on_claims = plan.nominations.iter().filter_map(|nomination| match &nomination.place {
        PlaceId::Claim(name) if waits(name) => Some((name.clone(), real.among(&nomination.pods).cloned().collect())),
        PlaceId::Claim(_) | PlaceId::Node(_) => None,
    });
    let expected: BTreeMap<ClaimName, Vec<PodKey>> = on_claims.collect();
    context.notes().expected = expected;
}

fn nominate(context: &Context, places: impl IntoIterator<Item = PlaceId>) {
    let now = context.now();
    let span = lifecycle::believed_from(now)..now + nomination_length(context.batch_max);
    let mut cluster = context.cluster();
    for place in places {
        cluster.nominate(place, span.clone());
    }
}

/// Long enough for the pass that would find the pods missing again: two windows, and never less than ten seconds.
fn nomination_length(batch_max: Duration) -> SignedDuration {
    let length = batch_max.saturating_mul(2).max(SHORTEST_NOMINATION);
    SignedDuration::try_from(length).unwrap_or(SignedDuration::from_secs(20))
}

#[cfg(test)]
#[path = "provisioning_tests.rs"]
mod tests;
