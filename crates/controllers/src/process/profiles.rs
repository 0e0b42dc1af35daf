//! What can honestly be told under `/debug/pprof/` of a program that is not written in Go.

use std::fmt::Write as _;
use std::path::Path;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

use super::cpu_profile::cpu_profile;

/// Paths that a Go program serves and this one cannot, with what to use instead.
const ELSEWHERE: [(&str, &str); 6] = [
    ("trace", "there is no execution trace: `perf trace -p <pid>` or the debug log have what happened"),
    ("symbol", "nothing here needs symbols"),
    ("allocs", "allocations are not sampled: `heap` has numbers, `heaptrack --pid <pid>` has places"),
    ("block", "nothing blocks but threads, and `threadcreate` has those"),
    ("mutex", "locks are held for moments and not sampled"),
    ("goroutine", "there are no goroutines: `controller_runtime_active_workers` has the passes that run"),
];

/// The routes; only a process that was told to has them.
pub fn profile_router() -> Router {
    let mut router = Router::new()
        .route("/debug/pprof/", get(|| async { index() }))
        .route("/debug/pprof/cmdline", get(|| async { std::env::args().collect::<Vec<_>>().join("\0") }))
        .route("/debug/pprof/heap", get(|| async { memory(Path::new("/proc/self")) }))
        .route("/debug/pprof/threadcreate", get(|| async { threads(Path::new("/proc/self")) }))
        .route("/debug/pprof/profile", get(cpu_profile));
    for (path, why) in ELSEWHERE {
        let answer = move || async move { (StatusCode::NOT_IMPLEMENTED, why) };
        router = router.route(&format!("/debug/pprof/{path}"), get(answer));
    }
    router
}

fn index() -> String {
    let mut text = "cmdline: the program and its arguments\nheap: memory in numbers\nthreadcreate: threads\n\
        profile: where processor time goes in the next ?seconds=30, for `go tool pprof`\n"
        .to_owned();
    for (path, why) in ELSEWHERE {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{path}: {why}");
    }
    text
}

/// The lines of the kernel's account that are about memory.
fn memory(process: &Path) -> String {
    let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
    let about_memory = |line: &&str| line.starts_with("Vm") || line.starts_with("Rss");
    status.lines().filter(about_memory).fold(String::new(), |text, line| text + line + "\n")
}

/// Name and state of every thread.
fn threads(process: &Path) -> String {
    let mut lines: Vec<String> = std::fs::read_dir(process.join("task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| {
            let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
            let field = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned());
            Some(format!("{} {} {}", thread.file_name().to_string_lossy(), field("Name:")?, field("State:")?))
        })
        .collect();
    lines.sort();
    format!("threads: {}\n{}\n", lines.len(), lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBS-09: what is told is this process's own; what cannot be told says what can.
    #[test]
    fn numbers_are_read_from_the_kernel() {
        let root = std::env::temp_dir().join(format!("profiles-{}", std::process::id()));
        for thread in ["7", "8"] {
            std::fs::create_dir_all(root.join("task").join(thread)).unwrap();
            let status = format!("Name:\tworker-{thread}\nState:\tS (sleeping)\n");
            std::fs::write(root.join("task").join(thread).join("status"), status).unwrap();
        }
        std::fs::write(root.join("status"), "Name:\tx\nVmRSS:\t 12 kB\nRssAnon:\t 9 kB\nThreads:\t2\n").unwrap();
        let found = (memory(&root), threads(&root));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.0, "VmRSS:\t 12 kB\nRssAnon:\t 9 kB\n");
        assert_eq!(found.1, "threads: 2\n7 worker-7 S (sleeping)\n8 worker-8 S (sleeping)\n");
        assert_eq!(index().lines().count(), 4 + ELSEWHERE.len());
    }
}
