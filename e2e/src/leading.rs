//! Who leads, seen from outside.

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use crate::bed::{Bed, Controller, ControllerSettings};
use crate::waiting::{Seen, wait_for, wait_until};

/// Waits until the controller of this host leads; the name under which it holds the lease: host name and id.
pub async fn leader(bed: &impl Bed, host_name: &str) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(bed.client(), "kube-system");
    let holder = |leases: &Seen<Lease>| leases.get("karpenter-leader-election")?.spec.as_ref()?.holder_identity.clone();
    let prefix = format!("{host_name}_");
    let leads = |leases: &Seen<Lease>| holder(leases).is_some_and(|identity| identity.starts_with(&prefix));
    let seen = wait_for(leases, &format!("{host_name} to lead"), leads).await?;
    holder(&seen).context("the holder just seen")
}

/// Starts a controller of a host of its own and waits until it answers.
pub async fn started<B: Bed>(bed: &B, name: &str) -> Result<B::Controller> {
    started_with(bed, name, ControllerSettings::default()).await
}

/// The same with other settings.
pub async fn started_with<B: Bed>(bed: &B, name: &str, settings: ControllerSettings) -> Result<B::Controller> {
    let controller = bed.start_controller(name, &settings.with("HOSTNAME", name)).await?;
    wait_until("a controller that is up", async || controller.metrics().await.ok()).await?;
    Ok(controller)
}
