//! Virtual time: a fixed beginning plus whatever the runtime's clock has counted since.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use controllers::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// When every world begins: a Thursday at midnight, UTC.
const BEGINNING: i64 = 1_767_225_600;

/// Tells the time of a world. On a paused runtime it moves only when everybody waits.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    beginning: Timestamp,
    started: Instant,
}

impl VirtualClock {
    /// Starts counting. Must be called inside a runtime.
    pub fn start() -> Self {
        let beginning = Timestamp::from_second(BEGINNING).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { beginning, started: Instant::now() }
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Now.
    pub fn timestamp(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        self.beginning.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// When the world began.
    pub fn beginning(&self) -> Timestamp {
        self.beginning
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.timestamp()
    }
}

/// The wall clocks of processes, each of which may be wrong. Time passes for all of them alike.
#[derive(Clone, Debug, Default)]
pub struct WallClocks(Arc<Mutex<BTreeMap<String, SignedDuration>>>);

impl WallClocks {
    /// Sets a process's clock this far ahead of the right time, or behind it.
    pub fn set_ahead(&self, process: &str, ahead: SignedDuration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(process.to_owned(), ahead);
    }

    fn ahead(&self, process: &str) -> SignedDuration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(process).copied().unwrap_or_default()
    }
}

/// The wall clock of one process.
#[derive(Clone, Debug)]
pub struct WallClock {
    right: VirtualClock,
    clocks: WallClocks,
    process: String,
}

impl WallClock {
    /// The clock that a process sees.
    pub fn of(process: &str, right: VirtualClock, clocks: &WallClocks) -> Self {
        Self { right, clocks: clocks.clone(), process: process.to_owned() }
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let ahead = self.clocks.ahead(&self.process);
        self.right.timestamp().saturating_add(ahead).unwrap_or(Timestamp::MAX)
    }
}
