//! The soft limit of memory.
//!
//! A program without a garbage collector cannot collect harder when memory gets scarce. What it can do is to leave out
//! what is large and not needed: the series of single pods in a scrape.

use std::path::PathBuf;

use super::process_metrics::resident_memory_bytes;

/// The tenths of the container's limit that may be used before anything is left out.
const SOFT_TENTHS: u64 = 9;

/// How much memory should be enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SoftLimit {
    bytes: Option<u64>,
    status: PathBuf,
}

impl SoftLimit {
    /// Nine tenths of the container's limit, if it has one.
    pub(crate) fn of(limit_bytes: Option<u64>) -> Self {
        Self { bytes: limit_bytes.map(|bytes| bytes / 10 * SOFT_TENTHS), status: PathBuf::from("/proc/self/status") }
    }

    /// The limit.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Whether the process holds more now. Without a limit nobody looks.
    #[expect(clippy::cast_precision_loss, reason = "a limit has no use for the last digit")]
    pub(crate) fn is_exceeded(&self) -> bool {
        let Some(limit) = self.bytes else { return false };
        let status = std::fs::read_to_string(&self.status).ok();
        status.as_deref().and_then(resident_memory_bytes).is_some_and(|resident| resident > limit as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CFG-07: nine tenths of the limit are enough; without a limit everything is.
    #[test]
    fn nine_tenths_are_enough() {
        assert_eq!(SoftLimit::of(Some(1000)).bytes(), Some(900));
        assert_eq!(SoftLimit::of(None).bytes(), None);
        let status = std::env::temp_dir().join(format!("soft-limit-{}", std::process::id()));
        std::fs::write(&status, "VmRSS:\t 10 kB\n").unwrap();
        let found = [Some(10 * 1024), Some(12 * 1024), None]
            .map(|limit| SoftLimit { status: status.clone(), ..SoftLimit::of(limit) }.is_exceeded());
        std::fs::remove_file(&status).unwrap();
        assert_eq!(found, [true, false, false]);
    }
}
