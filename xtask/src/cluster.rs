//! `cargo xtask cluster`: a control plane with the KWOK controller, for a person to play with.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use control_plane::{ControlPlane, Launch, Options, Process, Program, Toolbox, free_ports};

use crate::cargo::{cargo, succeed, target_folder};

/// The identity under which the controller runs, and with it the role it is bound to.
const USER: &str = "system:serviceaccount:kube-system:karpenter";
const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
const CHART: &str = "charts/karpenter-kwok";
const EXAMPLE: &str = "xtask/cluster-example.yaml";
/// How long the controller may take to say that it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const READY_INTERVAL: Duration = Duration::from_millis(100);
/// How long one question about readiness may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts everything, says how to use it, and stops everything when standard input closes. Ctrl-C ends this program
/// at once; what it started notices and ends too.
pub(crate) fn run(root: &Path) -> Result<()> {
    let toolbox = Toolbox::ensure()?;
    succeed(cargo(root)?.args(["build", "--package", "karpenter-kwok"]))?;
    let control_plane = ControlPlane::start(&toolbox, &Options::default())?;
    install(root, &control_plane)?;
    let controller = start_controller(root, &control_plane)?;
    println!("{}", instructions(root, &toolbox, &control_plane, &controller)?);
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()).context("wait for the end of input")?;
    controller.stop()?;
    control_plane.stop()
}

/// Creates the custom resources and the role of the controller.
fn install(root: &Path, control_plane: &ControlPlane) -> Result<()> {
    let chart = root.join(CHART);
    let definitions = manifests(&chart.join("crds"))?;
    create(control_plane, &definitions)?;
    control_plane.run_kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
    create(control_plane, &manifests(&chart.join("templates"))?)
}

fn create(control_plane: &ControlPlane, files: &[PathBuf]) -> Result<()> {
    let arguments = files.iter().flat_map(|file| [OsStr::new("-f"), file.as_os_str()]);
    control_plane.run_kubectl([OsStr::new("create")].into_iter().chain(arguments))?;
    Ok(())
}

/// The YAML files of a folder, by name.
fn manifests(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("list `{}`", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("list `{}`", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    ensure!(!files.is_empty(), "there is no YAML file in `{}`", folder.display());
    files.sort();
    Ok(files)
}

fn start_controller(root: &Path, control_plane: &ControlPlane) -> Result<Process> {
    let [metrics, health] = free_ports()?;
    let program = target_folder(root)?.join("debug/karpenter-kwok");
    let log = control_plane.log_dir().join("karpenter-kwok.log");
    let launch = Launch::new("karpenter-kwok", program, log)
        .environment("KUBECONFIG", control_plane.kubeconfig(USER, &GROUPS)?)
        .environment("SYSTEM_NAMESPACE", "kube-system")
        .environment("METRICS_PORT", metrics.to_string())
        .environment("HEALTH_PROBE_PORT", health.to_string());
    let mut controller = Process::start(&launch)?;
    let deadline = Instant::now() + READY_TIMEOUT;
    while !is_ready(health) {
        if let Some(status) = controller.ended()? {
            bail!("the controller ended while starting ({status}):\n{}", controller.log_tail());
        }
        if Instant::now() > deadline {
            bail!("the controller was not ready after {READY_TIMEOUT:?}:\n{}", controller.log_tail());
        }
        sleep(READY_INTERVAL);
    }
    Ok(controller)
}

/// Whether `/readyz` is answered with success. No answer is an answer too: not yet.
fn is_ready(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        connection.set_read_timeout(Some(PROBE_TIMEOUT))?;
        connection.write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.split_whitespace().nth(1) == Some("200"))
}

fn instructions(root: &Path, toolbox: &Toolbox, control_plane: &ControlPlane, controller: &Process) -> Result<String> {
    let kubectl = toolbox.path(Program::Kubectl)?;
    let bin = kubectl.parent().unwrap_or(&kubectl);
    Ok(format!(
        "
The cluster is ready. In another terminal:

    export KUBECONFIG={kubeconfig}
    export PATH={bin}:$PATH

    kubectl apply -f {example}
    kubectl scale deployment inflate --replicas=10
    kubectl get nodepools,nodeclaims,nodes,pods
    kubectl scale deployment inflate --replicas=0

The controller writes to {log}
Ctrl-C stops the cluster and removes everything it wrote.",
        kubeconfig = control_plane.admin_kubeconfig().display(),
        bin = bin.display(),
        example = root.join(EXAMPLE).display(),
        log = controller.log().display(),
    ))
}
