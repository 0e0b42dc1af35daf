//! `cargo xtask test`: everything that must hold before a change is merged.

use std::path::Path;

use anyhow::Result;
use control_plane::{Kubernetes, Toolbox};

use crate::cargo::{cargo, succeed};
use crate::compatibility::{self, CompatibilityArgs};
use crate::test_programs::{CONTROL_PLANE_PACKAGES, TestProgram, TestRun};
use crate::tiers::Tiers;
use crate::{deny, house, test_programs};

/// How many steps a run has without the real control plane, and with it.
const STEPS_FAST: usize = 7;
const STEPS_FULL: usize = 9;
/// How many it has on another Kubernetes: only what depends on it.
const STEPS_OTHER: usize = 3;

/// Packages whose tests must be among those that ran without a control plane.
const PACKAGES_ALWAYS_TESTED: [&str; 15] = [
    "api",
    "aws-sim",
    "catalogue",
    "controllers",
    "ec2",
    "kubectl-karpenter",
    "measure",
    "model",
    "planner",
    "referee",
    "schema",
    "sim",
    "sim-loops",
    "state",
    "world",
];

/// Which steps run.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Leave out the tests on a real control plane, for the edit loop.
    #[arg(long, conflicts_with = "kubernetes")]
    fast: bool,
    /// Run only the tests on a real control plane, of this minor of Kubernetes instead of the usual one.
    #[arg(long, value_name = "MINOR")]
    kubernetes: Option<String>,
}

/// Runs the steps in order, the cheap ones first, and stops at the first that fails.
pub(crate) fn run(root: &Path, args: &TestArgs) -> Result<()> {
    if let Some(minor) = &args.kubernetes {
        return run_on_other(root, minor);
    }
    if !args.fast {
        // Half an hour later would be a bad time to learn that Go is missing.
        Toolbox::require_go()?;
    }
    let mut tiers = Tiers::new(if args.fast { STEPS_FAST } else { STEPS_FULL });
    let outcome = run_tiers(root, args, &mut tiers);
    println!("{} passed, {} failed", tiers.tally.passed, tiers.tally.failed);
    outcome?;
    let completed = tiers.completed().ok_or_else(|| anyhow::anyhow!("FAILED: a step did not run"))?;
    if args.fast {
        println!("fast steps passed: {completed}");
        println!("the real control plane was LEFT OUT: run `cargo xtask test` before you merge");
    } else {
        println!("all tiers passed: {completed}");
    }
    Ok(())
}

/// Builds everything, and runs the tests on a control plane of another Kubernetes.
fn run_on_other(root: &Path, minor: &str) -> Result<()> {
    let kubernetes = Kubernetes::parse(minor)?;
    Toolbox::require_go()?;
    let mut tiers = Tiers::new(STEPS_OTHER);
    let programs = tiers.step("build and lints", |_| test_programs::build(root))?;
    let matters = |program: &TestProgram| program.needs_control_plane() && !program.compares_servers();
    let programs: Vec<_> = programs.into_iter().filter(matters).collect();
    println!("left out: the comparison with the embedded API server, which imitates another minor");
    tiers.step("programs of the real control plane", |_| Toolbox::ensure_of(kubernetes))?;
    let environment = [(Kubernetes::VARIABLE, minor)];
    let on_control_plane =
        TestRun { programs: &programs, environment: &environment, packages_required: &CONTROL_PLANE_PACKAGES };
    let outcome = tiers.step("tests on the real control plane", |tally| test_programs::run(&on_control_plane, tally));
    println!("{} passed, {} failed on Kubernetes {minor}", tiers.tally.passed, tiers.tally.failed);
    outcome
}

fn run_tiers(root: &Path, args: &TestArgs, tiers: &mut Tiers) -> Result<()> {
    tiers.step("format", |_| succeed(cargo(root)?.args(["fmt", "--all", "--check"])))?;
    tiers.step("dependency table", |_| house::check(root))?;
    tiers.step("generated pages", |_| compatibility::run(root, &CompatibilityArgs { check: true }))?;
    tiers.step("licences and sources of dependencies", |_| deny::check(root))?;
    let programs = tiers.step("build and lints", |_| test_programs::build(root))?;
    let (on_control_plane, alone): (Vec<_>, Vec<_>) = programs.into_iter().partition(TestProgram::needs_control_plane);
    let alone = TestRun { programs: &alone, environment: &[], packages_required: &PACKAGES_ALWAYS_TESTED };
    tiers.step("unit, property and scenario tests", |tally| test_programs::run(&alone, tally))?;
    tiers.step("examples in documentation", |tally| test_programs::run_documentation(root, tally))?;
    if !args.fast {
        tiers.step("programs of the real control plane", |_| Toolbox::ensure())?;
        let on_control_plane =
            TestRun { programs: &on_control_plane, environment: &[], packages_required: &CONTROL_PLANE_PACKAGES };
        tiers.step("tests on the real control plane", |tally| test_programs::run(&on_control_plane, tally))?;
    }
    Ok(())
}
