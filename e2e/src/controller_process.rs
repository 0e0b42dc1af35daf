//! The controller as a process of its own.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use control_plane::{Launch, Process, free_ports};

use crate::bed::{Controller, ControllerSettings};
use crate::real_bed::RealBed;

/// The controller as users run it: a program with endpoints and a log.
pub struct ControllerProcess {
    process: Process,
    log: PathBuf,
    metrics: u16,
    health: u16,
}

impl ControllerProcess {
    /// Starts the controller. It is not ready yet when this returns.
    pub fn start(bed: &RealBed, name: &str, settings: &ControllerSettings) -> Result<Self> {
        let [metrics, health] = free_ports()?;
        let log = bed.control_plane.log_dir().join(format!("{name}.log"));
        let mut launch = Launch::new(name, controller_program()?, &log)
            .environment("KUBECONFIG", bed.controller_kubeconfig()?)
            .environment("SYSTEM_NAMESPACE", "kube-system")
            .environment("METRICS_PORT", metrics.to_string())
            .environment("HEALTH_PROBE_PORT", health.to_string());
        for (key, value) in &settings.environment {
            launch = launch.environment(key, value);
        }
        Ok(Self { process: Process::start(&launch)?, log, metrics, health })
    }

    /// `GET /readyz`: status and body.
    pub async fn readyz(&self) -> Result<(u16, String)> {
        get(self.health, "/readyz").await
    }

    /// A page of the port that serves metrics: status and body.
    pub async fn page(&self, path: &str) -> Result<(u16, String)> {
        get(self.metrics, path).await
    }

    /// What that port answers with, where it is no text: status and body.
    pub async fn download(&self, path: &str) -> Result<(u16, Vec<u8>)> {
        get_bytes(self.metrics, path).await
    }

    /// `GET /healthz`: status and body.
    pub async fn healthz(&self) -> Result<(u16, String)> {
        get(self.health, "/healthz").await
    }
}

impl Controller for ControllerProcess {
    async fn metrics(&self) -> Result<String> {
        let (status, body) = get(self.metrics, "/metrics").await?;
        anyhow::ensure!(status == 200, "/metrics answered {status}");
        Ok(body)
    }

    fn log(&self) -> Option<String> {
        Some(std::fs::read_to_string(&self.log).unwrap_or_default())
    }

    async fn ended(&mut self) -> Result<()> {
        const PAUSE: Duration = Duration::from_millis(50);
        while self.process.ended()?.is_none() {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// By SIGTERM.
    async fn stop(self) -> Result<()> {
        self.process.stop()
    }

    /// By SIGKILL.
    async fn kill(self) -> Result<()> {
        self.process.kill()
    }
}

/// The controller that was built along with this test.
pub fn controller_program() -> Result<PathBuf> {
    built_program("karpenter-kwok")
}

/// A program of this repository that was built along with this test.
pub fn built_program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("find this program")?;
    let folder = own.ancestors().nth(2).context("find the folder of programs")?;
    let program = folder.join(name);
    if !program.exists() {
        bail!("`{}` is missing; build it with `cargo build -p {name}`", program.display());
    }
    Ok(program)
}

async fn get(port: u16, path: &str) -> Result<(u16, String)> {
    let (status, body) = get_bytes(port, path).await?;
    Ok((status, String::from_utf8(body).context("the body is text")?))
}

async fn get_bytes(port: u16, path: &str) -> Result<(u16, Vec<u8>)> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    const GAP: &[u8] = b"\r\n\r\n";
    let mut connection = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let gap =
        answer.windows(GAP.len()).position(|bytes| bytes == GAP).context("an HTTP answer has a head and a body")?;
    let head = String::from_utf8_lossy(&answer[..gap]);
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).context("a status code")?;
    Ok((status, answer.split_off(gap + GAP.len())))
}
