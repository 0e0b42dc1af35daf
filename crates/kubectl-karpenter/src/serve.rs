//! `--serve`: the embedded cluster on a socket, in real time.
//!
//! The clock of the runtime stays paused, so that everything in the world goes on as before. While somebody is served
//! it no longer jumps to the next timer by itself: a thread looks at the real clock and moves it along.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use controllers::process::shutdown_signal;
use serde_json::Value;
use sim::ApiServer;
use tokio::runtime::{Builder, RngSeed, Runtime};
use tokio::sync::mpsc;
use world::{Action, Scenario, accounts};

use crate::arguments::DemoArguments;
use crate::failure::Failure;
use crate::story::{Announced, News};

/// A paused runtime as worlds need it, which can also speak to sockets.
pub(crate) fn runtime(seed: u64) -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .build()
        .map_err(|error| no_runtime(&error))
}

pub(crate) fn no_runtime(error: &std::io::Error) -> Failure {
    Failure::trouble(format!("cannot start a runtime: {error}"))
}

/// The first line of kubeconfigs that this program wrote; no other file is overwritten or removed.
const MARK: &str = "# Written by kubectl-karpenter demo --serve.";

/// A socket that is open, and how to find it.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    port: u16,
    kubeconfig: Kubeconfig,
    speed: u32,
}

/// A kubeconfig that goes with this value.
#[derive(Debug)]
struct Kubeconfig(PathBuf);

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if is_ours(&self.0) {
            // A file that somebody took away meanwhile needs no removal.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

impl Door {
    /// Opens the socket and writes the kubeconfig, before the story begins: what cannot work should fail at once.
    pub(crate) fn open(arguments: &DemoArguments) -> Result<Self, Failure> {
        let DemoArguments { port, kubeconfig, speed, .. } = arguments;
        let trouble = |error: std::io::Error| {
            let failure = Failure::trouble(format!("cannot listen on port {port} of the loopback interface: {error}"));
            if error.kind() == ErrorKind::AddrInUse {
                failure.hinting("leave --port out to get a free one")
            } else {
                failure
            }
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map_err(trouble)?;
        let port = listener.local_addr().map_err(trouble)?.port();
        write_kubeconfig(kubeconfig, port)?;
        Ok(Self { listener, port, kubeconfig: Kubeconfig(kubeconfig.clone()), speed: *speed })
    }

    /// What to tell people who want to come in.
    pub(crate) fn announcement(&self, scenario: &Scenario) -> News {
        let (kubeconfig, url) = (self.kubeconfig.0.display().to_string(), self.url());
        let pace = if self.speed == 1 {
            "in real time".to_owned()
        } else {
            format!("{} times as fast as real time", self.speed)
        };
        let message = format!("the cluster goes on at {url}, {pace}; Ctrl-C ends it. In another terminal:");
        let kubectl = format!("kubectl --kubeconfig {kubeconfig}");
        let mut commands = vec![format!("{kubectl} get nodepools,nodeclaims,nodes,pods -A")];
        if let Some(name) = some_deployment(scenario) {
            commands.push(format!("{kubectl} scale deployment {name} --replicas=5"));
        }
        let fields = BTreeMap::from([("kubeconfig", kubeconfig), ("url", url)]);
        News::Announced(Announced { event: "serving", message, commands, fields })
    }

    fn url(&self) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Serves until a signal comes.
    pub(crate) async fn serve(self, server: &ApiServer) -> Result<(), Failure> {
        let Self { listener, speed, kubeconfig: _kept_until_the_end, .. } = self;
        let trouble = |error: std::io::Error| Failure::trouble(format!("cannot serve: {error}"));
        listener.set_nonblocking(true).map_err(trouble)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(trouble)?;
        let ended = shutdown_signal().map_err(trouble)?;
        tokio::select! {
            biased;
            _ = ended => Ok(()),
            served = sim::http::serve(listener, server.clone(), accounts::ADMINISTRATOR) => served.map_err(trouble),
            () = follow_real_time(speed) => Ok(()),
        }
    }
}

/// The name of a Deployment in the usual namespace that the story applies, to have something to play with.
fn some_deployment(scenario: &Scenario) -> Option<String> {
    let applied = scenario.steps.iter().filter_map(|step| match &step.action {
        Action::Apply(objects) => Some(objects),
        _ => None,
    });
    let text = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    applied.flatten().find_map(|object| {
        let namespace = text(object, "/metadata/namespace");
        let is_usual = namespace.is_none_or(|namespace| namespace == "default");
        let is_deployment = text(object, "/kind").as_deref() == Some("Deployment");
        if is_usual && is_deployment { text(object, "/metadata/name") } else { None }
    })
}

fn is_ours(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK))
}

fn write_kubeconfig(path: &Path, port: u16) -> Result<(), Failure> {
    let shown = path.display();
    if path.exists() && !is_ours(path) {
        let failure = Failure::misuse(format!("`{shown}` is there already and was not written by this program"), None);
        return Err(failure.hinting("name another file with --kubeconfig"));
    }
    let text = format!(
        "{MARK}
apiVersion: v1
kind: Config
clusters:
- name: karpenter-demo
  cluster:
    server: http://{host}:{port}
users:
- name: karpenter-demo
  user: {{}}
contexts:
- name: karpenter-demo
  context:
    cluster: karpenter-demo
    user: karpenter-demo
current-context: karpenter-demo
",
        host = Ipv4Addr::LOCALHOST,
    );
    std::fs::write(path, text).map_err(|error| {
        Failure::trouble(format!("cannot write `{shown}`: {error}")).hinting("name another file with --kubeconfig")
    })
}

/// How often the clock is moved, in real time: well below what a person at a keyboard notices.
const TICK: Duration = Duration::from_millis(10);
/// The clock is never moved further at once, or many things would seem to happen in one moment.
const STEP_MAX: Duration = Duration::from_millis(50);

/// Moves the paused clock along with the real one. Returns only if the thread that ticks cannot be started.
pub(crate) async fn follow_real_time(speed: u32) {
    let _held = held_clock();
    let (ticks, mut received) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while ticks.send(()).is_ok() {
            std::thread::sleep(TICK);
        }
    });
    let (began, mut moved) = (Instant::now(), Duration::ZERO);
    while received.recv().await.is_some() {
        let wanted = began.elapsed() * speed;
        while moved < wanted {
            let step = (wanted - moved).min(STEP_MAX);
            tokio::time::advance(step).await;
            moved += step;
        }
    }
}

/// As long as the returned value lives, the paused clock does not jump by itself: the runtime waits for its blocking
/// task, as it does for every one.
fn held_clock() -> std::sync::mpsc::Sender<()> {
    let (hold, held) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || held.recv().is_err());
    hold
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_clock_does_not_jump() {
        let moved = runtime(1).expect("a runtime").block_on(async {
            let before = tokio::time::Instant::now();
            let _held = held_clock();
            let (wake, woken) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                wake.send(())
            });
            tokio::select! {
                biased;
                woken = woken => woken.expect("the thread speaks"),
                () = tokio::time::sleep(Duration::from_secs(3600)) => {}
            }
            before.elapsed()
        });
        assert_eq!(moved, Duration::ZERO);
    }

    #[test]
    fn a_clock_that_is_not_held_jumps() {
        let moved = runtime(1).expect("a runtime").block_on(async {
            let before = tokio::time::Instant::now();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            before.elapsed()
        });
        assert!(moved >= Duration::from_secs(3600));
    }

    #[test]
    fn the_clock_follows_real_time_at_a_multiple() {
        let (virtual_time, real_time) = runtime(1).expect("a runtime").block_on(async {
            let (before, began) = (tokio::time::Instant::now(), Instant::now());
            tokio::select! {
                biased;
                () = tokio::time::sleep(Duration::from_secs(60)) => {}
                () = follow_real_time(1000) => {}
            }
            (before.elapsed(), began.elapsed())
        });
        assert!(virtual_time >= Duration::from_secs(60));
        assert!(real_time >= Duration::from_millis(60), "{real_time:?}");
    }

    #[test]
    fn other_peoples_files_are_left_alone() {
        let folder = std::env::temp_dir().join(format!("kubectl-karpenter-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("config");
        std::fs::write(&file, "apiVersion: v1\n").expect("a file");
        let refused = write_kubeconfig(&file, 1).expect_err("not ours");
        assert_eq!(refused.hint.as_deref(), Some("name another file with --kubeconfig"));
        drop(Kubeconfig(file.clone()));
        assert!(file.exists());
        std::fs::remove_file(&file).expect("remove");
        write_kubeconfig(&file, 1).expect("written");
        write_kubeconfig(&file, 2).expect("written again");
        drop(Kubeconfig(file.clone()));
        assert!(!file.exists());
        std::fs::remove_dir(&folder).expect("remove");
    }
}
