//! Sums of times that stay within what a timestamp can hold.

use std::time::Duration;

use jiff::Timestamp;

pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Milliseconds from one moment to a later one; none if it is not later.
pub(crate) fn milliseconds_between(from: Timestamp, until: Timestamp) -> u64 {
    u64::try_from(until.as_millisecond() - from.as_millisecond()).unwrap_or(0)
}
