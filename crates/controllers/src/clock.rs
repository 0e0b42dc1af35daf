//! The wall clock, handed in.

use jiff::Timestamp;

/// Tells the time of day. Waiting is done with the runtime's own timers; this is for what is written and compared.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
