//! Fetching packages with the clients people already have.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A Python package that is a wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wheel {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) sha256: &'static str,
}

impl Wheel {
    /// Unpacks the wheel below `folder` and says where.
    pub(crate) fn fetch(self, folder: &Path) -> Result<PathBuf> {
        let Self { name, version, sha256 } = self;
        let wheels = folder.join("wheels");
        std::fs::create_dir_all(&wheels).with_context(|| format!("create `{}`", wheels.display()))?;
        let requirements = folder.join("requirements.txt");
        std::fs::write(&requirements, format!("{name}=={version} --hash=sha256:{sha256}\n"))
            .with_context(|| format!("write `{}`", requirements.display()))?;
        let options = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"];
        let mut pip = Command::new("python3");
        pip.args(options).arg("--dest").arg(&wheels).arg("--requirement").arg(&requirements);
        run(&mut pip)?;
        let unpacked = folder.join(format!("{name}-{version}"));
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "-e"]);
        unzip.arg(wheels.join(format!("{name}-{version}-py3-none-any.whl"))).arg(&unpacked);
        run(&mut unzip)?;
        Ok(unpacked)
    }
}

/// A Go module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoModule {
    pub(crate) path: &'static str,
    pub(crate) version: &'static str,
}

impl GoModule {
    /// Fetches the module into Go's own cache and says where it is. `folder` is where Go is started: it must not be
    /// in a module.
    pub(crate) fn fetch(self, folder: &Path) -> Result<PathBuf> {
        let module = format!("{}@{}", self.path, self.version);
        let mut go = Command::new("go");
        go.args(["mod", "download", "-json", &module]).current_dir(folder).env("GOWORK", "off");
        let output = run(&mut go)?;
        let answer: Value = serde_json::from_slice(&output).context("understand what `go mod download` says")?;
        let path =
            answer["Dir"].as_str().with_context(|| format!("`go mod download` does not say where {module} is"))?;
        Ok(PathBuf::from(path))
    }
}

fn run(command: &mut Command) -> Result<Vec<u8>> {
    let shown = format!("{command:?}");
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("start {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(output.stdout)
}
