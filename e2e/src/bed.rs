//! A cluster that is ready for the controller, whatever it is made of.

use std::time::Duration;

use anyhow::{Context, Result};
use api::{NodeClaim, NodeOverlay, NodePool};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::{Api, Client, ResourceExt};

use crate::kill::KillEverywhere;
use crate::manifests::FOREIGN_NODE;
use crate::seen::is_ready_node;
use crate::waiting::{Seen, wait_for};
use crate::weather::Sky;

/// How a controller is started.
#[derive(Clone, Debug, Default)]
pub struct ControllerSettings {
    /// Environment variables, as users set them.
    pub environment: Vec<(String, String)>,
}

impl ControllerSettings {
    /// With one more environment variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// What a person deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A node.
    Node(&'a str),
    /// A NodeClaim.
    Claim(&'a str),
    /// A PodDisruptionBudget of the default namespace.
    Budget(&'a str),
    /// A NodePool.
    Pool(&'a str),
    /// A NodeOverlay.
    Overlay(&'a str),
}

/// How long a person who deletes something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until it is gone.
    UntilGone,
    /// Until the API server has taken note.
    No,
}

/// A cluster with our custom resources, on which controllers can be started and everything a person does can be done.
///
/// Dropping it ends everything on it.
#[expect(async_fn_in_trait, reason = "a story is one task; nobody needs to know whether it could move to a thread")]
pub trait Bed: Sized {
    /// A controller on this cluster.
    type Controller: Controller;

    /// Starts a cluster without a controller, in the runtime that it needs, and tells one story on it.
    fn run(story: impl AsyncFn(&Self) -> Result<()>) -> Result<()>;

    /// Starts nothing but an API server, without anything of ours, and tells a story to a client that may do everything.
    fn run_on_api_server(story: impl AsyncFn(Client) -> Result<()>) -> Result<()>;

    /// A client that may do everything.
    fn client(&self) -> Client;

    /// Creates what a manifest of one or more documents holds, or changes it to that.
    async fn apply(&self, manifest: &str) -> Result<()>;

    /// Sets the replicas of a Deployment of the default namespace.
    async fn scale(&self, deployment: &str, replicas: u32) -> Result<()>;

    /// Sets the replicas of a NodePool through its scale.
    async fn scale_pool(&self, pool: &str, replicas: u32) -> Result<()>;

    /// Deletes an object.
    async fn delete(&self, target: Target<'_>, wait: Wait) -> Result<()>;

    /// Takes the taint with this key away from a node.
    async fn untaint(&self, node: &str, key: &str) -> Result<()>;

    /// What stock kubectl prints; `None` where it has nothing to connect to. Its complaint is the error.
    fn kubectl(&self, arguments: &[&str]) -> Result<Option<String>>;

    /// Starts a controller. It is not ready yet when this returns.
    async fn start_controller(&self, name: &str, settings: &ControllerSettings) -> Result<Self::Controller>;

    /// Shows the plan every write of the controllers started from now on, before and after it is done. A controller
    /// whose write the plan strikes hears nothing more; who follows the plan kills it.
    async fn observe_writes(&self, plan: &KillEverywhere) -> Result<()>;

    /// Leads the controllers started from now on through a weather that the story makes.
    async fn under_sky(&self) -> Result<Sky>;

    /// Takes the API server away from the controllers as a power failure would. On a real cluster nobody else has one
    /// either until [`Bed::restore_api_server`].
    async fn lose_api_server(&self) -> Result<()>;

    /// Brings the API server back where it was, with everything that was stored.
    async fn restore_api_server(&self) -> Result<()>;

    /// Breaks all watches and forgets what happened before: whoever wants to go on where it was is told that this is
    /// too long ago.
    async fn compact(&self) -> Result<()>;

    /// Lets time pass in which things go wrong: this long where time is real, and that long where it costs nothing.
    async fn endure(&self, real: Duration, free: Duration);

    /// Pods of the default namespace.
    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), "default")
    }

    /// All nodes.
    fn nodes(&self) -> Api<Node> {
        Api::all(self.client())
    }

    /// All claims.
    fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.client())
    }

    /// All pools.
    fn pools(&self) -> Api<NodePool> {
        Api::all(self.client())
    }

    /// All overlays.
    fn overlays(&self) -> Api<NodeOverlay> {
        Api::all(self.client())
    }

    /// Events about objects of the default namespace and of none.
    fn events(&self) -> Api<Event> {
        Api::namespaced(self.client(), "default")
    }

    /// Adds a node without a claim of ours and waits until it is ready.
    async fn add_foreign_node(&self) -> Result<Node> {
        self.apply(FOREIGN_NODE).await?;
        // A young node is ready before its not-ready taint is gone.
        let settled =
            |node: &Node| is_ready_node(node) && node.spec.iter().flat_map(|spec| &spec.taints).flatten().count() == 1;
        let ready = |nodes: &Seen<Node>| nodes.get("foreign").is_some_and(settled);
        let mut seen = wait_for(self.nodes(), "the foreign node", ready).await?;
        seen.remove("foreign").context("the foreign node is there")
    }

    /// Fails if we changed the foreign node. Others may: the control plane itself annotates nodes in its own time.
    async fn check_foreign_node(&self, before: &Node) -> Result<()> {
        let after = self.nodes().get("foreign").await?;
        anyhow::ensure!(after.uid() == before.uid(), "the foreign node was replaced");
        anyhow::ensure!(after.metadata.deletion_timestamp.is_none(), "the foreign node is being deleted");
        anyhow::ensure!(after.spec == before.spec, "the foreign node's spec changed: {:?}", after.spec);
        let mut keys = after.labels().keys().chain(after.annotations().keys());
        let ours = keys.find(|key| key.contains("karpenter"));
        anyhow::ensure!(ours.is_none(), "the foreign node was marked with {ours:?}");
        let claimed = !after.finalizers().is_empty() || !after.owner_references().is_empty();
        anyhow::ensure!(!claimed, "the foreign node was claimed");
        Ok(())
    }
}

/// A running controller; it ends with this value.
#[expect(async_fn_in_trait, reason = "a story is one task; nobody needs to know whether it could move to a thread")]
pub trait Controller {
    /// Its metrics, as text.
    async fn metrics(&self) -> Result<String>;

    /// What it wrote to its log so far; `None` where it has none of its own.
    fn log(&self) -> Option<String>;

    /// Waits until it has ended by itself.
    async fn ended(&mut self) -> Result<()>;

    /// Ends it in good order and waits.
    async fn stop(self) -> Result<()>;

    /// Ends it wherever it is, as a power failure would.
    async fn kill(self) -> Result<()>;
}
