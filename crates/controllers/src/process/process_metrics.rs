//! The usual `process_*` metrics, read from `/proc` on each scrape.

use std::path::PathBuf;

use super::memory::SoftLimit;
use crate::metrics::{Collector, Kind, Page, Row, Source};

const fn row(name: &'static str, kind: Kind, help: &'static str) -> Row {
    Row { name, kind, labels: &[], help, source: Source::Computed }
}

const CPU: Row = row("process_cpu_seconds_total", Kind::Counter, "User and system CPU time spent in seconds");
const RESIDENT: Row = row("process_resident_memory_bytes", Kind::Gauge, "Resident memory in bytes");
const VIRTUAL: Row = row("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory in bytes");
const STARTED: Row = row("process_start_time_seconds", Kind::Gauge, "When the process started, in seconds since 1970");
const OPEN_FILES: Row = row("process_open_fds", Kind::Gauge, "Open file descriptors");
const OPEN_FILES_MAX: Row = row("process_max_fds", Kind::Gauge, "File descriptors that may be open");

/// Performance tools of the reference read this name; resident memory that no file stands for is what comes nearest.
const HEAP: Row = row("go_gc_heap_live_bytes", Kind::Gauge, "Memory in use for data, stacks included, in bytes");
const SOFT_LIMIT: Row =
    row("go_gc_gomemlimit_bytes", Kind::Gauge, "Soft limit of memory, nine tenths of the container's, in bytes");

/// The rows of the table that are about the process.
pub(crate) const PROCESS_ROWS: &[Row] =
    &[CPU, RESIDENT, VIRTUAL, STARTED, OPEN_FILES, OPEN_FILES_MAX, HEAP, SOFT_LIMIT];

/// The unit of times in `/proc`: the kernel reports hundredths of a second to programs on every architecture in use.
const TICKS_PER_SECOND: f64 = 100.0;

/// Adds CPU, memory, start time and open files of this process to a scrape.
///
/// What the system does not tell is left out; elsewhere than on Linux that is everything.
#[derive(Debug)]
pub struct ProcessMetrics {
    proc: PathBuf,
    soft_limit_bytes: Option<u64>,
}

impl ProcessMetrics {
    /// Of a process with this memory limit.
    pub fn new(memory_limit_bytes: Option<u64>) -> Self {
        Self { proc: PathBuf::from("/proc"), soft_limit_bytes: SoftLimit::of(memory_limit_bytes).bytes() }
    }
}

impl ProcessMetrics {
    fn text(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.proc.join(file)).ok()
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge has no use for the last digit")]
    fn values(&self) -> [(&'static Row, Option<f64>); 8] {
        let stat = self.text("self/stat").as_deref().and_then(parse_stat);
        let status = self.text("self/status");
        let system = self.text("stat");
        let limits = self.text("self/limits");
        let open_files = std::fs::read_dir(self.proc.join("self/fd")).ok().map(|entries| entries.count() as f64);
        let start_time = stat.zip(system.as_deref().and_then(boot_time_seconds));
        [
            (&CPU, stat.map(|stat| stat.cpu_seconds)),
            (&RESIDENT, status.as_deref().and_then(resident_memory_bytes)),
            (&VIRTUAL, stat.map(|stat| stat.virtual_memory_bytes)),
            (&STARTED, start_time.map(|(stat, boot)| boot + stat.started_seconds_after_boot)),
            (&OPEN_FILES, open_files),
            (&OPEN_FILES_MAX, limits.as_deref().and_then(open_files_max)),
            (&HEAP, status.as_deref().and_then(|status| memory_bytes(status, "RssAnon:"))),
            (&SOFT_LIMIT, self.soft_limit_bytes.map(|bytes| bytes as f64)),
        ]
    }
}

impl Collector for ProcessMetrics {
    fn collect(&self, page: &mut Page) {
        for (row, value) in self.values() {
            page.metric(row, value.map(|value| ([], value)));
        }
    }
}

/// What `/proc/<pid>/stat` says of interest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProcessStat {
    cpu_seconds: f64,
    started_seconds_after_boot: f64,
    virtual_memory_bytes: f64,
}

fn parse_stat(text: &str) -> Option<ProcessStat> {
    // The second column is the program's name in parentheses, which may hold spaces and parentheses itself.
    let (_, after_name) = text.rsplit_once(')')?;
    let columns: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // The manual counts columns from one; the first after the name is number three.
    let number = |column: usize| columns.get(column - 3)?.parse::<f64>().ok();
    Some(ProcessStat {
        cpu_seconds: (number(14)? + number(15)?) / TICKS_PER_SECOND,
        started_seconds_after_boot: number(22)? / TICKS_PER_SECOND,
        virtual_memory_bytes: number(23)?,
    })
}

/// The time the system started, from `/proc/stat`.
fn boot_time_seconds(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// The resident memory from `/proc/<pid>/status`, which unlike the other files does not count in pages.
pub(super) fn resident_memory_bytes(text: &str) -> Option<f64> {
    memory_bytes(text, "VmRSS:")
}

fn memory_bytes(text: &str, field: &str) -> Option<f64> {
    let kibibytes = text.lines().find_map(|line| line.strip_prefix(field))?.trim().strip_suffix("kB")?;
    kibibytes.trim().parse::<f64>().ok().map(|kibibytes| kibibytes * 1024.0)
}

/// The soft limit of open files from `/proc/<pid>/limits`.
fn open_files_max(text: &str) -> Option<f64> {
    let columns = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    columns.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{ProcessMetrics, ProcessStat, boot_time_seconds, open_files_max, parse_stat, resident_memory_bytes};
    use crate::metrics::{Collector, Page};

    const STAT: &str = "4242 (a ) (b) S 1 4242 4242 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 8 0 123456 1073741824 2048 \
                        18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    fn scrape(proc: &std::path::Path) -> String {
        let mut page = Page::default();
        ProcessMetrics { proc: proc.to_owned(), soft_limit_bytes: None }.collect(&mut page);
        page.into_text()
    }

    #[test]
    fn stat_is_read_after_the_name() {
        let expected = ProcessStat {
            cpu_seconds: 3.0,
            started_seconds_after_boot: 1234.56,
            virtual_memory_bytes: 1_073_741_824.0,
        };
        assert_eq!(parse_stat(STAT), Some(expected));
        for malformed in ["", "1 (a", "1 (a) S 1 2", "1 (a) S 0 0 0 0 0 0 0 0 0 0 x y"] {
            assert_eq!(parse_stat(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn other_files_are_read() {
        assert_eq!(boot_time_seconds("cpu 1 2\nbtime 1700000000\nprocesses 5\n"), Some(1_700_000_000.0));
        assert_eq!(resident_memory_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2_097_152.0));
        assert_eq!(
            open_files_max("Limit  Soft Limit\nMax open files            1024    4096    files\n"),
            Some(1024.0)
        );
        assert_eq!(open_files_max("Max open files   unlimited unlimited files\n"), None);
        assert_eq!(boot_time_seconds(""), None);
        assert_eq!(resident_memory_bytes("VmRSS: lots\n"), None);
    }

    /// OBS-07: the process metrics of a system with `/proc`.
    #[test]
    fn scrape_has_the_process_metrics() {
        let proc = std::env::temp_dir().join(format!("process-metrics-{}", std::process::id()));
        std::fs::create_dir_all(proc.join("self/fd")).unwrap();
        for (file, text) in [
            ("self/stat", STAT),
            ("self/status", "VmRSS: 2048 kB\nRssAnon: 1024 kB\n"),
            ("self/limits", "Max open files 1024 4096 files\n"),
            ("stat", "btime 1700000000\n"),
            ("self/fd/0", ""),
            ("self/fd/1", ""),
        ] {
            std::fs::write(proc.join(file), text).unwrap();
        }
        let text = scrape(&proc);
        std::fs::remove_dir_all(&proc).unwrap();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "process_cpu_seconds_total 3",
                "process_resident_memory_bytes 2.097152e+06",
                "process_virtual_memory_bytes 1.073741824e+09",
                "process_start_time_seconds 1.70000123456e+09",
                "process_open_fds 2",
                "process_max_fds 1024",
                "go_gc_heap_live_bytes 1.048576e+06",
            ]
        );
    }

    #[test]
    fn what_is_not_told_is_left_out() {
        assert_eq!(scrape(std::path::Path::new("/nonexistent")), "");
    }
}
