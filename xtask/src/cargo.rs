//! How this tool calls cargo, so that all of its calls share one compilation.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use control_plane::cache_root;

/// Cargo as the test command uses it.
///
/// Clippy is the compiler of our own crates: lints and code come from one run. Build products live outside the clone,
/// unless `CARGO_TARGET_DIR` says otherwise, so that a fresh clone finds its dependencies compiled.
pub(crate) fn cargo(root: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target_folder(root)?)
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    for (name, _) in std::env::vars_os().filter(|(name, _)| describes_this_package(name)) {
        command.env_remove(name);
    }
    Ok(command)
}

/// Where cargo puts what it builds for us.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf> {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => Ok(root.join(folder)),
        None => Ok(cache_root()?.join("target")),
    }
}

/// Cargo tells the programs it runs about their package; build scripts that look at such variables would run again
/// for every other caller.
fn describes_this_package(variable: &OsString) -> bool {
    let name = variable.to_string_lossy();
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_PACKAGE"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Runs a command whose output the user sees; anything but success is an error that names it.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{describes_this_package, shown};

    #[test]
    fn only_what_describes_a_package_is_hidden() {
        assert!(describes_this_package(&"CARGO_PKG_NAME".into()));
        assert!(!describes_this_package(&"CARGO_HOME".into()));
        assert!(!describes_this_package(&"CARGO_TARGET_DIR".into()));
    }

    #[test]
    fn commands_are_shown_without_their_folder() {
        assert_eq!(shown(Command::new("/usr/bin/cargo").args(["fmt", "--check"])), "cargo fmt --check");
    }
}
