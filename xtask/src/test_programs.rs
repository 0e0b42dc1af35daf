//! The test programs that one build of the whole workspace leaves, and how they are run.
//!
//! Selecting packages makes cargo choose other features for their dependencies and compile those again. So the whole
//! workspace is built once, cargo says where the test programs are, and they are run from here, tier by tier.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo::{cargo, shown};
use crate::tiers::Tally;

/// The packages whose tests start a real control plane.
pub(crate) const CONTROL_PLANE_PACKAGES: [&str; 2] = ["control-plane", "e2e"];

/// Which test programs to run, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestRun<'a> {
    pub(crate) programs: &'a [TestProgram],
    /// Variables set for every program.
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// Packages of which at least one test has to pass: a test that did not run proves nothing.
    pub(crate) packages_required: &'a [&'a str],
}

/// One test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestProgram {
    package: String,
    /// What `cargo test` would be told to run only this.
    selector: String,
    executable: PathBuf,
    /// The folder of the package, in which tests expect to run.
    folder: PathBuf,
}

impl TestProgram {
    /// Whether its tests start a real control plane.
    pub(crate) fn needs_control_plane(&self) -> bool {
        CONTROL_PLANE_PACKAGES.contains(&self.package.as_str())
    }

    /// Whether it compares the embedded API server with a real one, which has to be of the minor that is imitated.
    pub(crate) fn compares_servers(&self) -> bool {
        self.selector == "--test differential"
    }

    /// Reads one message of cargo's build; other messages than finished test programs are `None`.
    fn from_message(message: &Value) -> Option<Self> {
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        let target = &message["target"];
        let kind = target["kind"][0].as_str()?;
        if message["reason"] != "compiler-artifact" || !is_test || kind == "bench" {
            return None;
        }
        let name = target["name"].as_str()?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Self {
            package: package_name(message["package_id"].as_str()?).to_owned(),
            selector: match kind {
                "test" | "bin" | "example" => format!("--{kind} {name}"),
                _ => "--lib".to_owned(),
            },
            executable: message["executable"].as_str()?.into(),
            folder: folder.to_owned(),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Builds everything in the workspace, with lints, and returns its test programs in a fixed order.
pub(crate) fn build(root: &Path) -> Result<Vec<TestProgram>> {
    let mut command = cargo(root)?;
    command
        .args(["build", "--workspace", "--all-targets", "--message-format=json-render-diagnostics"])
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("start cargo")?;
    let output = child.stdout.take().context("read the messages of cargo")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("read the messages of cargo")?;
        let message: Value = serde_json::from_str(&line).context("understand a message of cargo")?;
        programs.extend(TestProgram::from_message(&message));
    }
    if !child.wait().context("wait for cargo")?.success() {
        bail!("the workspace does not build without errors and lints");
    }
    programs.sort_by(|one, other| (&one.package, &one.selector).cmp(&(&other.package, &other.selector)));
    Ok(programs)
}

/// Runs all of them, counts, and fails if any failed or if a package among `packages_required` passed not one test.
pub(crate) fn run(run: &TestRun<'_>, tally: &mut Tally) -> Result<()> {
    let mut passed_by_package: BTreeMap<&str, u64> = BTreeMap::new();
    let mut failed = Vec::new();
    for program in run.programs {
        println!("     running {} {}", program.package, program.selector);
        let mut command = program.command();
        command.envs(run.environment.iter().copied());
        let mut own = Tally::default();
        if !stream(&mut command, &mut own)? {
            failed.push(format!("cargo test -p {} {}", program.package, program.selector));
        }
        *passed_by_package.entry(&program.package).or_default() += own.passed;
        tally.add(own);
    }
    if !failed.is_empty() {
        bail!("{} of {} test programs failed; see them with: {}", failed.len(), run.programs.len(), failed.join("; "));
    }
    for package in run.packages_required {
        if passed_by_package.get(package).is_none_or(|passed| *passed == 0) {
            bail!("not one test of `{package}` ran");
        }
    }
    Ok(())
}

/// Runs the examples in the documentation of every library.
pub(crate) fn run_documentation(root: &Path, tally: &mut Tally) -> Result<()> {
    let mut command = cargo(root)?;
    command.args(["test", "--workspace", "--doc", "--quiet"]);
    if !stream(&mut command, tally)? {
        bail!("`{}` failed", shown(&command));
    }
    Ok(())
}

/// Passes on what the command prints and counts its tests; whether it succeeded.
fn stream(command: &mut Command, tally: &mut Tally) -> Result<bool> {
    let name = shown(command);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("start `{name}`"))?;
    let output = child.stdout.take().with_context(|| format!("read the output of `{name}`"))?;
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    // Bytes, not text: what a test prints need not be UTF-8.
    while reader.read_until(b'\n', &mut line).with_context(|| format!("read the output of `{name}`"))? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        if let Some(counted) = Tally::from_line(text.trim_end()) {
            tally.add(counted);
        }
        line.clear();
    }
    Ok(child.wait().with_context(|| format!("wait for `{name}`"))?.success())
}

/// The name in a package id: `path+file:///folder#name@1.0.0`, or `path+file:///folder/name#1.0.0` when the folder has
/// the package's name.
fn package_name(id: &str) -> &str {
    let Some((address, fragment)) = id.rsplit_once('#') else { return id };
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => address.rsplit('/').next().unwrap_or(address),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TestProgram, package_name};

    #[test]
    fn a_package_is_named_in_both_spellings_of_its_id() {
        assert_eq!(package_name("path+file:///a/e2e/control-plane#0.1.0"), "control-plane");
        assert_eq!(package_name("path+file:///a/folder#model@0.1.0"), "model");
    }

    #[test]
    fn only_test_programs_count() {
        let mut message = json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///a/e2e#0.1.0",
            "manifest_path": "/a/e2e/Cargo.toml",
            "target": {"kind": ["test"], "name": "inflate"},
            "profile": {"test": true},
            "executable": "/target/debug/deps/inflate-1",
        });
        let program = TestProgram::from_message(&message).unwrap();
        assert_eq!(program.selector, "--test inflate");
        assert!(program.needs_control_plane());
        message["profile"]["test"] = json!(false);
        assert_eq!(TestProgram::from_message(&message), None);
        assert_eq!(TestProgram::from_message(&json!({"reason": "build-finished", "success": true})), None);
    }
}
