//! How long ago, in the few words that kubectl prints: `45s`, `3m20s`, `12h`, `2d5h`.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Prints a number of seconds with two or three significant figures.
pub(super) fn words(seconds: i64) -> String {
    match seconds {
        // Clocks may differ by a second; more than that is a mistake.
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
}

/// The time in a field of an object, if it is there and is a time.
pub(super) fn timestamp(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// The time between two moments, in words.
pub(super) fn between(start: Timestamp, end: Timestamp) -> String {
    words(end.duration_since(start).as_secs())
}

/// The time since a moment that may not be known.
pub(super) fn since(start: Option<Timestamp>, now: Timestamp) -> String {
    start.map_or_else(|| "<unknown>".to_owned(), |start| between(start, now))
}
