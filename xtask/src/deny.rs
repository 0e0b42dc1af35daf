//! Licences, sources and bans of dependencies, judged by cargo-deny at a fixed version.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use control_plane::cache_root;

use crate::cargo::{cargo, succeed};

const CARGO_DENY_VERSION: &str = "0.20.2";

/// Checks `deny.toml`. Advisories are left out: their database changes without us, and a test must not.
pub(crate) fn check(root: &Path) -> Result<()> {
    let program = ensure_installed(root)?;
    succeed(Command::new(program).current_dir(root).args([
        "--log-level",
        "error",
        "--workspace",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

/// Installs cargo-deny into the cache unless it is there.
fn ensure_installed(root: &Path) -> Result<PathBuf> {
    let folder = cache_root()?.join(format!("cargo-deny-{CARGO_DENY_VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        let mut command = cargo(root)?;
        command
            .args(["install", "--locked", "--quiet", "--root"])
            .arg(&folder)
            .arg(format!("cargo-deny@{CARGO_DENY_VERSION}"))
            // The lints and flags of this workspace are not those of another project.
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(cache_root()?);
        println!("     installing cargo-deny {CARGO_DENY_VERSION}, once");
        succeed(&mut command).context("install cargo-deny")?;
    }
    Ok(program)
}
