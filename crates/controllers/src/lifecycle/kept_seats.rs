//! Seats that are kept for pods before nodes open.

use std::sync::Arc;
use std::time::Duration;

use api::lower::PodFacts;
use futures::future::join_all;
use jiff::Timestamp;
use model::{NodeName, PlaceId};

use super::left_of;
use crate::context::Context;
use crate::write::{self, WriteError};

/// One rehearsal is for all nodes, and nodes of one plan open together.
const REHEARSAL_LASTS: Duration = Duration::from_secs(1);

/// When the kube-scheduler's work was last rehearsed. Whoever opens a node holds it until seats are kept.
pub(crate) type Rehearsed = tokio::sync::Mutex<Option<Timestamp>>;

/// Nominates pods that would find their seats taken by others to the nodes of their seats.
///
/// The scheduler then keeps the room for them. It drops a nomination when the pod fits nowhere, so that it is made just
/// before the node opens. One that could not be made is no reason to keep a node closed: the pod is planned for again,
/// should it be left over.
pub(super) async fn nominate(context: &Context) {
    if !context.cluster().has_seats() {
        return;
    }
    let mut rehearsed = context.rehearsed.lock().await;
    let now = context.now();
    if rehearsed.is_some_and(|last| last <= now && left_of(REHEARSAL_LASTS, last, now).is_some()) {
        return;
    }
    let seats = seats(context, now);
    if !seats.is_empty() {
        tracing::info!(pods = seats.len(), "keeping seats for pods that the scheduler would leave over");
    }
    let nominations = seats.iter().map(|(pod, node)| write::nominate_pod(context, pod, node));
    for (result, (pod, node)) in join_all(nominations).await.into_iter().zip(&seats) {
        match result {
            Ok(()) | Err(WriteError::NotFound { .. } | WriteError::Observed { .. }) => {}
            Err(error) => tracing::warn!(Pod.name = %pod.key, Node.name = %node, %error, "could not nominate pod"),
        }
    }
    *rehearsed = Some(context.now());
}

/// The seats that have to be kept, on nodes that are there.
fn seats(context: &Context, now: Timestamp) -> Vec<(Arc<PodFacts>, NodeName)> {
    let snapshot = context.cluster().snapshot(now);
    let seats = planner::seats_to_keep(&snapshot);
    let mut cluster = context.cluster();
    let known = seats.into_iter().filter_map(|(pod, seat)| match seat {
        PlaceId::Node(node) => Some((Arc::clone(cluster.pod(&pod)?), node)),
        PlaceId::Claim(_) => None,
    });
    let kept: Vec<(Arc<PodFacts>, NodeName)> = known.filter(|(pod, _)| pod.is_provisionable()).collect();
    kept.iter().for_each(|(pod, _)| cluster.keep_seat(pod));
    kept
}
