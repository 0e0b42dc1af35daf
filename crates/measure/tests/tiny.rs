//! A small scenario from its file to what is printed of it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use expect_test::{expect, expect_file};
use measure::{Line, Measured, Memory, Report, Scenario, ScenarioError, Statistics, Table, Timing, Way, measure};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny.json")
}

/// The report without what depends on the machine, or on how the planner searches.
fn report(detail: bool) -> Report {
    let way = Way { runs: 2, detail, audit: true, heap: measure::uncounted };
    let Measured { mut report, .. } = measure(&Scenario::read(&fixture()).unwrap(), way).unwrap();
    assert_eq!(report.timing.total.all.len(), 2);
    let instant = || Statistics::of(vec![0.5]);
    report.timing = Timing { snapshot: instant(), solve: instant(), total: instant(), pods_per_second: 6000.0 };
    report.result.steps = 7;
    (report.result.bound_per_hour, report.result.gap) = (0.039, 0.025);
    report.result.pod_errors.values_mut().for_each(|reason| *reason = "reasons".to_owned());
    report
}

#[test]
fn people_get_a_row() {
    let mut report = report(true);
    report.memory = Memory { peak_bytes: 1_234_567, ..Memory::default() };
    report.violations = vec!["`default/web-0` sits twice".to_owned()];
    let table = Table::of_files([fixture().as_path()]);
    expect![[r#"
        scenario    pods  median ms      pods/s claims unplaced        $/h  bound $/h     gap  worst $/h       steps  heap MB
        tiny           3       0.50       6,000      1        1     0.0400     0.0390   2.50%     0.0500           7     1.23
          not allowed: `default/web-0` sits twice
    "#]].assert_eq(&format!("{}\n{}\n", table.header(), table.row(&report)));
}

#[test]
fn programs_get_an_object() {
    let line = Line { max_resident_bytes: 0, report: &report(true) }.json();
    let read: serde_json::Value = serde_json::from_str(&line).unwrap();
    expect_file!["fixtures/tiny.report.json"].assert_eq(&format!("{read:#}\n"));
}

#[test]
fn details_can_be_left_out() {
    let line = Line { max_resident_bytes: 0, report: &report(false) }.json();
    for (field, is_there) in [("\"claims\"", false), ("\"existing\"", false), ("\"podErrors\"", true)] {
        assert_eq!(line.contains(field), is_there, "{field} in {line}");
    }
}

/// The fixture with something in it replaced, as a file of its own.
struct Altered(PathBuf);

impl Altered {
    fn new(name: &str, from: &str, to: &str) -> Self {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()));
        let text = std::fs::read_to_string(fixture()).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        Self(file)
    }
}

impl Drop for Altered {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What is wrong, with its causes, and without the folder.
fn told(path: &Path) -> String {
    let error = Scenario::read(path)
        .and_then(|scenario| measure(&scenario, Way { runs: 1, detail: false, audit: false, heap: measure::uncounted }))
        .err()
        .unwrap();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let shown = path.display().to_string();
    format!("{error}{cause}").replace(&shown, "FILE")
}

#[test]
fn a_file_that_cannot_be_used_says_why() {
    assert!(matches!(Scenario::read(Path::new("no/such/file.json")), Err(ScenarioError::Unreadable { .. })));
    for (name, from, to, expected) in [
        ("field", "\"seed\"", "\"sed\"", "unknown field `sed`"),
        ("nested", "\"zone\": \"a\"", "\"zon\": \"a\"", "unknown field `zon`"),
        ("version", "\"version\": 1", "\"version\": 2", "FILE` has version 2 of the format; version 1 is known"),
        ("broken", "{", "", "is not a scenario"),
        ("quantity", "\"cpu\": \"2\"", "\"cpu\": \"two\"", "a quantity of `small` cannot be read: `two`"),
        ("operator", "\"In\"", "\"Inn\"", "a requirement of `general` cannot be read: `kubernetes.io/arch Inn`"),
    ] {
        let text = told(&Altered::new(name, from, to).0);
        assert!(text.contains(expected), "{name}: {text}");
    }
}
