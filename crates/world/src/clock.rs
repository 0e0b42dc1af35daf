//! Virtual time: a fixed beginning plus whatever the runtime's clock has counted since.

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
