//! Starting, using and stopping one control plane.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{panicking, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::certificates::{Authority, Certified, signing_keys};
use crate::components::{self, Component, Files, Options, loopback};
use crate::etcd;
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
/// How long whoever has taken the port of an API server that was killed is given.
const PORT_PATIENCE: Duration = Duration::from_millis(500);
/// How much the heap of these Go programs grows before it is swept: four times the default. Memory is plentiful where tests
/// run, and processors are few.
const GARBAGE_PERCENT: &str = "400";
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
    /// etcd, the API server if it runs, then the others in the order of their start.
    processes: Mutex<Vec<Process>>,
    options: Options,
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
            processes: Mutex::default(),
            options: options.clone(),
            authority,
            files,
            ports: Ports::choose()?,
            toolbox: toolbox.clone(),
            admin: workspace.path("admin.kubeconfig"),
            users: AtomicU32::new(0),
            workspace,
        };
        control_plane.admin = control_plane.kubeconfig("admin", &["system:masters"])?;
        control_plane.launch(Program::Etcd, components::etcd(&control_plane.ports, &control_plane.files))?;
        control_plane.launch_api_server()?;
        control_plane.start_components(&options.components.iter().copied().collect::<Vec<_>>())?;
        Ok(control_plane)
    }

    fn launch_api_server(&self) -> Result<(), StartError> {
        self.launch(Program::ApiServer, components::api_server(&self.ports, &self.files, &self.options))?;
        self.await_ready(Program::ApiServer, &self.server(), "/readyz")
    }

    /// Kills the API server, as a machine that loses its power would. What etcd has stored stays.
    pub fn kill_api_server(&self) -> Result<()> {
        self.take(Program::ApiServer).context("the API server does not run")?.kill()
    }

    fn take(&self, program: Program) -> Option<Process> {
        let mut processes = self.processes();
        let place = processes.iter().position(|process| process.name() == program.name());
        place.map(|place| processes.remove(place))
    }

    /// Starts an API server that was killed, at the same address, and returns when it is ready.
    ///
    /// The controller manager is started anew, as it is in a cluster: it ends when it cannot renew its lease. Here it has
    /// none, and would go on with what it knew before for minutes.
    pub fn restore_api_server(&self) -> Result<(), StartError> {
        self.start_api_server()?;
        if let Some(manager) = self.take(Program::ControllerManager) {
            manager.kill()?;
            self.start_components(&[Component::ControllerManager])?;
        }
        Ok(())
    }

    fn start_api_server(&self) -> Result<(), StartError> {
        let mut attempts = 1;
        loop {
            match self.launch_api_server() {
                // Somebody's connection may have got the port in between; it ends soon.
                Err(error) if error.is_port_clash() && attempts < START_ATTEMPTS_MAX => {
                    attempts += 1;
                    self.processes().retain(|process| process.name() != Program::ApiServer.name());
                    sleep(PORT_PATIENCE);
                }
                outcome => return outcome,
            }
        }
    }

    /// Makes etcd forget all revisions but the current one. An API server that is started afterwards answers whoever
    /// asks for changes since an older one with `410 Gone`; one that runs remembers more than etcd does.
    pub fn compact(&self) -> Result<()> {
        etcd::compact(self.ports.etcd_client)
    }

    fn processes(&self) -> MutexGuard<'_, Vec<Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts all at once, then waits for each: they do not depend on each other.
    fn start_components(&self, chosen: &[Component]) -> Result<(), StartError> {
        let mut waiting = Vec::new();
        for component in chosen {
            waiting.push(match component {
                Component::ControllerManager => {
                    let user = self.kubeconfig("system:kube-controller-manager", &[])?;
                    let flags = components::controller_manager(&self.ports, &self.files, &user);
                    self.launch(Program::ControllerManager, flags)?;
                    (Program::ControllerManager, loopback("https", self.ports.controller_manager), "/healthz")
                }
                Component::Scheduler => {
                    let user = self.kubeconfig("system:kube-scheduler", &[])?;
                    let configuration =
                        self.workspace.write("scheduler.yaml", &components::scheduler_configuration(&user))?;
                    let flags = components::scheduler(&self.ports, &self.files, &configuration);
                    self.launch(Program::Scheduler, flags)?;
                    (Program::Scheduler, loopback("https", self.ports.scheduler), "/readyz")
                }
                Component::Kwok => {
                    self.apply_kwok_stages()?;
                    let user = self.kubeconfig("kwok", &["system:masters"])?;
                    let configuration = self
                        .workspace
                        .write("kwok.yaml", &components::kwok_configuration(&self.ports, self.options.node_leases))?;
                    self.launch(Program::Kwok, components::kwok(&user, &configuration))?;
                    (Program::Kwok, loopback("http", self.ports.kwok), "/readyz")
                }
            });
        }
        for (program, url, path) in waiting {
            self.await_ready(program, &url, path)?;
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
    pub fn stop(self) -> Result<()> {
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
        self.processes().iter().map(|process| (process.name().to_owned(), process.group())).collect()
    }

    /// Starts a program.
    fn launch(&self, program: Program, arguments: Vec<String>) -> Result<()> {
        let name = program.name();
        let log = self.workspace.logs().join(format!("{name}.log"));
        let mut launch = Launch::new(name, self.toolbox.path(program)?, log)
            .arguments(arguments)
            .environment("HOME", self.workspace.home())
            .environment("GOGC", GARBAGE_PERCENT);
        launch.grace = STOP_GRACE;
        let process = Process::start(&launch)?;
        let mut processes = self.processes();
        let place = if program == Program::ApiServer { processes.len().min(1) } else { processes.len() };
        processes.insert(place, process);
        Ok(())
    }

    /// Asks for `path` until it is answered with success; watches all processes, since the one at fault may be
    /// another than the one asked.
    fn await_ready(&self, program: Program, server: &str, path: &str) -> Result<(), StartError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            for process in self.processes().iter_mut() {
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
                let processes = self.processes();
                let asked = processes.iter().find(|process| process.name() == program.name());
                return Err(StartError::NotReady {
                    component: program.name().to_owned(),
                    last_answer: format!("{answer:#}"),
                    log_tail: asked.map(Process::log_tail).unwrap_or_default(),
                });
            }
            sleep(READY_INTERVAL);
        }
    }

    /// Clients first, then the API server, then etcd: nobody retries against a server that is gone.
    fn stop_processes(&self) -> Result<()> {
        let mut outcome = Ok(());
        let is_server = |process: &Process| {
            [Program::Etcd, Program::ApiServer].iter().any(|server| server.name() == process.name())
        };
        let (servers, mut components): (Vec<Process>, Vec<Process>) = self.processes().drain(..).partition(is_server);
        components.iter_mut().for_each(Process::begin_stop);
        for mut process in components.into_iter().chain(servers.into_iter().rev()) {
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
