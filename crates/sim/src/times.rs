//! Times as Kubernetes writes them.

use jiff::Timestamp;

/// A time to the second, as metadata has it.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Reads a time back.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
