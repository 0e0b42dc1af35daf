//! Capacity buffers: room for pods still to come.
//!
//! A buffer is resolved into [`Headroom`](api::lower::Headroom) whenever it or what it refers to changes. Every
//! provisioning pass plans for the pods that stand for it, and says afterwards where they found room.

mod outcome;
mod resolve;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::CapacityBuffer;
use api::capacity_buffer::{CapacityBufferStatus, conditions};
use api::condition::Statement;
use api::lower::Headroom;
use futures::future::join_all;
use jiff::Timestamp;
use model::BufferKey;
use state::{Cluster, Wake};

pub(crate) use outcome::Found;

use crate::context::Context;
use crate::merge::status_patch;
use crate::work::{Next, Outcome, Work};
use crate::write::{self, WriteError};

/// Buffers are looked at this often, should nothing change before.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// After somebody else wrote first.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Resolves one buffer, says how, and has room found for it.
pub(crate) async fn reconcile(context: &Context, key: &BufferKey) -> Outcome {
    let judged = judge(&mut context.cluster(), key, context.now());
    let Some(Judged { buffer, status, is_news }) = judged else {
        // Nodes that were kept for it need not be kept any longer.
        context.send(vec![Wake::Headroom(key.clone())]);
        return Ok(Next::OnChange);
    };
    let is_changed = buffer.status.as_ref() != Some(&status);
    if is_news || is_changed {
        context.send(vec![Wake::Headroom(key.clone())]);
    }
    if is_changed {
        match save(context, key, &buffer, &status).await {
            Ok(()) => {}
            Err(WriteError::Conflict { .. } | WriteError::NotFound { .. }) => return Ok(Next::After(TRY_AGAIN)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Next::After(LOOK_AGAIN))
}

struct Judged {
    buffer: Arc<CapacityBuffer>,
    status: CapacityBufferStatus,
    /// Whether other room is to be kept than before.
    is_news: bool,
}

fn judge(cluster: &mut Cluster, key: &BufferKey, now: Timestamp) -> Option<Judged> {
    let buffer = cluster.buffer(key).cloned()?;
    let resolution = resolve::resolve(&buffer, cluster);
    let is_news = cluster.set_headroom(key, resolve::headroom(key, &resolution));
    let status = resolve::status(&buffer, &resolution, now);
    Some(Judged { buffer, status, is_news })
}

/// The room that a pass has to find; nothing for a buffer that was not understood.
pub(crate) type WantedRoom = BTreeMap<BufferKey, Option<Headroom>>;

/// Resolves all buffers anew, so that a pass plans for what they say now, also right after the start of a process.
pub(crate) fn refresh(cluster: &mut Cluster) -> WantedRoom {
    let buffers: Vec<_> = cluster.buffers().map(|(key, buffer)| (key.clone(), Arc::clone(buffer))).collect();
    let mut wanted = WantedRoom::new();
    for (key, buffer) in buffers {
        let headroom = resolve::headroom(&key, &resolve::resolve(&buffer, cluster));
        cluster.set_headroom(&key, headroom.clone());
        wanted.insert(key, headroom);
    }
    wanted
}

/// After a pass: notes where room is kept, and says in each buffer's status whether it was found.
pub(crate) async fn settle(context: &Context, wanted: &WantedRoom, found: Found<'_>) {
    let (is_released, writes) = {
        let mut cluster = context.cluster();
        let is_released = cluster.set_held(outcome::held(&found));
        (is_released, statuses(&cluster, wanted, &found, context.now()))
    };
    if is_released {
        context.request(Work::Disrupt);
    }
    let saved = writes.iter().map(async |(key, buffer, status)| (key, save(context, key, buffer, status).await));
    for (key, result) in join_all(saved).await {
        match result {
            // A newer buffer wakes its own reconciler, and that the next pass.
            Ok(()) | Err(WriteError::Conflict { .. } | WriteError::NotFound { .. }) => {}
            Err(error) => tracing::error!(CapacityBuffer = %key, %error, "updating CapacityBuffer provisioning status"),
        }
    }
}

type StatusWrite = (BufferKey, Arc<CapacityBuffer>, CapacityBufferStatus);

/// The statuses that have to change. A buffer that came while the pass was under way waits for the next.
fn statuses(cluster: &Cluster, wanted: &WantedRoom, found: &Found<'_>, now: Timestamp) -> Vec<StatusWrite> {
    let tallies = outcome::tally(found);
    let judged = wanted.iter().filter_map(|(key, headroom)| {
        let buffer = Arc::clone(cluster.buffer(key)?);
        let verdict = outcome::verdict(headroom.as_ref(), tallies.get(key).copied().unwrap_or_default());
        let mut status = buffer.status.clone().unwrap_or_default();
        let statement = Statement {
            type_: conditions::PROVISIONING,
            status: verdict.status,
            reason: verdict.reason,
            message: &verdict.message,
        };
        let generation = buffer.metadata.generation.unwrap_or(0);
        statement.put(status.conditions.get_or_insert_default(), generation, now);
        Some((key.clone(), buffer, status))
    });
    judged.filter(|(_, buffer, status)| buffer.status.as_ref() != Some(status)).collect()
}

async fn save(
    context: &Context,
    key: &BufferKey,
    buffer: &CapacityBuffer,
    status: &CapacityBufferStatus,
) -> Result<(), WriteError> {
    let patch = status_patch(buffer.metadata.resource_version.as_deref(), buffer.status.as_ref(), status);
    write::patch_buffer_status(context, key, &patch).await
}
