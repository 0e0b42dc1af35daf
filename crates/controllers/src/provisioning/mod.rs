//! Provisioning: waiting pods in, claims out.

mod batch;
mod claims;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::NodePool;
use futures::future::join_all;
use jiff::SignedDuration;
use model::{ClaimName, PlaceId, PlannedClaim, PodKey, PoolName, Purpose, Snapshot};
use state::Object;
use tokio::time::Instant;

pub(crate) use batch::Batch;
pub(crate) use claims::quantities;

use crate::context::Context;
use crate::work::{Next, Outcome, WorkError};
use crate::write::{self, WriteError};

/// Pods that need a place are looked at again after this long, should nothing change before.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
const SHORTEST_NOMINATION: Duration = Duration::from_secs(10);

/// A claim of the plan that now exists.
pub(crate) struct CreatedClaim {
    name: ClaimName,
    planned: PlannedClaim,
}

/// One pass: snapshot, plan, create, report.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    let closed = context.notes().window_closed.take().unwrap_or_else(Instant::now);
    refresh_types(context).await;
    let now = context.now();
    let (snapshot, pools) = {
        let mut cluster = context.cluster();
        let pools: BTreeMap<PoolName, Arc<NodePool>> =
            cluster.pools().map(|(name, pool)| (name.clone(), Arc::clone(pool))).collect();
        (cluster.snapshot(now), pools)
    };
    if snapshot.pending.is_empty() {
        report::ignored(context);
        context.notes().passes += 1;
        return Ok(Next::OnChange);
    }
    let solve_started = Instant::now();
    let solved = context.solver.solve(Arc::clone(&snapshot), context.place_config).await;
    let plan = solved.ok_or(WorkError::Unsolved)?;
    context.metrics.solved(solve_started.elapsed().as_secs_f64(), &plan);
    report::plan(&plan, snapshot.pools.is_empty(), closed, solve_started);
    let real = RealPods::of(&snapshot);
    let kept = plan.nominations.iter().filter(|nomination| real.is_any_of(&nomination.pods));
    nominate(context, kept.map(|nomination| nomination.place.clone()));
    let creations = plan.claims.iter().enumerate().map(|(index, planned)| {
        let pool = pools.get(&planned.pool).cloned();
        create(context, pool, planned, NewClaim { index, closed, awaits_pods: real.is_any_of(&planned.pods) })
    });
    let (created, failed) = split(join_all(creations).await);
    report::events(context, &plan, &created, &real);
    context.notes().passes += 1;
    finish(failed)
}

/// Tells pods that wait from room that is only kept free.
pub(crate) struct RealPods<'a> {
    headroom: BTreeSet<&'a PodKey>,
}

impl<'a> RealPods<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let headroom = snapshot.pending.iter().filter(|pod| pod.purpose == Purpose::Headroom);
        Self { headroom: headroom.map(|pod| &pod.key).collect() }
    }

    fn is_any_of(&self, pods: &[PodKey]) -> bool {
        self.among(pods).next().is_some()
    }

    fn among<'b>(&'b self, pods: &'b [PodKey]) -> impl Iterator<Item = &'b PodKey> {
        pods.iter().filter(|pod| !self.headroom.contains(pod))
    }
}

/// As long as pods need a place they are planned again now and then: it renews the nominations that keep their nodes.
fn finish(failed: Vec<WriteError>) -> Outcome {
    failed.into_iter().next().map_or(Ok(Next::After(LOOK_AGAIN)), |error| Err(error.into()))
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

/// Asks the provider what each pool can buy now. A pool whose question fails keeps its last answer; others go on.
async fn refresh_types(context: &Context) {
    let pools: Vec<Arc<NodePool>> = context.cluster().pools().map(|(_, pool)| Arc::clone(pool)).collect();
    for pool in pools {
        let Some(name) = pool.metadata.name.as_deref().map(PoolName::new) else { continue };
        match context.provider.instance_types(&pool).await {
            Ok(types) => context.cluster().set_types(name, types),
            Err(error) => tracing::error!(NodePool.name = %name, %error, "could not list instance types"),
        }
    }
}

/// What is to be known about a claim that is about to be made.
struct NewClaim {
    /// Its number in the plan.
    index: usize,
    /// When the window of the pass closed.
    closed: Instant,
    /// Whether pods will come, rather than room be kept.
    awaits_pods: bool,
}

async fn create(
    context: &Context,
    pool: Option<Arc<NodePool>>,
    planned: &PlannedClaim,
    NewClaim { index, closed, awaits_pods }: NewClaim,
) -> Result<Option<CreatedClaim>, WriteError> {
    // The pool went away while the planner was thinking: its pods are planned anew.
    let Some(pool) = pool else { return Ok(None) };
    let types = context.cluster().types(&planned.pool).cloned().unwrap_or_else(|| Arc::from([]));
    let launch_id = context.draw_launch_id();
    let draft = claims::draft(planned, &pool, &types, &context.provider.vocabulary(), launch_id);
    let claim = write::create_claim(context, &draft).await?;
    let name = ClaimName::new(claim.metadata.name.as_deref().unwrap_or_default());
    context.notes().fresh.insert(name.clone(), ());
    if awaits_pods {
        nominate(context, [PlaceId::Claim(name.clone())]);
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

fn nominate(context: &Context, places: impl IntoIterator<Item = PlaceId>) {
    let length = (context.batch_max * 2).max(SHORTEST_NOMINATION);
    let until = context.now() + SignedDuration::try_from(length).unwrap_or(SignedDuration::from_secs(20));
    let mut cluster = context.cluster();
    for place in places {
        cluster.nominate(place, until);
    }
}
