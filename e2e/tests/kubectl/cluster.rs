//! The demo that serves its embedded cluster, and stock kubectl for it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use control_plane::{Program, Toolbox};
use e2e::built_program;

/// Tells the clusters of one process apart.
static CLUSTERS: AtomicU32 = AtomicU32::new(0);

/// A story in which nothing happens: kubectl does everything.
const STORY: &str = "name: kubectl\ncloud: kwok\nsteps: []\nend: 1s\n";

/// A running `kubectl-karpenter demo --serve`; it ends with this value.
pub(crate) struct Cluster {
    demo: Child,
    kubectl: PathBuf,
    folder: PathBuf,
}

impl Cluster {
    /// Starts the demo and waits until it serves, ten times as fast as real time.
    pub(crate) fn start() -> Result<Self> {
        let kubectl = Toolbox::ensure()?.path(Program::Kubectl)?;
        let number = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("karpenter-kubectl-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("story.yaml"), STORY)?;
        let mut demo = Command::new(built_program("kubectl-karpenter")?)
            .args(["demo", "--scenario", "story.yaml", "--serve", "--speed", "10", "--json"])
            .args(["--kubeconfig", "kubeconfig"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the demo")?;
        let output = demo.stdout.take().context("the demo has an output")?;
        let cluster = Self { demo, kubectl, folder };
        let mut lines = BufReader::new(output).lines();
        lines
            .find(|line| line.as_ref().is_ok_and(|line| line.contains("\"serving\"")))
            .context("the demo serves")??;
        // What it tells from now on has to go somewhere, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
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
        let _ = self.demo.kill();
        let _ = self.demo.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
