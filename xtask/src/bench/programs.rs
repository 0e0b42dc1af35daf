//! The programs that are compared: how they are built and started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, shown, succeed, target_folder};
use crate::go_programs::build_go;

/// Whether a run of the Go scheduler is followed by one that weighs its heap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// It is.
    Weighed,
    /// It is not.
    Ignored,
}

/// Whether the referee looks at our plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// At every pod of it.
    EveryRule,
    /// It was looked at before, or is too large.
    Nothing,
}

/// Where the programs are.
pub(super) struct Programs {
    scenarios: PathBuf,
    peer: PathBuf,
    ours: PathBuf,
}

impl Programs {
    /// Builds all of them: the Go programs into the build cache, ours as users build it.
    pub(super) fn build(root: &Path) -> Result<Self> {
        let scenarios = build_go(root, "./cmd/scenarios", "scenarios")?;
        let peer = build_go(root, "./cmd/peer", "peer")?;
        let mut build = cargo(root)?;
        // Lints are for tests. What is measured is what a user builds.
        build.env_remove("RUSTC_WORKSPACE_WRAPPER").args(["build", "--release", "--package", "kubectl-karpenter"]);
        succeed(&mut build)?;
        Ok(Self { scenarios, peer, ours: target_folder(root)?.join("release/kubectl-karpenter") })
    }

    /// Writes scenarios into a folder; their files, in the order of the patterns, each once.
    pub(super) fn make_scenarios(&self, folder: &Path, seed: u64, patterns: &[&str]) -> Result<Vec<PathBuf>> {
        let mut command = Command::new(&self.scenarios);
        command.arg("-out").arg(folder).args(["-seed", &seed.to_string()]).args(patterns);
        let mut files: Vec<PathBuf> = Vec::new();
        for file in printed(&mut command, &[0])?.lines().map(PathBuf::from) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Ok(files)
    }

    /// What the Go scheduler prints for a scenario that it solves so many times.
    pub(super) fn run_peer(&self, file: &Path, solves: u16, memory: Memory) -> Result<String> {
        let mut command = Command::new(&self.peer);
        command.arg(format!("-runs={solves}")).arg("-detail=false");
        command.arg(format!("-memory={}", memory == Memory::Weighed)).arg(file);
        printed(&mut command, &[0])
    }

    /// What the planner prints for a scenario that it solves so many times. A plan that breaks a rule is an answer too.
    pub(super) fn run_ours(&self, file: &Path, solves: u16, check: Check) -> Result<String> {
        let mut command = Command::new(&self.ours);
        command.args(["bench", "--json", "--no-detail", "--runs", &solves.to_string()]);
        if check == Check::Nothing {
            command.arg("--no-audit");
        }
        printed(command.arg(file), &[0, 1])
    }
}

/// What a program prints if it ends in one of the expected ways; its complaints go to the terminal.
fn printed(command: &mut Command, expected: &[i32]) -> Result<String> {
    let shown = shown(command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("start `{shown}`"))?;
    if !output.status.code().is_some_and(|code| expected.contains(&code)) {
        bail!("`{shown}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("read what `{shown}` printed"))
}
