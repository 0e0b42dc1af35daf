//! `bench` as people and programs run it.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kubectl-karpenter")).arg("bench").args(arguments).output().unwrap()
}

fn fixture() -> String {
    format!("{}/../measure/tests/fixtures/tiny.json", env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn people_get_a_table() {
    let output = bench(&[&fixture(), &fixture(), "--runs", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("scenario") && lines[0].ends_with("heap MB"), "{lines:?}");
    for row in &lines[1..] {
        assert!(row.starts_with("tiny ") && row.len() == lines[0].len(), "{lines:?}");
        assert!(!row.ends_with('-'), "the program counts its heap: {row}");
    }
}

#[test]
fn programs_get_a_line_for_each_file() {
    let output = bench(&[&fixture(), &fixture(), "--json", "--runs", "3", "--no-detail"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let report = &line["report"];
        assert_eq!(report["timing"]["total"]["all"].as_array().unwrap().len(), 3, "{line}");
        assert_eq!(report["result"]["podErrorCount"], 1, "{line}");
        assert!(report["result"].get("claims").is_none(), "{line}");
        assert!(report["memory"]["peakHeapBytes"].as_u64().unwrap() > 0, "{line}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_a_hint() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let altered = folder.join(format!("unknown-field-{}.json", std::process::id()));
    let good = std::fs::read_to_string(fixture()).unwrap();
    std::fs::write(&altered, good.replacen("\"seed\"", "\"sed\"", 1)).unwrap();
    let altered_path = altered.display().to_string();
    for (file, expected) in [("no/such.json", "`no/such.json` cannot be read"), (&*altered_path, "unknown field `sed`")]
    {
        let output = bench(&[file]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        let errors = text(&output.stderr);
        assert!(errors.contains(expected) && errors.contains("hint: "), "{errors}");
    }
    std::fs::remove_file(altered).unwrap();
}
