//! A control plane that is ready for the controller.

use std::path::PathBuf;

use anyhow::{Context, Result};
use api::{NodeClaim, NodePool};
use control_plane::{ControlPlane, Options, Toolbox};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};

use crate::manifests::FOREIGN_NODE;
use crate::seen::is_ready_node;
use crate::waiting::{Seen, wait_for};

/// The identity of the controller, and with it the role that is tested.
const USER: &str = "system:serviceaccount:kube-system:karpenter";
const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];

/// A real control plane with our custom resources and roles, and a client that may do everything.
pub struct Bed {
    /// The programs.
    pub control_plane: ControlPlane,
    /// An administrator's client.
    pub client: Client,
}

impl Bed {
    /// Starts everything but the controller.
    pub async fn start() -> Result<Self> {
        let toolbox = Toolbox::ensure()?;
        let control_plane = ControlPlane::start(&toolbox, &Options::default())?;
        let client = client(&control_plane.admin_kubeconfig()).await?;
        let bed = Self { control_plane, client };
        let chart = chart();
        bed.kubectl(&["create", "-f", &chart.join("crds").to_string_lossy()])?;
        bed.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
        bed.kubectl(&["create", "-f", &chart.join("templates").to_string_lossy()])?;
        Ok(bed)
    }

    /// Runs stock kubectl as administrator; its output, or its complaint as an error.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.control_plane.run_kubectl(arguments)
    }

    /// `kubectl apply` of a manifest.
    pub fn apply(&self, manifest: &str) -> Result<()> {
        let mut child = self
            .control_plane
            .kubectl(["apply", "-f", "-"])?
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .context("start kubectl")?;
        let mut input = child.stdin.take().context("kubectl's input")?;
        std::io::Write::write_all(&mut input, manifest.as_bytes()).context("write the manifest")?;
        drop(input);
        let output = child.wait_with_output().context("wait for kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "kubectl apply: {complaint}\n{manifest}");
        Ok(())
    }

    /// Pods of the default namespace.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// All nodes.
    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// All claims.
    pub fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.client.clone())
    }

    /// All pools.
    pub fn pools(&self) -> Api<NodePool> {
        Api::all(self.client.clone())
    }

    /// Events about objects of the default namespace and of none.
    pub fn events(&self) -> Api<Event> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Adds a node without a claim of ours and waits until it is ready.
    pub async fn add_foreign_node(&self) -> Result<Node> {
        self.apply(FOREIGN_NODE)?;
        // A young node is ready before its not-ready taint is gone.
        let settled =
            |node: &Node| is_ready_node(node) && node.spec.iter().flat_map(|spec| &spec.taints).flatten().count() == 1;
        let ready = |nodes: &Seen<Node>| nodes.get("foreign").is_some_and(settled);
        let mut seen = wait_for(self.nodes(), "the foreign node", ready).await?;
        seen.remove("foreign").context("the foreign node is there")
    }

    /// Fails if we changed the foreign node. Others may: the control plane itself annotates nodes in its own time.
    pub async fn check_foreign_node(&self, before: &Node) -> Result<()> {
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

    /// A kubeconfig for the controller's service account.
    pub fn controller_kubeconfig(&self) -> Result<PathBuf> {
        self.control_plane.kubeconfig(USER, &GROUPS)
    }
}

/// The chart whose roles and resources are tested.
fn chart() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../charts/karpenter-kwok")
}

/// A client for a kubeconfig file.
pub async fn client(kubeconfig: &std::path::Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
