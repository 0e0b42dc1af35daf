//! `cargo xtask control-plane`: builds the programs of the real control plane.

use anyhow::Result;
use control_plane::{Program, Toolbox};

/// Builds what is missing and prints the path of each program.
pub(crate) fn run() -> Result<()> {
    let toolbox = Toolbox::ensure()?;
    for program in Program::ALL {
        println!("{}", toolbox.path(program)?.display());
    }
    Ok(())
}
