//! Garbage collection: claims whose instance is gone, and instances whose claim is gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::node_claim::{NodeClaimSpec, conditions};
use api::{ConditionStatus, NillableDuration, NodeClaim, NodeClassReference, labels};
use cloud::{Instance, LAUNCH_ID, LaunchId, Origin};
use futures::future::join_all;
use jiff::Timestamp;
use model::ProviderId;

use crate::context::Context;
use crate::lifecycle::{self, left_of};
use crate::work::{Next, Outcome, WorkError};
use crate::write;

/// How often the provider is asked for all instances.
pub(crate) const INTERVAL: Duration = Duration::from_secs(120);
/// A younger instance may belong to a launch whose answer is still on its way.
const YOUNG: Duration = Duration::from_secs(30);
/// Ends under way at once.
const AT_ONCE_MAX: usize = 20;

/// Ends registered claims whose instance the provider no longer has and whose node no longer reports ready, and
/// instances that were launched for claims which are no more.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    // First the claims, then the list: an instance that is launched in between is in the list and has no say here.
    let registered: Vec<(Arc<NodeClaim>, ProviderId)> =
        context.cluster().claims().filter_map(|(_, claim)| Some((Arc::clone(claim), registered(claim)?))).collect();
    let instances = context.provider.list().await?;
    let present: BTreeSet<&ProviderId> = instances.iter().map(|instance| &instance.provider_id).collect();
    let lost: Vec<&(Arc<NodeClaim>, ProviderId)> = registered.iter().filter(|(_, id)| !present.contains(id)).collect();
    let claims: Vec<Arc<NodeClaim>> = context.cluster().claims().map(|(_, claim)| Arc::clone(claim)).collect();
    let orphans = orphans(&instances, &claims, context.now());
    // One that cannot be ended now keeps no other waiting.
    let mut failed = None;
    for some in lost.chunks(AT_ONCE_MAX) {
        let ends = some.iter().map(|(claim, id)| collect_claim(context, claim, id));
        failed = join_all(ends).await.into_iter().find_map(Result::err).or(failed);
    }
    for some in orphans.chunks(AT_ONCE_MAX) {
        let ends = some.iter().map(|(id, origin)| collect_instance(context, id, origin));
        failed = join_all(ends).await.into_iter().find_map(Result::err).or(failed);
    }
    failed.map_or(Ok(Next::After(INTERVAL)), Err)
}

async fn collect_claim(context: &Context, claim: &NodeClaim, id: &ProviderId) -> Result<(), WorkError> {
    let is_alive = context.cluster().node_of(claim).is_some_and(|node| node.is_ready);
    if !is_alive {
        tracing::info!(NodeClaim.name = claim.metadata.name, "provider-id" = %id, "garbage collecting nodeclaim with no cloudprovider representation");
        lifecycle::give_up(context, claim, "garbage_collected").await?;
    }
    Ok(())
}

fn registered(claim: &NodeClaim) -> Option<ProviderId> {
    let status = claim.status.as_ref()?;
    let is_registered = status
        .conditions
        .iter()
        .flatten()
        .any(|found| found.type_ == conditions::REGISTERED && found.status == ConditionStatus::True);
    let is_going = claim.metadata.deletion_timestamp.is_some();
    status.provider_id.as_deref().filter(|_| is_registered && !is_going).map(ProviderId::new)
}

/// Instances that we launched and that no claim knows, neither by its instance nor by its launch.
fn orphans<'a>(
    instances: &'a [Instance],
    claims: &[Arc<NodeClaim>],
    now: Timestamp,
) -> Vec<(&'a ProviderId, &'a Origin)> {
    let ids: BTreeSet<&str> = claims.iter().filter_map(|claim| claim.status.as_ref()?.provider_id.as_deref()).collect();
    let launches: BTreeSet<LaunchId> = claims.iter().filter_map(|claim| LaunchId::of(claim)).collect();
    let ours = instances.iter().filter_map(|one| one.origin.as_ref().map(|origin| (&one.provider_id, origin)));
    ours.filter(|(id, origin)| {
        let is_known = ids.contains(id.as_str()) || launches.contains(&origin.launch);
        !is_known && left_of(YOUNG, origin.started, now).is_none()
    })
    .collect()
}

/// Ends an instance that nobody claims. If pods may still run there, its node leaves first, in good order; the instance
/// is found again when the node is gone.
async fn collect_instance(context: &Context, id: &ProviderId, origin: &Origin) -> Result<(), WorkError> {
    // Our watch may be behind; the API server is not.
    let stored = write::read_claim(context, &origin.claim).await?;
    if stored.is_some_and(|claim| LaunchId::of(&claim).as_ref() == Some(&origin.launch)) {
        return Ok(());
    }
    let nodes: Vec<_> = {
        let cluster = context.cluster();
        let ours = cluster.nodes_of(id).filter(|node| cluster.is_managed_node(node));
        ours.filter(|node| node.has_finalizer(labels::TERMINATION_FINALIZER)).cloned().collect()
    };
    for node in nodes.iter().filter(|node| node.deletion.is_none()) {
        write::delete_node(context, node).await?;
        tracing::info!(Node.name = %node.name, "provider-id" = %id, "garbage collected node");
    }
    if nodes.is_empty() {
        context.provider.terminate(&stand_in(context, id, origin)).await?;
        tracing::info!("provider-id" = %id, NodeClaim.name = %origin.claim, "garbage collected cloudprovider instance");
    }
    Ok(())
}

/// The claim that an instance once had, as far as a provider needs it to end the instance.
fn stand_in(context: &Context, id: &ProviderId, origin: &Origin) -> NodeClaim {
    let kind = context.provider.node_class_kind();
    let node_class_ref =
        NodeClassReference { group: kind.group.to_owned(), kind: kind.kind.to_owned(), name: String::new() };
    let spec = NodeClaimSpec {
        taints: None,
        startup_taints: None,
        requirements: Vec::new(),
        resources: None,
        node_class_ref,
        termination_grace_period: None,
        expire_after: NillableDuration::Never,
    };
    let mut claim = NodeClaim::new(origin.claim.as_str(), spec);
    claim.metadata.annotations = Some([(LAUNCH_ID.to_owned(), origin.launch.to_string())].into());
    claim.status.get_or_insert_default().provider_id = Some(id.to_string());
    claim
}

#[cfg(test)]
mod tests {
    use model::ClaimName;
    use serde_json::json;

    use super::*;

    /// Only an instance of ours that is old enough and that no claim knows is an orphan.
    #[test]
    fn orphans_are_told_by_launch_and_age() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let instance = |id: &str, launch: Option<(&str, i64)>| Instance {
            provider_id: ProviderId::new(id),
            origin: launch.map(|(launch, started)| Origin {
                launch: LaunchId::new(launch),
                claim: ClaimName::new("gone"),
                started: at(started),
            }),
        };
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "annotations": {"karpenter.sh/launch-id": "known"}},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
            "status": {"providerID": "recorded"},
        }))
        .unwrap();
        let instances = [
            instance("foreign", None),
            instance("recorded", Some(("other", 0))),
            instance("launched", Some(("known", 0))),
            instance("young", Some(("lost", 71))),
            instance("orphan", Some(("lost", 70))),
        ];
        let claims = [Arc::new(claim)];
        let found: Vec<&str> = orphans(&instances, &claims, at(100)).into_iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(found, ["orphan"]);
    }
}
