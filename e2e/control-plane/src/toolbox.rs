//! The programs of the control plane, built once from pinned Go modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use crate::cache::{BuildLock, cache_root, fingerprint};

/// One program of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers of Kubernetes itself.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The command line client.
    Kubectl,
    /// Plays nodes and pods.
    Kwok,
}

impl Program {
    /// Every program, in the order in which they are built.
    pub const ALL: [Self; 6] =
        [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kubectl, Self::Kwok];

    /// The file name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
        }
    }

    fn module(self, kubernetes: Kubernetes) -> &'static GoModule {
        match self {
            Self::Kwok => &KWOK,
            Self::Etcd | Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => {
                kubernetes.module()
            }
        }
    }
}

/// A minor of Kubernetes whose programs can be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Kubernetes {
    /// The one that everything is tested on.
    #[default]
    Newest,
    /// The oldest one that the client's types still know.
    Oldest,
}

impl Kubernetes {
    /// Names the minor on which tests run; unset is the newest.
    pub const VARIABLE: &str = "KARPENTER_KUBERNETES";

    const ALL: [Self; 2] = [Self::Newest, Self::Oldest];

    /// The one with this name, such as `1.33`; the error names those that there are.
    pub fn parse(minor: &str) -> Result<Self> {
        let known = || Self::ALL.into_iter().filter_map(|one| Some((one, one.module().minor()?)));
        let found = known().find(|(_, name)| name == minor).map(|(one, _)| one);
        let names: Vec<String> = known().map(|(_, name)| name).collect();
        found.ok_or_else(|| anyhow!("Kubernetes `{minor}` is not among those that can be built: {}", names.join(", ")))
    }

    fn chosen() -> Result<Self> {
        match std::env::var(Self::VARIABLE) {
            Ok(minor) if !minor.is_empty() => Self::parse(&minor).with_context(|| format!("read {}", Self::VARIABLE)),
            _ => Ok(Self::default()),
        }
    }

    fn module(self) -> &'static GoModule {
        match self {
            Self::Newest => &KUBERNETES,
            Self::Oldest => &KUBERNETES_OLDEST,
        }
    }
}

/// A committed Go module that pins programs; part of this library, so that it builds them from anywhere.
#[derive(Debug)]
struct GoModule {
    name: &'static str,
    /// The dependency whose version names the cache entry.
    main_dependency: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    tools: &'static str,
}

const KUBERNETES: GoModule = GoModule {
    name: "kubernetes",
    main_dependency: "k8s.io/kubernetes",
    go_mod: include_str!("../go/kubernetes/go.mod"),
    go_sum: include_str!("../go/kubernetes/go.sum"),
    tools: include_str!("../go/kubernetes/tools.go"),
};

const KUBERNETES_OLDEST: GoModule = GoModule {
    name: "kubernetes",
    main_dependency: "k8s.io/kubernetes",
    go_mod: include_str!("../go/kubernetes-1.33/go.mod"),
    go_sum: include_str!("../go/kubernetes-1.33/go.sum"),
    tools: include_str!("../go/kubernetes-1.33/tools.go"),
};

const KWOK: GoModule = GoModule {
    name: "kwok",
    main_dependency: "sigs.k8s.io/kwok",
    go_mod: include_str!("../go/kwok/go.mod"),
    go_sum: include_str!("../go/kwok/go.sum"),
    tools: include_str!("../go/kwok/tools.go"),
};

/// What kwok needs on the API server, from its own module: the resource in which stages are written, then the stages
/// that make nodes ready, pods running and deleted pods go away, all at once.
const KWOK_CUSTOM_RESOURCE: &str = "kustomize/crd/bases/kwok.x-k8s.io_stages.yaml";
const KWOK_STAGES: [&str; 5] = [
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/fast/pod-complete.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
];

impl GoModule {
    fn version(&self) -> Result<&'static str> {
        required_version(self.go_mod, self.main_dependency).ok_or_else(|| {
            anyhow!("`{}` is not required by the go.mod of module `{}`", self.main_dependency, self.name)
        })
    }

    /// The first two numbers of the version.
    fn minor(&self) -> Option<String> {
        let version = self.version().ok()?.trim_start_matches('v');
        let (minor, _patch) = version.rsplit_once('.')?;
        Some(minor.to_owned())
    }

    /// The linker flags: small programs, and Kubernetes knows its version, which clients compare.
    fn linker_flags(&self) -> Result<String> {
        let mut flags = "-s -w".to_owned();
        if self.name == KUBERNETES.name {
            let version = self.version()?;
            let mut numbers = version.trim_start_matches('v').split('.');
            let package = "k8s.io/component-base/version";
            flags.push_str(&format!(" -X {package}.gitVersion={version}"));
            for (variable, number) in [("gitMajor", numbers.next()), ("gitMinor", numbers.next())] {
                let number = number.ok_or_else(|| anyhow!("`{version}` is not a version of three numbers"))?;
                flags.push_str(&format!(" -X {package}.{variable}={number}"));
            }
        }
        Ok(flags)
    }

    /// The cache folder; another pin or another flag is another folder.
    fn folder(&self, cache: &Path) -> Result<PathBuf> {
        let flags = self.linker_flags()?;
        let key = fingerprint([self.go_mod, self.go_sum, self.tools, &flags]);
        Ok(cache.join("control-plane").join(format!("{}-{}-{key}", self.name, self.version()?)))
    }

    /// Writes the module into the cache and returns its folder, in which `go` finds the pins.
    fn unpack(&self, cache: &Path) -> Result<PathBuf> {
        let source = self.folder(cache)?.join("module");
        fs::create_dir_all(&source).with_context(|| format!("create `{}`", source.display()))?;
        for (name, content) in [("go.mod", self.go_mod), ("go.sum", self.go_sum), ("tools.go", self.tools)] {
            fs::write(source.join(name), content).with_context(|| format!("write `{name}`"))?;
        }
        Ok(source)
    }
}

/// The programs, built and ready to start.
#[derive(Debug, Clone)]
pub struct Toolbox {
    cache: PathBuf,
    kubernetes: Kubernetes,
}

impl Toolbox {
    /// Builds what is missing of the Kubernetes that [`Kubernetes::VARIABLE`] names and returns where everything is.
    pub fn ensure() -> Result<Self> {
        Self::ensure_of(Kubernetes::chosen()?)
    }

    /// Builds what is missing and returns where everything is; prints a line for each program built.
    ///
    /// From an empty cache this takes about ten minutes on two cores, afterwards nothing. Only one process builds at
    /// a time; a program appears under its name only when it is complete.
    pub fn ensure_of(kubernetes: Kubernetes) -> Result<Self> {
        let toolbox = Self { cache: cache_root()?, kubernetes };
        if toolbox.is_complete()? {
            return Ok(toolbox);
        }
        Self::require_go()?;
        let _lock = BuildLock::acquire(&toolbox.cache.join("control-plane.lock"))?;
        for program in Program::ALL {
            toolbox.build(program)?;
        }
        toolbox.copy_kwok_manifests()?;
        Ok(toolbox)
    }

    /// Fails unless Go is installed; the message says which and where to get it.
    pub fn require_go() -> Result<()> {
        let wanted = go_version(KUBERNETES.go_mod);
        let found = Command::new("go").arg("version").output();
        match found {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => bail!(
                "`go version` failed: {}\n{}",
                String::from_utf8_lossy(&output.stderr).trim(),
                install_hint(wanted)
            ),
            Err(error) => bail!("`go` cannot be started: {error}\n{}", install_hint(wanted)),
        }
    }

    /// Where a program is.
    pub fn path(&self, program: Program) -> Result<PathBuf> {
        Ok(program.module(self.kubernetes).folder(&self.cache)?.join("bin").join(program.name()))
    }

    /// The custom resource definition that kwok reads.
    pub(crate) fn kwok_custom_resource(&self) -> Result<PathBuf> {
        Ok(self.kwok_manifests()?.join(file_name(KWOK_CUSTOM_RESOURCE)))
    }

    /// The stages through which kwok takes nodes and pods.
    pub(crate) fn kwok_stages(&self) -> Result<Vec<PathBuf>> {
        let folder = self.kwok_manifests()?;
        Ok(KWOK_STAGES.iter().map(|stage| folder.join(file_name(stage))).collect())
    }

    fn kwok_manifests(&self) -> Result<PathBuf> {
        Ok(KWOK.folder(&self.cache)?.join("manifests"))
    }

    fn is_complete(&self) -> Result<bool> {
        for program in Program::ALL {
            if !self.path(program)?.is_file() {
                return Ok(false);
            }
        }
        Ok(self.kwok_manifests()?.is_dir())
    }

    fn build(&self, program: Program) -> Result<()> {
        let path = self.path(program)?;
        if path.is_file() {
            return Ok(());
        }
        let module = program.module(self.kubernetes);
        let source = module.unpack(&self.cache)?;
        let name = program.name();
        let unfinished = path.with_file_name(format!(".{name}.unfinished"));
        let started = Instant::now();
        eprintln!("building {name} from {}", program.package());
        let status = go(&source)
            .args(["build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags"])
            .arg(module.linker_flags()?)
            .arg("-o")
            .arg(&unfinished)
            .arg(program.package())
            .stdin(Stdio::null())
            .status()
            .context("start `go build`")?;
        if !status.success() {
            bail!("`go build {}` failed ({status})\n{}", program.package(), install_hint(go_version(module.go_mod)));
        }
        fs::rename(&unfinished, &path).with_context(|| format!("move `{name}` into place"))?;
        eprintln!("built {name} in {} s", started.elapsed().as_secs());
        Ok(())
    }

    fn copy_kwok_manifests(&self) -> Result<()> {
        let manifests = self.kwok_manifests()?;
        if manifests.is_dir() {
            return Ok(());
        }
        let source = KWOK.unpack(&self.cache)?;
        let output = go(&source)
            .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", KWOK.main_dependency])
            .output()
            .context("start `go list`")?;
        if !output.status.success() {
            bail!("`go list` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let module = PathBuf::from(String::from_utf8(output.stdout).context("read the output of `go list`")?.trim());
        let unfinished = manifests.with_file_name(".manifests.unfinished");
        fs::create_dir_all(&unfinished).with_context(|| format!("create `{}`", unfinished.display()))?;
        for manifest in KWOK_STAGES.into_iter().chain([KWOK_CUSTOM_RESOURCE]) {
            let text = fs::read_to_string(module.join(manifest))
                .with_context(|| format!("read `{manifest}` of `{}`", KWOK.main_dependency))?;
            let target = unfinished.join(file_name(manifest));
            fs::write(&target, text).with_context(|| format!("write `{}`", target.display()))?;
        }
        fs::rename(&unfinished, &manifests).context("move the manifests of kwok into place")
    }
}

/// `go` in a module, untouched by a workspace file somewhere above it.
fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(module).env("GOWORK", "off");
    command
}

fn install_hint(wanted: &str) -> String {
    format!(
        "The real control plane is built with Go {wanted} or newer: install it from https://go.dev/dl/ or with the \
         package manager of your system, and see that `go` is in PATH."
    )
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The version of the language that a go.mod asks for.
fn go_version(go_mod: &str) -> &str {
    go_mod.lines().find_map(|line| line.strip_prefix("go ")).map_or("1.26", str::trim)
}

/// The version of a module that a go.mod requires.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim_start().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module)).then(|| words.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{GoModule, KUBERNETES, KWOK, Kubernetes, go_version, required_version};

    #[test]
    fn versions_are_read_from_one_line_and_block_requirements() {
        let block = "module a\n\ngo 1.26.0\n\nrequire (\n\texample.com/b v1.2.3\n\texample.com/bc v3.0.0\n)\n";
        assert_eq!(go_version(block), "1.26.0");
        assert_eq!(required_version(block, "example.com/b"), Some("v1.2.3"));
        assert_eq!(required_version(block, "example.com/c"), None);
        assert_eq!(required_version("require example.com/b v2.0.0\n", "example.com/b"), Some("v2.0.0"));
    }

    #[test]
    fn the_version_reaches_the_linker() {
        let flags = KUBERNETES.linker_flags().unwrap();
        let version = KUBERNETES.version().unwrap();
        assert!(flags.contains(&format!("gitVersion={version}")), "{flags}");
        assert!(flags.contains("gitMajor=1"), "{flags}");
        assert_eq!(KWOK.linker_flags().unwrap(), "-s -w");
    }

    #[test]
    fn a_minor_is_known_by_its_name() {
        assert_eq!(Kubernetes::parse("1.33").unwrap(), Kubernetes::Oldest);
        assert_eq!(Kubernetes::parse(&KUBERNETES.minor().unwrap()).unwrap(), Kubernetes::Newest);
        let complaint = Kubernetes::parse("1.12").unwrap_err().to_string();
        assert!(complaint.contains("1.33"), "{complaint}");
        let folders = [Kubernetes::Newest, Kubernetes::Oldest].map(|one| one.module().folder(Path::new("/")).unwrap());
        assert_ne!(folders[0], folders[1]);
    }

    #[test]
    fn another_pin_is_another_folder() {
        let folder = |go_sum| GoModule { go_sum, ..KWOK }.folder(Path::new("/cache")).unwrap();
        assert_eq!(folder("a"), folder("a"));
        assert_ne!(folder("a"), folder("b"));
    }
}
