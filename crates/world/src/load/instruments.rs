//! What is read off the real process.

use std::time::Duration;

/// Only a program knows real time, its process and its allocator: it hands in how they are read.
#[derive(Clone, Copy, Debug)]
pub struct Instruments {
    /// Real time since some beginning.
    pub elapsed: fn() -> Duration,
    /// Processor time of the process.
    pub processor: fn() -> Duration,
    /// Memory that the process holds.
    pub resident_bytes: fn() -> u64,
    /// Does something, and says how many bytes more are allocated afterwards, which may be fewer.
    pub heap: fn(&mut dyn FnMut()) -> i64,
}

impl Instruments {
    /// For runs whose real figures nobody reads: all of them are zero.
    pub fn none() -> Self {
        fn unmeasured(work: &mut dyn FnMut()) -> i64 {
            work();
            0
        }
        Self {
            elapsed: Duration::default,
            processor: Duration::default,
            resident_bytes: u64::default,
            heap: unmeasured,
        }
    }
}
