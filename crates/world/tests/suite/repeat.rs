//! One seed is one run, in any process.

use std::process::Command;

fn hashes() -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fault-seeds"));
    let output = command.args(["--seeds", "20", "--first", "1000", "--hashes"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text.lines().filter(|line| line.starts_with("seed ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn twenty_seeds_have_equal_histories_in_two_processes() {
    let (one, other) = (hashes(), hashes());
    assert_eq!(one.lines().count(), 20, "{one}");
    assert_eq!(one, other);
    let different: std::collections::BTreeSet<&str> = one.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert_eq!(different.len(), 20, "seeds differ from one another");
}
