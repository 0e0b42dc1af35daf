//! The program as people run it.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn demo(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_kubectl-karpenter");
    Command::new(program).arg("demo").args(arguments).env_remove("CLICOLOR_FORCE").output().unwrap()
}

fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn events<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

#[track_caller]
fn assert_well(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{errors}\n{}", output.status, String::from_utf8_lossy(&output.stdout));
}

#[test]
fn one_seed_is_one_story() {
    let (one, other) = (demo(&["--json", "--seed", "7"]), demo(&["--json", "--seed", "7"]));
    assert_well(&one);
    assert_eq!(one.stdout, other.stdout, "the same seed told two stories");
    let told = lines(&one);
    let summary = told.last().unwrap();
    assert_eq!(summary["event"], "summary");
    assert_eq!((&summary["pendingPods"], &summary["nodes"]), (&0.into(), &0.into()));
    assert!(summary["nodeHours"].as_f64().unwrap() > 0.0 && summary["costUsd"].as_f64().unwrap() > 0.0, "{summary}");
    assert!(summary["podWaitSeconds"]["p50"].as_f64() <= summary["podWaitSeconds"]["p99"].as_f64(), "{summary}");
    let keys: Vec<String> =
        serde_json::from_str::<KeysInOrder>(std::str::from_utf8(&one.stdout).unwrap().lines().last().unwrap())
            .unwrap()
            .0;
    assert_eq!(keys, ["event", "pendingPods", "nodes", "nodeHours", "costUsd", "podWaitSeconds"]);
    for event in [
        "started",
        "applied",
        "scaled",
        "pending",
        "decided",
        "launched",
        "registered",
        "initialized",
        "bound",
        "emptied",
        "removing",
        "removed",
    ] {
        assert!(!events(&told, event).is_empty(), "nothing was {event}");
    }
    let times: Vec<f64> = told.iter().filter_map(|line| line["at"].as_f64()).collect();
    assert_eq!(times.len(), told.len() - 1, "every line but the summary has a time");
    assert!(times.is_sorted(), "{times:?}");
}

/// The keys of an object as they are written.
struct KeysInOrder(Vec<String>);

impl<'de> serde::Deserialize<'de> for KeysInOrder {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> serde::de::Visitor<'de> for Keys {
            type Value = KeysInOrder;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<KeysInOrder, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, _)) = map.next_entry::<String, Value>()? {
                    keys.push(key);
                }
                Ok(KeysInOrder(keys))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

#[test]
fn another_seed_is_another_story_with_the_same_end() {
    let (one, other) = (demo(&["--json", "--seed", "1"]), demo(&["--json", "--seed", "2"]));
    assert_well(&one);
    assert_well(&other);
    assert_ne!(one.stdout, other.stdout);
}

#[test]
fn people_read_short_lines() {
    let output = demo(&[]);
    assert_well(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Story inflate, seed 7"), "{text}");
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(wide.is_empty() && !text.contains('\x1b'), "{wide:?}");
}

#[test]
fn every_story_of_the_repository_ends_well() {
    for (file, events_expected) in [
        ("one-type.yaml", &["decided", "removed"][..]),
        ("two-pools.yaml", &["decided", "refused", "deleted", "removed"]),
        ("spot-interruption.yaml", &["interruption", "crash", "removed"]),
    ] {
        let output = demo(&["--json", "--scenario", &scenario(file)]);
        assert_well(&output);
        let told = lines(&output);
        for event in events_expected {
            assert!(!events(&told, event).is_empty(), "{file}: nothing was {event}");
        }
        let summary = told.last().unwrap();
        assert_eq!((&summary["pendingPods"], &summary["nodes"]), (&0.into(), &0.into()), "{file}: {summary}");
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let file = self.0.join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn numbers_nobody_tuned_for_work_the_same() {
    let folder = Folder::new("other-numbers");
    let story = std::fs::read_to_string(scenario("inflate.yaml")).unwrap();
    let other = story.replace("replicas: 10", "replicas: 23").replace("replicas: 3}", "replicas: 11}");
    let output = demo(&["--json", "--scenario", &folder.write("story.yaml", &other)]);
    assert_well(&output);
    let told = lines(&output);
    let pods: u64 = events(&told, "decided")
        .iter()
        .flat_map(|line| line["pods"].as_object().unwrap().values())
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(pods, 23);
    assert_eq!(told.last().unwrap()["nodes"], 0);
}

#[test]
fn a_story_that_leaves_pods_behind_fails() {
    let folder = Folder::new("left-behind");
    let story = std::fs::read_to_string(scenario("inflate.yaml")).unwrap();
    let hopeless = story.replace("requests: {cpu: 1}", "requests: {cpu: 5000}").replace("replicas: 0}", "replicas: 2}");
    let output = demo(&["--json", "--scenario", &folder.write("story.yaml", &hopeless)]);
    assert_eq!(output.status.code(), Some(1));
    let told = lines(&output);
    assert_eq!(told.last().unwrap()["pendingPods"], 2);
    let refused = events(&told, "refused");
    assert!(
        refused[0]["reasons"][0].as_str().unwrap().contains("no instance type has enough resources"),
        "{refused:?}"
    );
}

/// The controller is killed while its machines start: the story ends as it would have without.
#[test]
fn a_story_survives_its_faults() {
    let folder = Folder::new("faults");
    let story = std::fs::read_to_string(scenario("inflate.yaml")).unwrap();
    let faults = "faults: [at 62000ms kill, 'create nodeclaims #2 answer-lost', at 1000000ms crash]\nsteps:";
    let faulty = folder.write("faulty.yaml", &story.replace("steps:", faults));
    let output = demo(&["--scenario", &faulty, "--json"]);
    let told = lines(&output);
    assert_eq!(output.status.code(), Some(0), "{told:?}");
    assert_eq!(told.last().unwrap()["nodes"], 0);
}

#[test]
fn stories_that_cannot_be_read_are_refused_with_a_hint() {
    let folder = Folder::new("unreadable");
    let story = std::fs::read_to_string(scenario("inflate.yaml")).unwrap();
    let misspelt = folder.write("misspelt.yaml", &story.replace("replicas: 10", "replica: 10"));
    let fault = folder.write("fault.yaml", &story.replace("steps:", "faults: [at 1000ms tea]\nsteps:"));
    for (arguments, message, hint) in [
        (vec!["--scenario", &misspelt], "unknown field `replica`", "did you mean `replicas`?"),
        (vec!["--scenario", "nowhere.yaml"], "cannot read `nowhere.yaml`", "give the path of a YAML file"),
        (vec!["--scenario", &fault], "`at 1000ms tea` is neither", "for example"),
    ] {
        let output = demo(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(message) && errors.contains(&format!("hint: {hint}")), "{errors}");
        assert!(output.stdout.is_empty());
    }
}

/// The answer to a GET on the loopback interface.
fn get(url: &str, path: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_served_cluster_answers_until_it_is_ended() {
    let folder = Folder::new("served");
    let kubeconfig = folder.0.join("config");
    let mut server = Command::new(env!("CARGO_BIN_EXE_kubectl-karpenter"))
        .args(["demo", "--json", "--serve", "--speed", "10", "--kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let serving = lines.find(|line| line["event"] == "serving").unwrap();
    let url = serving["url"].as_str().unwrap();
    let pools = get(url, "/apis/karpenter.sh/v1/nodepools");
    assert!(pools.starts_with("HTTP/1.1 200") && pools.contains("\"name\":\"default\""), "{pools}");
    assert!(std::fs::read_to_string(&kubeconfig).unwrap().contains(url));
    assert!(Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap().success());
    assert!(server.wait().unwrap().success());
    assert!(!kubeconfig.exists(), "the kubeconfig of a cluster that is gone is left behind");
}

#[test]
fn help_and_version() {
    let run = |argument: &str| Command::new(env!("CARGO_BIN_EXE_kubectl-karpenter")).arg(argument).output().unwrap();
    let version = run("--version");
    assert_eq!(String::from_utf8_lossy(&version.stdout), format!("kubectl-karpenter {}\n", env!("CARGO_PKG_VERSION")));
    assert!(String::from_utf8_lossy(&run("--help").stdout).contains("demo"));
    assert_eq!(run("dmeo").status.code(), Some(2));
}
