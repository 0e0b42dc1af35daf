//! A report as a page in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::report::{Report, Start, Window};

type Show<T> = fn(&T) -> String;

const STARTS: [(&str, Show<Start>); 10] = [
    ("nodes", |one| one.nodes.to_string()),
    ("pods", |one| one.pods.to_string()),
    ("waiting", |one| one.pending.to_string()),
    ("first plan s", |one| seconds(one.first_plan)),
    ("all claims s", |one| seconds(one.all_claims)),
    ("of that controllers s", |one| seconds(one.used.controllers)),
    ("claims", |one| one.claims.to_string()),
    ("process grew MiB", |one| signed_mebibytes(one.heap_bytes)),
    ("controllers hold MiB", |one| signed_mebibytes(one.held_bytes)),
    ("resident MiB", |one| mebibytes(one.resident_bytes)),
];

const WINDOWS: [(&str, Show<Window>); 16] = [
    ("pod changes", |one| one.pod_changes.to_string()),
    ("a second", |one| (one.pod_changes / one.until.saturating_sub(one.from).as_secs().max(1)).to_string()),
    ("other changes", |one| one.other_changes.to_string()),
    ("plans", |one| one.plans.to_string()),
    ("decision p50 ms", |one| format!("{:.0}", one.decisions.median)),
    ("p99 ms", |one| format!("{:.0}", one.decisions.p99)),
    ("max ms", |one| format!("{:.0}", one.decisions.max)),
    ("lag p50 s", |one| format!("{:.1}", one.lags.median)),
    ("lag p99 s", |one| format!("{:.1}", one.lags.p99)),
    ("claims", |one| format!("+{} -{}", one.claims_made, one.claims_gone)),
    ("nodes", |one| one.nodes.to_string()),
    ("pods", |one| one.pods.to_string()),
    ("controllers CPU s", |one| seconds(one.used.controllers)),
    ("all CPU s", |one| seconds(one.processor)),
    ("heap MiB", |one| signed_mebibytes(one.heap_bytes)),
    ("resident MiB", |one| mebibytes(one.resident_bytes)),
];

/// The headings above [`window_line`], with the rule below them.
pub fn window_heading() -> String {
    heading("minutes", &WINDOWS)
}

/// One window in a line.
pub fn window_line(window: &Window) -> String {
    let minutes = |at: Duration| at.as_secs() / 60;
    line(&format!("{} to {}", minutes(window.from), minutes(window.until)), &WINDOWS, window)
}

/// The whole report.
pub fn page(report: &Report) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "Cluster made in {} s; {} MiB of heap, {} MiB resident, before any controller ran.\n",
        seconds(report.made_in),
        signed_mebibytes(report.cluster_bytes),
        mebibytes(report.cluster_resident_bytes)
    );
    let _ = writeln!(page, "{}", heading("start", &STARTS));
    for start in &report.starts {
        let _ = writeln!(page, "{}", line(&start.title, &STARTS, start));
    }
    let _ = writeln!(page, "\n{}", window_heading());
    for window in &report.windows {
        let _ = writeln!(page, "{}", window_line(window));
    }
    let _ = writeln!(page, "\n{}", passes(report));
    match report.missed().as_slice() {
        [] => page.push_str("Every demand is met.\n"),
        missed => missed.iter().for_each(|demand| {
            let _ = writeln!(page, "Missed: {demand}.");
        }),
    }
    page
}

/// What kept the controllers busy in all windows together.
fn passes(report: &Report) -> String {
    let mut all: BTreeMap<&str, (u64, Duration)> = BTreeMap::new();
    for (name, (count, busy)) in report.windows.iter().flat_map(|window| &window.passes) {
        let sum = all.entry(name).or_default();
        sum.0 += count;
        sum.1 += *busy;
    }
    let mut rows = String::from("| controller | passes | busy s |\n|---|---:|---:|\n");
    for (name, (count, busy)) in all {
        let _ = writeln!(rows, "| {name} | {count} | {} |", seconds(busy));
    }
    rows
}

fn heading<T>(first: &str, columns: &[(&str, Show<T>)]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    format!("| {first} | {} |\n|---|{}", names.join(" | "), "---:|".repeat(columns.len()))
}

fn line<T>(first: &str, columns: &[(&str, Show<T>)], of: &T) -> String {
    let cells: Vec<String> = columns.iter().map(|(_, show)| show(of)).collect();
    format!("| {first} | {} |", cells.join(" | "))
}

fn seconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64())
}

fn mebibytes(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

fn signed_mebibytes(bytes: i64) -> String {
    (bytes / (1 << 20)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_cell_for_every_heading() {
        let cells = |line: &str| line.matches('|').count();
        let window = Window { until: Duration::from_secs(300), pod_changes: 300_000, ..Window::default() };
        let heading = window_heading();
        for row in heading.lines().chain([window_line(&window).as_str()]) {
            assert_eq!(cells(row), WINDOWS.len() + 2, "{row}");
        }
        assert!(window_line(&window).starts_with("| 0 to 5 | 300000 | 1000 |"), "{}", window_line(&window));
        assert!(page(&Report::default()).ends_with("were wanted.\n"));
    }
}
