//! Garbage collection: claims whose instance is gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::node_claim::conditions;
use api::{ConditionStatus, NodeClaim};
use model::ProviderId;

use crate::context::Context;
use crate::lifecycle;
use crate::work::{Next, Outcome};

/// How often the provider is asked for all instances.
pub(crate) const INTERVAL: Duration = Duration::from_secs(120);

/// Ends registered claims whose instance the provider no longer has and whose node no longer reports ready.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    // First the claims, then the list: an instance that is launched in between is in the list and has no say here.
    let registered: Vec<(Arc<NodeClaim>, ProviderId)> =
        context.cluster().claims().filter_map(|(_, claim)| Some((Arc::clone(claim), registered(claim)?))).collect();
    let instances = context.provider.list().await?;
    let present: BTreeSet<ProviderId> = instances.into_iter().map(|instance| instance.provider_id).collect();
    for (claim, id) in registered.into_iter().filter(|(_, id)| !present.contains(id)) {
        let is_alive = context.cluster().node_of(&claim).is_some_and(|node| node.is_ready);
        if !is_alive {
            tracing::info!(NodeClaim.name = claim.metadata.name, "provider-id" = %id, "garbage collecting nodeclaim with no instance");
            lifecycle::give_up(context, &claim, "garbage_collected").await?;
        }
    }
    Ok(Next::After(INTERVAL))
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
