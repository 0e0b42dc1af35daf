//! Who uses the one thread of a world, in real time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Builder;

/// Whose a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The controllers, with their watches, client and provider.
    Controllers,
    /// The API server and the network before it.
    Server,
    /// Scheduler, kubelets, workload controllers.
    Loops,
    /// Whoever measures.
    Measuring,
}

/// Tasks are told apart by the file in which they were started. Everything that is not of the world itself belongs to the
/// controllers.
fn owner(file: &str) -> Owner {
    let is_of = |name: &str| file.ends_with(name);
    if is_of("world/src/wire.rs") {
        Owner::Server
    } else if is_of("world/src/world.rs") {
        Owner::Loops
    } else if file.contains("world/src/load/") {
        Owner::Measuring
    } else {
        Owner::Controllers
    }
}

/// Real time that tasks took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The controllers, with their watches, client and provider.
    pub controllers: Duration,
    /// The API server and the network before it.
    pub server: Duration,
    /// Scheduler, kubelets, workload controllers.
    pub loops: Duration,
}

/// Adds up what tasks take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    began: Duration,
    used: Used,
}

impl Shares {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds up what the tasks of a runtime take.
    pub(crate) fn watch(&self, builder: &mut Builder, elapsed: fn() -> Duration) {
        let (before, after) = (self.clone(), self.clone());
        builder.on_before_task_poll(move |_| before.lock().began = elapsed());
        builder.on_after_task_poll(move |task| {
            let mut running = after.lock();
            let took = elapsed().saturating_sub(running.began);
            match owner(task.spawned_at().file()) {
                Owner::Controllers => running.used.controllers += took,
                Owner::Server => running.used.server += took,
                Owner::Loops => running.used.loops += took,
                Owner::Measuring => {}
            }
        });
    }

    /// What was used since the last call.
    pub(crate) fn take(&self) -> Used {
        std::mem::take(&mut self.lock().used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_belong_to_somebody() {
        let table = [
            ("crates/world/src/wire.rs", Owner::Server),
            ("crates/world/src/world.rs", Owner::Loops),
            ("crates/world/src/load/story.rs", Owner::Measuring),
            ("crates/world/src/process.rs", Owner::Controllers),
            ("crates/controllers/src/watches.rs", Owner::Controllers),
            ("registry/src/tower/src/buffer/service.rs", Owner::Controllers),
        ];
        for (file, expected) in table {
            assert_eq!(owner(file), expected, "{file}");
        }
    }
}
