//! Processes of a world: futures that can be killed where they stand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Killed from outside.
    Killed,
    /// By itself, in order.
    Finished,
    /// By itself, with an error.
    Failed(String),
}

/// The running processes of a world, by name.
#[derive(Clone, Debug, Default)]
pub struct Processes(Arc<Mutex<BTreeMap<String, Running>>>);

#[derive(Debug)]
struct Running {
    kill: Option<oneshot::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
}

/// Hears of the end of one process.
#[derive(Clone, Debug)]
pub struct Ending(watch::Receiver<Option<End>>);

impl Ending {
    /// Waits for the end.
    pub async fn wait(&mut self) -> End {
        let ended = self.0.wait_for(Option::is_some).await;
        ended.ok().and_then(|end| end.clone()).unwrap_or(End::Killed)
    }

    /// Whether the process has ended.
    pub fn is_over(&self) -> bool {
        self.0.borrow().is_some()
    }
}

impl Processes {
    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process. `program` gets a future that completes when it should stop in order. A process of the same
    /// name that still runs is killed first.
    pub fn start<F>(&self, name: &str, program: impl FnOnce(oneshot::Receiver<()>) -> F) -> Ending
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.kill(name);
        let (kill, killed) = oneshot::channel();
        let (stop, stopping) = oneshot::channel();
        let (ended, ending) = watch::channel(None);
        let running = Box::pin(program(stopping));
        self.running().insert(name.to_owned(), Running { kill: Some(kill), stop: Some(stop) });
        tokio::spawn(async move {
            let end = tokio::select! {
                biased;
                _ = killed => End::Killed,
                result = running => result.map_or_else(End::Failed, |()| End::Finished),
            };
            let _ = ended.send(Some(end));
        });
        Ending(ending)
    }

    /// Kills a process: it stops at its current await and does nothing more. Nothing if it does not run.
    pub fn kill(&self, name: &str) {
        if let Some(kill) = self.running().get_mut(name).and_then(|running| running.kill.take()) {
            let _ = kill.send(());
        }
    }

    /// Asks a process to stop in order.
    pub fn stop(&self, name: &str) {
        if let Some(stop) = self.running().get_mut(name).and_then(|running| running.stop.take()) {
            let _ = stop.send(());
        }
    }
}
