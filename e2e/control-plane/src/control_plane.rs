//! Starting, using and stopping one control plane.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{panicking, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::certificates::{Authority, Certified, signing_keys};
use crate::components::{self, Component, Files, Options, loopback};
use crate::kubeconfig::Kubeconfig;
use crate::process::{Launch, Process};
use crate::workspace::Workspace;
use crate::{Ports, Program, Toolbox};

/// How long one component may take to become ready: six seconds are usual, thirty on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a starting component is asked. Each question starts kubectl, which costs a tenth of a CPU second.
const READY_INTERVAL: Duration = Duration::from_millis(100);
/// How often a start is tried again when another program took one of its ports in between.
const START_ATTEMPTS_MAX: usize = 5;
/// How long a component may take to end. Nothing it could still write is worth more.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A component ended before it was ready.
    #[error("`{component}` ended while starting ({status}); the end of its log:\n{log_tail}")]
    Ended {
        /// Which one.
        component: String,
        /// Its exit status.
        status: String,
        /// The last lines it wrote.
        log_tail: String,
    },
    /// A component was not ready in time.
    #[error("`{component}` was not ready after {} s: {last_answer}; the end of its log:\n{log_tail}", READY_TIMEOUT.as_secs())]
    NotReady {
        /// Which one.
        component: String,
        /// What it said when it was asked last.
        last_answer: String,
        /// The last lines it wrote.
        log_tail: String,
    },
    /// Something around the components failed: a file, a certificate, kubectl.
    #[error(transparent)]
    Preparation(#[from] anyhow::Error),
}

impl StartError {
    /// Whether other ports would help.
    fn is_port_clash(&self) -> bool {
        match self {
            Self::Ended { log_tail, .. } => log_tail.contains("address already in use"),
            Self::NotReady { .. } | Self::Preparation(_) => false,
        }
    }
}

/// A running control plane. Dropping it stops every program and removes every file.
///
/// While the thread panics the logs are copied to a folder that stays, and its path is printed.
pub struct ControlPlane {
    /// In the order of their start; stopped in the reverse one.
    processes: Vec<Process>,
    workspace: Workspace,
    authority: Authority,
    files: Files,
    ports: Ports,
    toolbox: Toolbox,
    admin: PathBuf,
    users: AtomicU32,
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ControlPlane").field("server", &self.server()).finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts the components chosen in `options` and returns when all of them are ready.
    ///
    /// On failure everything already started is stopped again; the error shows the end of the log of the component
    /// at fault.
    pub fn start(toolbox: &Toolbox, options: &Options) -> Result<Self, StartError> {
        let mut attempts = 1;
        loop {
            match Self::start_once(toolbox, options) {
                Err(error) if error.is_port_clash() && attempts < START_ATTEMPTS_MAX => attempts += 1,
                outcome => return outcome,
            }
        }
    }

    fn start_once(toolbox: &Toolbox, options: &Options) -> Result<Self, StartError> {
        let workspace = Workspace::create()?;
        let authority = Authority::generate()?;
        let files = write_files(&workspace, &authority)?;
        let mut control_plane = Self {
            processes: Vec::new(),
            authority,
            files,
            ports: Ports::choose()?,
            toolbox: toolbox.clone(),
            admin: workspace.path("admin.kubeconfig"),
            users: AtomicU32::new(0),
            workspace,
        };
        control_plane.admin = control_plane.kubeconfig("admin", &["system:masters"])?;
        control_plane.start_api(options)?;
        control_plane.start_components(&options.components.iter().copied().collect::<Vec<_>>())?;
        Ok(control_plane)
    }

    fn start_api(&mut self, options: &Options) -> Result<(), StartError> {
        let etcd = components::etcd(&self.ports, &self.files);
        self.launch(Program::Etcd, etcd)?;
        let api_server = components::api_server(&self.ports, &self.files, options);
        let server = self.launch(Program::ApiServer, api_server)?;
        let url = self.server();
        self.await_ready(server, &url, "/readyz")
    }

    /// Starts all at once, then waits for each: they do not depend on each other.
    fn start_components(&mut self, chosen: &[Component]) -> Result<(), StartError> {
        let mut waiting = Vec::new();
        for component in chosen {
            waiting.push(match component {
                Component::ControllerManager => {
                    let user = self.kubeconfig("system:kube-controller-manager", &[])?;
                    let flags = components::controller_manager(&self.ports, &self.files, &user);
                    let process = self.launch(Program::ControllerManager, flags)?;
                    (process, loopback("https", self.ports.controller_manager), "/healthz")
                }
                Component::Scheduler => {
                    let user = self.kubeconfig("system:kube-scheduler", &[])?;
                    let configuration =
                        self.workspace.write("scheduler.yaml", &components::scheduler_configuration(&user))?;
                    let flags = components::scheduler(&self.ports, &self.files, &configuration);
                    let process = self.launch(Program::Scheduler, flags)?;
                    (process, loopback("https", self.ports.scheduler), "/readyz")
                }
                Component::Kwok => {
                    self.apply_kwok_stages()?;
                    let user = self.kubeconfig("kwok", &["system:masters"])?;
                    let configuration =
                        self.workspace.write("kwok.yaml", &components::kwok_configuration(&self.ports))?;
                    let process = self.launch(Program::Kwok, components::kwok(&user, &configuration))?;
                    (process, loopback("http", self.ports.kwok), "/readyz")
                }
            });
        }
        for (process, url, path) in waiting {
            self.await_ready(process, &url, path)?;
        }
        if chosen.contains(&Component::ControllerManager) {
            // Until this account is there, the first pod of a test would be refused.
            self.run_kubectl(["wait", "--for=create", "serviceaccount/default", "--timeout=60s"])?;
        }
        Ok(())
    }

    fn apply_kwok_stages(&self) -> Result<()> {
        let definition = self.toolbox.kwok_custom_resource()?;
        self.run_kubectl([OsStr::new("create"), OsStr::new("-f"), definition.as_os_str()])?;
        self.run_kubectl(["wait", "--for=condition=Established", "crd/stages.kwok.x-k8s.io", "--timeout=60s"])?;
        let stages = self.toolbox.kwok_stages()?;
        let mut arguments = vec![OsStr::new("create")];
        for stage in &stages {
            arguments.extend([OsStr::new("-f"), stage.as_os_str()]);
        }
        self.run_kubectl(arguments)?;
        Ok(())
    }

    /// Stops every program, removes every file, and says if either failed.
    pub fn stop(mut self) -> Result<()> {
        self.stop_processes()
    }

    /// A kubeconfig for a user with these groups, at most two, by a fresh client certificate: the API server treats
    /// it as it would treat the same user in a cluster, so that RBAC counts.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        let Certified { certificate, key } = self.authority.client(user, groups)?;
        let number = self.users.fetch_add(1, Ordering::Relaxed);
        let certificate = self.workspace.write(&format!("user-{number}.crt"), &certificate)?;
        let key = self.workspace.write(&format!("user-{number}.key"), &key)?;
        let server = self.server();
        let kubeconfig =
            Kubeconfig { server: &server, authority: &self.files.authority, certificate: &certificate, key: &key };
        self.workspace.write(&format!("user-{number}.kubeconfig"), &kubeconfig.render())
    }

    /// The kubeconfig of a user who may do everything.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.admin.clone()
    }

    /// kubectl as administrator, blind to the settings of whoever runs the test.
    pub fn kubectl(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Command> {
        let mut command = Command::new(self.toolbox.path(Program::Kubectl)?);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.admin)
            .env("HOME", self.workspace.home())
            .current_dir(self.workspace.home())
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs kubectl as administrator and returns what it printed; its complaint is the error.
    pub fn run_kubectl(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
        let mut command = self.kubectl(arguments)?;
        let output = command.output().context("start kubectl")?;
        if !output.status.success() {
            let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
            bail!("`kubectl {}` failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).context("read the output of kubectl")
    }

    /// The address of the API server.
    pub fn server(&self) -> String {
        loopback("https", self.ports.api_server)
    }

    /// The certificate of the authority that signed everything here, as PEM.
    pub fn ca_pem(&self) -> String {
        self.authority.certified().certificate
    }

    /// Where the components write their logs, one file each; gone when the control plane stops.
    pub fn log_dir(&self) -> PathBuf {
        self.workspace.logs()
    }

    /// The process group of each program running, by name.
    pub fn process_groups(&self) -> Vec<(String, u32)> {
        self.processes.iter().map(|process| (process.name().to_owned(), process.group())).collect()
    }

    /// Starts a program and returns its place among the processes.
    fn launch(&mut self, program: Program, arguments: Vec<String>) -> Result<usize> {
        let name = program.name();
        let log = self.workspace.logs().join(format!("{name}.log"));
        let mut launch = Launch::new(name, self.toolbox.path(program)?, log)
            .arguments(arguments)
            .environment("HOME", self.workspace.home());
        launch.grace = STOP_GRACE;
        self.processes.push(Process::start(&launch)?);
        Ok(self.processes.len() - 1)
    }

    /// Asks for `path` until it is answered with success; watches all processes, since the one at fault may be
    /// another than the one asked.
    fn await_ready(&mut self, process: usize, server: &str, path: &str) -> Result<(), StartError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            for process in &mut self.processes {
                if let Some(status) = process.ended()? {
                    return Err(StartError::Ended {
                        component: process.name().to_owned(),
                        status: status.to_string(),
                        log_tail: process.log_tail(),
                    });
                }
            }
            let asked = self.run_kubectl(["--server", server, "--request-timeout=5s", "get", "--raw", path]);
            let Err(answer) = asked else { return Ok(()) };
            if Instant::now() > deadline {
                let process = &self.processes[process];
                return Err(StartError::NotReady {
                    component: process.name().to_owned(),
                    last_answer: format!("{answer:#}"),
                    log_tail: process.log_tail(),
                });
            }
            sleep(READY_INTERVAL);
        }
    }

    /// Clients first, then the API server, then etcd: nobody retries against a server that is gone.
    fn stop_processes(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        let mut components = self.processes.split_off(self.processes.len().min(2));
        components.iter_mut().for_each(Process::begin_stop);
        let servers = self.processes.drain(..).rev();
        for mut process in components.into_iter().chain(servers) {
            process.begin_stop();
            outcome = outcome.and(process.await_end());
        }
        outcome
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if let Err(error) = self.stop_processes() {
            eprintln!("could not stop the control plane: {error:#}");
        }
        if panicking() {
            match self.workspace.keep_logs() {
                Ok(folder) => eprintln!("the logs of the control plane are in `{}`", folder.display()),
                Err(error) => eprintln!("could not keep the logs of the control plane: {error:#}"),
            }
        }
    }
}

fn write_files(workspace: &Workspace, authority: &Authority) -> Result<Files> {
    let own = authority.certified();
    let server = authority.server()?;
    let service_account = signing_keys()?;
    Ok(Files {
        authority: workspace.write("ca.crt", &own.certificate)?,
        authority_key: workspace.write("ca.key", &own.key)?,
        server: workspace.write("server.crt", &server.certificate)?,
        server_key: workspace.write("server.key", &server.key)?,
        service_account: workspace.write("service-account.pub", &service_account.public)?,
        service_account_key: workspace.write("service-account.key", &service_account.private)?,
        etcd_data: workspace.path("etcd"),
    })
}

#[cfg(test)]
mod tests {
    use super::StartError;

    fn ended(log_tail: &str) -> StartError {
        StartError::Ended {
            component: "etcd".to_owned(),
            status: "exit status: 1".to_owned(),
            log_tail: log_tail.to_owned(),
        }
    }

    #[test]
    fn only_a_taken_port_is_worth_another_try() {
        assert!(ended("listen tcp 127.0.0.1:2379: bind: address already in use").is_port_clash());
        assert!(!ended("unknown flag: --no-such-flag").is_port_clash());
    }
}
