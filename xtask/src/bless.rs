//! `cargo xtask bless`: accepts what the code now produces as expected.

use std::path::Path;

use anyhow::Result;

use crate::cargo::{cargo, succeed};
use crate::compatibility::{self, CompatibilityArgs};
use crate::test_programs::{self, TestRun};
use crate::tiers::Tally;

/// Rewrites the expected side of tests that need no control plane, the files they generate, and generated pages.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut programs = test_programs::build(root)?;
    programs.retain(|program| !program.needs_control_plane());
    let run = TestRun { programs: &programs, environment: &[("UPDATE_EXPECT", "1")], packages_required: &[] };
    let outcome = test_programs::run(&run, &mut Tally::default());
    // Even if a test failed for a reason of its own, what could be accepted was; the pages follow.
    succeed(cargo(root)?.args(["fmt", "--all"]))?;
    compatibility::run(root, &CompatibilityArgs { check: false })?;
    outcome?;
    println!("expected outputs and generated files are rewritten: read `git diff` before you commit");
    Ok(())
}
