//! Programs of the Go module that we are compared with.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use control_plane::{Toolbox, cache_root};

use crate::cargo::succeed;

/// The Go module of the comparison.
const GO_MODULE: &str = "bench";

/// Builds one program of the module, or of one that it depends on, into the build cache; where it is.
pub(crate) fn build_go(root: &Path, package: &str, name: &str) -> Result<PathBuf> {
    Toolbox::require_go()?;
    let bin = cache_root()?.join("bench/bin");
    std::fs::create_dir_all(&bin).with_context(|| format!("create `{}`", bin.display()))?;
    let program = bin.join(name);
    eprintln!("building {package}");
    let mut go = Command::new("go");
    go.current_dir(root.join(GO_MODULE))
        // Karpenter asks for a newer Go than most have; Go can fetch it by itself, and may be told not to.
        .env("GOTOOLCHAIN", "auto")
        .env("GOWORK", "off")
        .args(["build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-o"])
        .arg(&program)
        .arg(package);
    succeed(&mut go)?;
    Ok(program)
}
