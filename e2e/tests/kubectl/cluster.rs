//! An embedded cluster on a socket, and stock kubectl for it.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::{env, fs, process, thread};

use anyhow::{Context, Result, bail, ensure};
use control_plane::{Program, Toolbox};
use jiff::Timestamp;
use sim::{ApiServer, ServerSettings};
use sim_loops::{LoopSettings, Pace};
use tokio::sync::{mpsc, oneshot};

/// Tells the clusters of one process apart.
static CLUSTERS: AtomicU32 = AtomicU32::new(0);

/// A running embedded cluster; it ends with this value.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    kubectl: PathBuf,
    folder: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Cluster {
    /// Starts the API over HTTP and the control loops, in real time, with our custom resources defined.
    pub(crate) fn start() -> Result<Self> {
        let kubectl = Toolbox::ensure()?.path(Program::Kubectl)?;
        let number = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("karpenter-kubectl-{}-{number}", process::id()));
        fs::create_dir_all(&folder)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        fs::write(folder.join("kubeconfig"), kubeconfig(&listener.local_addr()?.to_string()))?;
        let clock: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(Timestamp::now);
        let server = ApiServer::new(ServerSettings::default(), clock.clone());
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let served = server.clone();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let settings = LoopSettings { seed: 1, pace: Pace::instant() };
                let (_orders, none) = mpsc::unbounded_channel();
                tokio::select! {
                    _ = sim::http::serve(listener, served.clone(), "kubectl") => {}
                    () = sim_loops::run(served, settings, clock, none) => {}
                    _ = stopped => {}
                }
            });
        });
        let cluster = Self { server, kubectl, folder, stop: Some(stop), thread: Some(thread) };
        let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/karpenter-kwok/crds");
        cluster.run(&format!("create -f {}", definitions.display()))?;
        Ok(cluster)
    }

    /// What kubectl prints; what it complains about is the error.
    pub(crate) fn run(&self, arguments: &str) -> Result<String> {
        self.finish(arguments, self.spawn(arguments)?)
    }

    /// Runs kubectl with a manifest as its input; the arguments name it `-f -`.
    pub(crate) fn run_with(&self, arguments: &str, manifest: &str) -> Result<String> {
        let mut child = self.spawn(arguments)?;
        child.stdin.take().context("kubectl has an input")?.write_all(manifest.as_bytes())?;
        self.finish(arguments, child)
    }

    /// What kubectl complains about; it must fail.
    pub(crate) fn complaint(&self, arguments: &str) -> Result<String> {
        let output = self.spawn(arguments)?.wait_with_output()?;
        ensure!(!output.status.success(), "`kubectl {arguments}` succeeded");
        Ok(String::from_utf8(output.stderr)?)
    }

    /// Starts kubectl and leaves it running. Arguments are separated by spaces.
    pub(crate) fn spawn(&self, arguments: &str) -> Result<Child> {
        Command::new(&self.kubectl)
            .args(arguments.split(' '))
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("start kubectl")
    }

    fn finish(&self, arguments: &str, child: Child) -> Result<String> {
        let Output { status, stdout, stderr } = child.wait_with_output()?;
        if !status.success() {
            bail!("`kubectl {arguments}` failed: {}", String::from_utf8_lossy(&stderr).trim());
        }
        Ok(String::from_utf8(stdout)?)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn kubeconfig(address: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: embedded
  cluster:
    server: http://{address}
contexts:
- name: embedded
  context:
    cluster: embedded
    user: nobody
users:
- name: nobody
  user: {{}}
current-context: embedded
"
    )
}
