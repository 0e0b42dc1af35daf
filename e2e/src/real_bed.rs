//! A real control plane that is ready for the controller.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use control_plane::{ControlPlane, Options, Toolbox};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::runtime::Runtime;

use crate::bed::{Bed, ControllerSettings, Target, Wait};
use crate::controller_process::ControllerProcess;
use crate::kill::KillEverywhere;
use crate::proxy::{self, Way};
use crate::weather::Sky;

/// The identity of the controller, and with it the role that is tested.
const USER: &str = "system:serviceaccount:kube-system:karpenter";
const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];

/// A real control plane with our custom resources and roles. What a person does is done with stock kubectl, and the
/// controller is a process of its own.
pub struct RealBed {
    /// The programs.
    pub control_plane: ControlPlane,
    /// An administrator's client.
    pub client: Client,
    /// Leads the controller past a plan; its own kubeconfig counts if there is none.
    observed: Mutex<Option<PathBuf>>,
}

impl RealBed {
    /// Starts everything but the controller.
    pub async fn start() -> Result<Self> {
        let toolbox = Toolbox::ensure()?;
        let control_plane = ControlPlane::start(&toolbox, &Options::default())?;
        let client = client(&control_plane.admin_kubeconfig()).await?;
        let chart = chart();
        control_plane.run_kubectl(["create", "-f", &chart.join("crds").to_string_lossy()])?;
        control_plane.run_kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
        control_plane.run_kubectl(["create", "-f", &chart.join("templates").to_string_lossy()])?;
        Ok(Self { control_plane, client, observed: Mutex::default() })
    }

    /// The kubeconfig with which a controller is started: the service account's own, or one that leads past a plan.
    pub(crate) fn controller_kubeconfig(&self) -> Result<PathBuf> {
        let observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        observed.map_or_else(|| self.control_plane.kubeconfig(USER, &GROUPS), Ok)
    }

    /// Leads controllers started from now on along a way of its own.
    async fn lead(&self, way: Way) -> Result<()> {
        let upstream = client(&self.control_plane.kubeconfig(USER, &GROUPS)?).await?;
        let address = proxy::start(upstream, way).await?;
        let kubeconfig = proxy::kubeconfig(address, &self.control_plane.log_dir())?;
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) = Some(kubeconfig);
        Ok(())
    }
}

impl Bed for RealBed {
    type Controller = ControllerProcess;

    fn run(story: impl AsyncFn(&Self) -> Result<()>) -> Result<()> {
        runtime()?.block_on(async {
            let bed = Self::start().await?;
            story(&bed).await
        })
    }

    fn run_on_api_server(story: impl AsyncFn(Client) -> Result<()>) -> Result<()> {
        let control_plane = ControlPlane::start(&Toolbox::ensure()?, &Options::api_only())?;
        runtime()?.block_on(async { story(client(&control_plane.admin_kubeconfig()).await?).await })?;
        control_plane.stop()
    }

    fn client(&self) -> Client {
        self.client.clone()
    }

    async fn apply(&self, manifest: &str) -> Result<()> {
        let mut child = self
            .control_plane
            .kubectl(["apply", "-f", "-"])?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
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

    async fn scale(&self, deployment: &str, replicas: u32) -> Result<()> {
        let replicas = format!("--replicas={replicas}");
        self.control_plane.run_kubectl(["scale", "deployment", deployment, &replicas])?;
        Ok(())
    }

    async fn scale_pool(&self, pool: &str, replicas: u32) -> Result<()> {
        let replicas = format!("--replicas={replicas}");
        self.control_plane.run_kubectl(["scale", "nodepool", pool, &replicas])?;
        Ok(())
    }

    async fn delete(&self, target: Target<'_>, wait: Wait) -> Result<()> {
        let (kind, name) = match target {
            Target::Node(name) => ("node", name),
            Target::Claim(name) => ("nodeclaim", name),
            Target::Budget(name) => ("pdb", name),
            Target::Pool(name) => ("nodepool", name),
            Target::Overlay(name) => ("nodeoverlay", name),
        };
        let wait = match wait {
            Wait::UntilGone => "--wait=true",
            Wait::No => "--wait=false",
        };
        self.control_plane.run_kubectl(["delete", kind, name, wait])?;
        Ok(())
    }

    async fn untaint(&self, node: &str, key: &str) -> Result<()> {
        self.control_plane.run_kubectl(["taint", "node", node, &format!("{key}-")])?;
        Ok(())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<Option<String>> {
        self.control_plane.run_kubectl(arguments).map(Some)
    }

    async fn start_controller(&self, name: &str, settings: &ControllerSettings) -> Result<ControllerProcess> {
        ControllerProcess::start(self, name, settings)
    }

    async fn observe_writes(&self, plan: &KillEverywhere) -> Result<()> {
        self.lead(Way { plan: Some(plan.clone()), sky: Sky::default() }).await
    }

    async fn under_sky(&self) -> Result<Sky> {
        let sky = Sky::default();
        self.lead(Way { plan: None, sky: sky.clone() }).await?;
        Ok(sky)
    }

    async fn lose_api_server(&self) -> Result<()> {
        self.control_plane.kill_api_server()
    }

    async fn restore_api_server(&self) -> Result<()> {
        Ok(self.control_plane.restore_api_server()?)
    }

    /// With another API server: one that runs remembers what etcd has forgotten.
    async fn compact(&self) -> Result<()> {
        self.control_plane.kill_api_server()?;
        self.control_plane.compact()?;
        Ok(self.control_plane.restore_api_server()?)
    }

    async fn endure(&self, real: Duration, _: Duration) {
        tokio::time::sleep(real).await;
    }
}

/// With threads, since kubectl blocks its own while watches and the proxy go on.
fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start a runtime")
}

/// The chart whose roles and resources are tested.
fn chart() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../charts/karpenter-kwok")
}

/// A client for a kubeconfig file.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
