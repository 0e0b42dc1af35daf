use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Launch, Process, signal_group, tail};

/// Set in the copy of this test program that is going to be killed.
const HOLDER: &str = "CONTROL_PLANE_TEST_HOLDER";

fn log(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("control-plane-process-{}-{name}.log", std::process::id()))
}

fn shell(name: &str, script: &str) -> Process {
    Process::start(&Launch::new(name, "/bin/sh", log(name)).arguments(["-c", script])).unwrap()
}

fn wait_for_output(process: &Process) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while process.log_tail().is_empty() {
        assert!(Instant::now() < deadline, "`{}` printed nothing", process.name());
        sleep(Duration::from_millis(10));
    }
}

fn assert_gone(group: u32) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while signal_group(group, "0").unwrap() {
        assert!(Instant::now() < deadline, "process group {group} is still there");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_program_that_ends_by_itself_reports_its_status() {
    let mut process = shell("seven", "echo done; exit 7");
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        if let Some(status) = process.ended().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(7));
    assert_eq!(process.log_tail(), "done");
    assert_gone(process.group());
    std::fs::remove_file(log("seven")).unwrap();
}

#[test]
fn stop_lets_a_program_say_goodbye() {
    let process = shell("polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    wait_for_output(&process);
    let group = process.group();
    process.stop().unwrap();
    assert_gone(group);
    assert_eq!(std::fs::read_to_string(log("polite")).unwrap(), "up\nbye\n");
    std::fs::remove_file(log("polite")).unwrap();
}

#[test]
fn kill_does_not() {
    let process = shell("killed", "trap 'echo bye; exit 0' TERM; echo up; exec 2>/dev/null; while :; do :; done");
    wait_for_output(&process);
    let group = process.group();
    process.kill().unwrap();
    assert_gone(group);
    let output = std::fs::read_to_string(log("killed")).unwrap();
    assert!(!output.contains("bye"), "{output}");
    std::fs::remove_file(log("killed")).unwrap();
}

#[test]
fn a_program_deaf_to_sigterm_is_killed_after_its_grace() {
    let mut launch =
        Launch::new("deaf", "/bin/sh", log("deaf")).arguments(["-c", "trap '' TERM; echo up; while :; do :; done"]);
    launch.grace = Duration::from_millis(300);
    let process = Process::start(&launch).unwrap();
    wait_for_output(&process);
    let group = process.group();
    process.stop().unwrap();
    assert_gone(group);
    std::fs::remove_file(log("deaf")).unwrap();
}

/// The other half of [`a_killed_owner_takes_its_program_along`]: starts a program and waits to be killed.
#[test]
fn holder() {
    if std::env::var_os(HOLDER).is_none() {
        return;
    }
    let process = Process::start(&Launch::new("held", "/bin/sleep", log("held")).arguments(["1000"])).unwrap();
    println!("\ngroup {}", process.group());
    sleep(Duration::from_secs(1000));
}

#[test]
fn a_killed_owner_takes_its_program_along() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::tests::holder", "--nocapture"])
        .env(HOLDER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let log = std::env::temp_dir().join(format!("control-plane-process-{}-held.log", owner.id()));
    let group: u32 = BufReader::new(owner.stdout.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("group ").map(|group| group.parse().unwrap()))
        .unwrap();
    assert!(signal_group(group, "0").unwrap());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_gone(group);
    std::fs::remove_file(log).unwrap();
}

#[test]
fn the_tail_is_the_end_of_a_text() {
    assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
    assert_eq!(tail("a", 2), "a");
    assert_eq!(tail("", 2), "");
}
