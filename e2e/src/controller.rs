//! The controller as a process of its own.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use control_plane::{Launch, Process, free_ports};

use crate::bed::Bed;

/// How a controller is started.
#[derive(Clone, Debug, Default)]
pub struct ControllerSettings {
    /// Another kubeconfig than the service account's own, for example one that leads through a proxy.
    pub kubeconfig: Option<PathBuf>,
    /// More environment.
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

/// A running controller; it ends with this value.
pub struct Controller {
    process: Process,
    log: PathBuf,
    metrics: u16,
    health: u16,
}

impl Controller {
    /// Starts the controller. It is not ready yet when this returns.
    pub fn start(bed: &Bed, name: &str, settings: &ControllerSettings) -> Result<Self> {
        let [metrics, health] = free_ports()?;
        let log = bed.control_plane.log_dir().join(format!("{name}.log"));
        let kubeconfig = match &settings.kubeconfig {
            Some(path) => path.clone(),
            None => bed.controller_kubeconfig()?,
        };
        let mut launch = Launch::new(name, controller_program()?, &log)
            .environment("KUBECONFIG", kubeconfig)
            .environment("SYSTEM_NAMESPACE", "kube-system")
            .environment("METRICS_PORT", metrics.to_string())
            .environment("HEALTH_PROBE_PORT", health.to_string());
        for (key, value) in &settings.environment {
            launch = launch.environment(key, value);
        }
        Ok(Self { process: Process::start(&launch)?, log, metrics, health })
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// `GET /readyz`: status and body.
    pub async fn readyz(&self) -> Result<(u16, String)> {
        get(self.health, "/readyz").await
    }

    /// `GET /healthz`: status and body.
    pub async fn healthz(&self) -> Result<(u16, String)> {
        get(self.health, "/healthz").await
    }

    /// `GET /metrics`: the body.
    pub async fn metrics(&self) -> Result<String> {
        let (status, body) = get(self.metrics, "/metrics").await?;
        anyhow::ensure!(status == 200, "/metrics answered {status}");
        Ok(body)
    }

    /// Ends it with SIGTERM and waits.
    pub fn stop(self) -> Result<()> {
        self.process.stop()
    }

    /// Ends it with SIGKILL.
    pub fn kill(self) -> Result<()> {
        self.process.kill()
    }
}

/// The controller that was built along with this test.
pub fn controller_program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("find this program")?;
    let folder = own.ancestors().nth(2).context("find the folder of programs")?;
    let program = folder.join("karpenter-kwok");
    if !program.exists() {
        bail!("`{}` is missing; build it with `cargo build -p karpenter-kwok`", program.display());
    }
    Ok(program)
}

async fn get(port: u16, path: &str) -> Result<(u16, String)> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut connection = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an HTTP answer has a head and a body")?;
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).context("a status code")?;
    Ok((status, body.to_owned()))
}
