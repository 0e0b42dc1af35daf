//! The hub: one task that folds news, keeps the work queue and runs the reconcilers.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use api::lower::{GroupingKind, WorkloadKind};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use state::{Kind, Object, Wake};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;

use crate::census::QueueTold;
use crate::context::{Context, Signals};
use crate::metrics::PassResult;
use crate::planted::PlantedBug;
use crate::process::Mode;
use crate::provisioning::{Batch, Trigger};
use crate::queue::SharedQueue;
use crate::watches::News;
use crate::work::{self, Next, Outcome, Signal, Work, WorkError};
use crate::write::WriteError;
use crate::{
    buffers, collection, deletion_cost, disruption, lifecycle, overlays, pools, provisioning, static_capacity,
    termination,
};

/// Between two passes over all nodes in search of those that are no longer needed.
const DISRUPTION_PAUSE: Duration = Duration::from_secs(1);
/// Passes of one controller under way at once with one core: enough to keep the API server busy, few enough to be fair
/// to its other clients. With sixty cores there are [`RUNNING_MOST`].
pub(crate) const RUNNING_LEAST: usize = 128;
pub(crate) const RUNNING_MOST: usize = 1024;
/// A state that is incomplete for this long is worth a line in the log, and then one every now and then.
const UNSYNCED_PATIENCE: Duration = Duration::from_secs(30);
const UNSYNCED_REMINDER: Duration = Duration::from_secs(10);
/// News folded before work is looked at again.
const FOLD_AT_ONCE: usize = 512;

type Running = FuturesUnordered<BoxFuture<'static, (Work, Outcome)>>;

struct Hub {
    context: Arc<Context>,
    queue: SharedQueue,
    batch: Batch,
    /// When nodes that are no longer needed were last looked for.
    disrupted: Option<Instant>,
    /// Whether anything may be done.
    is_leading: bool,
    running: Running,
}

/// Runs until `shutdown` completes. Work that is under way is dropped then: every effect can be taken up again.
///
/// Until `leading` completes, news are folded and nothing is done about them.
pub async fn run(
    context: Arc<Context>,
    mut news: mpsc::Receiver<News>,
    signals: Signals,
    leading: impl Future<Output = ()>,
    shutdown: impl Future<Output = ()>,
) {
    let (mut leading, mut shutdown) = (pin!(leading), pin!(shutdown));
    let Signals(mut signals) = signals;
    let batch = Batch::new(context.batch_idle, context.batch_max);
    let queue = SharedQueue::new(context.running_max);
    context.metrics.collect_from(Arc::new(QueueTold::new(&queue)));
    let mut hub = Hub { context, queue, batch, disrupted: None, is_leading: false, running: FuturesUnordered::new() };
    let began = Instant::now();
    let mut complaint = began + UNSYNCED_PATIENCE;
    hub.queue.add(Work::Collect, Instant::now() + collection::INTERVAL);
    loop {
        hub.start_due_work();
        let next_due = hub.queue.next_due().unwrap_or_else(|| Instant::now() + Duration::from_secs(60));
        // What is due cannot start before we lead and everything was listed: no timer for it then.
        let can_start = hub.can_start();
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            () = &mut leading, if !hub.is_leading => {
                hub.is_leading = true;
                hub.context.census.leads();
                if !hub.context.is_synced() {
                    hub.context.readiness.caches_syncing();
                }
            }
            Some((work, outcome)) = hub.running.next(), if !hub.running.is_empty() => hub.finish(&work, outcome),
            Some(signal) = signals.recv() => {
                hub.hear(signal);
                while let Ok(signal) = signals.try_recv() {
                    hub.hear(signal);
                }
            }
            Some(first) = news.recv() => {
                hub.fold(first);
                for _ in 0..FOLD_AT_ONCE {
                    let Ok(next) = news.try_recv() else { break };
                    hub.fold(next);
                }
            }
            () = tokio::time::sleep_until(next_due), if can_start => {}
            () = tokio::time::sleep_until(complaint), if !hub.context.is_synced() => {
                let missing: Vec<&str> = hub.context.cluster().unlisted().map(kind_name).collect();
                let seconds = began.elapsed().as_secs();
                let kinds = missing.join(", ");
                tracing::info!(seconds, kinds, "cluster is waiting on sync for extended duration");
                complaint += UNSYNCED_REMINDER;
            }
        }
    }
}

impl Hub {
    /// Nothing is done before everything was listed once: what is missing may only be unseen.
    fn can_start(&self) -> bool {
        self.is_leading && self.context.is_synced()
    }

    fn start_due_work(&mut self) {
        if !self.can_start() {
            return;
        }
        while let Some(work) = self.queue.start(Instant::now()) {
            if self.context.mode == Mode::Observe && !work.is_planning() {
                self.queue.finish(&work);
                continue;
            }
            if work == Work::Disrupt {
                self.disrupted = Some(Instant::now());
            }
            if work == Work::Provision {
                self.context.notes().window_closed = Some(self.batch.close(Instant::now()));
            }
            self.context.metrics.reconciling(work.controller(), self.queue.waited(&work));
            let context = Arc::clone(&self.context);
            let controller = work.controller();
            let span = tracing::info_span!("reconcile", controller);
            let pass = async move {
                // A broken invariant ends this pass, not the controller.
                let outcome = AssertUnwindSafe(in_time(&context, &work)).catch_unwind().await;
                (work, outcome.unwrap_or(Err(WorkError::Panicked)))
            };
            self.running.push(work::named(controller, pass.instrument(span)).boxed());
        }
    }

    fn finish(&mut self, work: &Work, outcome: Outcome) {
        let now = Instant::now();
        let controller = work.controller();
        let took = self.queue.running_for(work, now);
        let result = match outcome {
            Ok(Next::OnChange) => {
                self.queue.finish(work);
                PassResult::Success
            }
            Ok(Next::After(pause)) => {
                self.queue.finish(work);
                self.queue.add(work.clone(), now + pause);
                PassResult::RequeueAfter
            }
            Ok(Next::BackOff) => {
                let failures = self.queue.fail(work);
                self.queue.add(work.clone(), now + work.back_off(failures));
                PassResult::Requeue
            }
            Err(WorkError::Write(WriteError::Observed { .. })) => {
                self.queue.finish(work);
                PassResult::Success
            }
            Err(WorkError::Write(error @ WriteError::Conflict { .. })) => {
                // Somebody else wrote first, which is ordinary life in a cluster. What they wrote is on its way to us.
                let failures = self.queue.fail(work);
                self.queue.add(work.clone(), now + work::after_conflict(failures));
                tracing::debug!(controller, %error, "reconcile will be repeated");
                PassResult::Requeue
            }
            Err(error) => {
                let failures = self.queue.fail(work);
                self.queue.add(work.clone(), now + work.back_off(failures));
                // One failure is ordinary life in a cluster; repeated ones are worth a line.
                if failures > 1 {
                    tracing::error!(controller, %error, failures, "Reconciler error");
                } else {
                    tracing::debug!(controller, %error, "reconcile will be repeated");
                }
                if matches!(error, WorkError::Panicked) { PassResult::Panic } else { PassResult::Error }
            }
        };
        self.context.metrics.reconciled(controller, result, took);
    }

    fn fold(&mut self, news: News) {
        match news {
            News::Applied(object) if self.is_overlooked(&object) => {}
            News::Applied(object) => self.context.apply(object),
            News::Removed(key) => self.context.remove(&key),
            News::ListBegins(kind, heard) => {
                self.context.cluster().begin_list(kind);
                // A watch that is gone by now asks for nothing.
                let _ = heard.send(());
            }
            News::Listed(kind, present) => {
                let wakes = self.context.cluster().finish_list(kind, &present);
                self.context.send(wakes);
                self.context.settle(kind);
                tracing::debug!(kind = kind_name(kind), objects = present.len(), "listed");
                if self.context.is_synced() {
                    self.context.census.synced();
                    self.context.readiness.caches_synced();
                    self.wake_everything();
                }
            }
            News::Malformed { kind, name, error } => {
                self.context.metrics.malformed(kind_name(kind));
                tracing::error!(kind = kind_name(kind), name, error, "skipping an object that cannot be read");
            }
            News::Interrupted { kind, error } => tracing::error!(kind = kind_name(kind), error, "watch interrupted"),
        }
        let cluster = self.context.cluster();
        self.context.metrics.state(cluster.node_count(), cluster.is_complete());
    }

    /// A mistake on purpose: every fourth pod is not seen.
    fn is_overlooked(&self, object: &Object) -> bool {
        let Object::Pod(pod) = object else { return false };
        self.context.planted.is(PlantedBug::ForgottenPod) && pod.uid.ends_with(['0', '4', '8', 'c'])
    }

    fn wake_everything(&mut self) {
        let now = Instant::now();
        let context = Arc::clone(&self.context);
        let cluster = context.cluster();
        let claims = cluster.claims().map(|(name, _)| Work::Claim(name.clone()));
        let pools = cluster.pools().map(|(name, _)| Work::Pool(name.clone()));
        for work in pools.chain(claims).chain([Work::Disrupt, Work::Overlays, Work::Price]) {
            self.queue.add(work, now);
        }
        if context.gates.pod_deletion_cost_management {
            self.queue.add(Work::RankPods, now);
        }
        for (key, _) in cluster.buffers() {
            self.queue.add(Work::Buffer(key.clone()), now);
            self.plan_for(Trigger::Buffer(key.clone()));
        }
    }

    fn hear(&mut self, signal: Signal) {
        match signal {
            Signal::Woken(wake) => self.wake(wake),
            Signal::Wanted(Work::Disrupt) => self.look_for_unneeded_nodes(),
            Signal::Wanted(work) => self.queue.add(work, Instant::now()),
            Signal::Offered(work) => self.queue.offer(work, Instant::now()),
        }
    }

    fn wake(&mut self, wake: Wake) {
        let now = Instant::now();
        match wake {
            Wake::Waiting(pod) => self.plan_for(Trigger::Pod(pod)),
            Wake::PodMoved(node) => {
                let cluster = self.context.cluster();
                let claim = cluster.node(&node).and_then(|facts| cluster.claim_of(facts));
                if let Some(name) = claim.and_then(|claim| claim.metadata.name.as_deref()).map(model::ClaimName::new) {
                    let is_room_taken = cluster.holds_headroom(&name, &node);
                    drop(cluster);
                    self.context.notes().pod_events.insert(node.clone(), self.context.now());
                    self.queue.add(Work::Claim(name), now);
                    if is_room_taken {
                        self.plan_for(Trigger::RoomTaken(node));
                    }
                }
            }
            // The node may be empty now although its quiet time was over before. Others that lost a pod are no news: where
            // pods come and go all the time, looking at every node each time would be all that is done.
            Wake::PodLeft(node) => {
                if self.context.cluster().is_vacant(&node) {
                    self.look_for_unneeded_nodes();
                }
            }
            Wake::Protection(_) => self.look_for_unneeded_nodes(),
            Wake::Claim(name) => self.queue.add(Work::Claim(name), now),
            Wake::Node(name) => self.queue.add(Work::Node(name), now),
            Wake::Pool(name) => self.queue.add(Work::Pool(name), now),
            Wake::Overlays => self.queue.add(Work::Overlays, now),
            Wake::Buffer(key) => self.queue.add(Work::Buffer(key), now),
            Wake::Headroom(key) => self.plan_for(Trigger::Buffer(key)),
        }
    }

    /// All nodes are looked at for that: at once, but then not again for a while.
    fn look_for_unneeded_nodes(&mut self) {
        let now = Instant::now();
        self.queue.add(Work::Disrupt, self.disrupted.map_or(now, |last| (last + DISRUPTION_PAUSE).max(now)));
    }

    /// Opens the batch window, or keeps it open a little longer.
    fn plan_for(&mut self, trigger: Trigger) {
        if let Some(closes) = self.batch.add(trigger, Instant::now()) {
            self.queue.set(Work::Provision, closes);
        }
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "Pod",
        Kind::Node => "Node",
        Kind::Claim => "NodeClaim",
        Kind::Pool => "NodePool",
        Kind::NodeClass => "NodeClass",
        Kind::Daemon => "DaemonSet",
        Kind::Budget => "PodDisruptionBudget",
        Kind::VolumeClaim => "PersistentVolumeClaim",
        Kind::Volume => "PersistentVolume",
        Kind::StorageClass => "StorageClass",
        Kind::CsiNode => "CSINode",
        Kind::Attachment => "VolumeAttachment",
        Kind::Namespace => "Namespace",
        Kind::Overlay => "NodeOverlay",
        Kind::Buffer => "CapacityBuffer",
        Kind::PodTemplate => "PodTemplate",
        Kind::Workload(WorkloadKind::Deployment) => "Deployment",
        Kind::Workload(WorkloadKind::ReplicaSet) => "ReplicaSet",
        Kind::Workload(WorkloadKind::StatefulSet) => "StatefulSet",
        Kind::Grouping(GroupingKind::Service) => "Service",
        Kind::Grouping(GroupingKind::ReplicationController) => "ReplicationController",
        Kind::Grouping(GroupingKind::ReplicaSet) => "ReplicaSet",
        Kind::Grouping(GroupingKind::StatefulSet) => "StatefulSet",
    }
}

async fn in_time(context: &Context, work: &Work) -> Outcome {
    match work.time_max() {
        Some(longest) => {
            tokio::time::timeout(longest, reconcile(context, work)).await.unwrap_or(Err(WorkError::TimedOut))
        }
        None => reconcile(context, work).await,
    }
}

async fn reconcile(context: &Context, work: &Work) -> Outcome {
    match work {
        Work::Provision => provisioning::reconcile(context).await,
        Work::Disrupt => disruption::reconcile(context).await,
        Work::Collect => collection::reconcile(context).await,
        Work::Claim(name) => lifecycle::reconcile(context, name).await,
        Work::Node(name) => termination::reconcile(context, name).await,
        Work::Pool(name) => pools::reconcile(context, name).await,
        Work::ScaleUp(name) => static_capacity::scale_up(context, name).await,
        Work::ScaleDown(name) => static_capacity::scale_down(context, name).await,
        Work::Overlays => overlays::reconcile(context).await,
        Work::Buffer(key) => buffers::reconcile(context, key).await,
        Work::RankPods => deletion_cost::reconcile(context).await,
        Work::Annotate(pod, uid) => deletion_cost::annotate(context, pod, uid).await,
        Work::Evict(pod, uid) => termination::evict(context, pod, uid).await,
        Work::ForceOut(pod, uid) => termination::force_out(context, pod, uid).await,
        Work::Price => provisioning::refresh_prices(context).await,
    }
}
