//! What the real API server says to the objects with which the embedded one's rules for built-in kinds are tested.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use control_plane::ControlPlane;
use serde_json::{Map, Value, json};

/// Objects, and what the server said.
const CASES: &str = "crates/schema/tests/builtin/cases.yaml";
const ANSWERS: &str = "crates/schema/tests/builtin/answers.json";
/// The definitions of the custom kinds among the cases.
const DEFINITIONS: &str = "charts/karpenter-kwok/crds";
/// What differs from one time to the next.
const FLEETING: [&str; 5] = ["uid", "creationTimestamp", "resourceVersion", "managedFields", "generation"];
const FLEETING_STATUS: &str = "lastPhaseTransitionTime";

/// Sends every case and writes the answers by name.
pub(super) fn record(root: &Path, control_plane: &ControlPlane) -> Result<()> {
    let text = fs::read_to_string(root.join(CASES)).with_context(|| format!("read `{CASES}`"))?;
    let cases: Vec<Value> = serde_yaml_ng::from_str(&text).with_context(|| format!("read `{CASES}`"))?;
    let definitions = root.join(DEFINITIONS);
    control_plane.run_kubectl(["create".as_ref(), "-f".as_ref(), definitions.as_os_str()])?;
    control_plane.run_kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
    let mut answers = Map::new();
    for case in &cases {
        let name = case["name"].as_str().context("a case has a name")?;
        let answer = ask(control_plane, case).with_context(|| format!("try the case `{name}`"))?;
        ensure!(answers.insert(name.to_owned(), answer).is_none(), "two cases are called `{name}`");
    }
    let text = serde_json::to_string_pretty(&answers).context("write the answers")?;
    fs::write(root.join(ANSWERS), format!("{text}\n")).with_context(|| format!("write `{ANSWERS}`"))
}

fn ask(control_plane: &ControlPlane, case: &Value) -> Result<Value> {
    let path = case["path"].as_str().context("a case has a path")?;
    let query = "dryRun=All&fieldValidation=Strict";
    let Some(before) = case.get("before") else {
        return send(control_plane, &["create", "--raw", &format!("{path}?{query}")], &case["object"]);
    };
    let created = send(control_plane, &["create", "--raw", path], before)?;
    ensure!(created.get("accepted").is_some(), "what should be there was refused: {created}");
    let item = format!("{path}/{}", before["metadata"]["name"].as_str().context("an object has a name")?);
    let mut object = case["object"].clone();
    if object["metadata"].get("resourceVersion").is_some() {
        // Custom kinds are only updated from a known version.
        let now: Value = serde_json::from_str(&control_plane.run_kubectl(["get", "--raw", &item])?)?;
        object["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    }
    let part = case["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
    let answer = send(control_plane, &["replace", "--raw", &format!("{item}{part}?{query}")], &object);
    control_plane.run_kubectl(["delete", "--raw", &item])?;
    answer
}

/// Runs kubectl with the object as its input.
fn send(control_plane: &ControlPlane, arguments: &[&str], object: &Value) -> Result<Value> {
    let mut command = control_plane.kubectl(arguments.iter().chain(&["-f", "-"]))?;
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("start kubectl")?;
    let input = child.stdin.take().context("kubectl's input")?;
    serde_json::to_writer(input, object).context("write the object")?;
    let output = child.wait_with_output().context("wait for kubectl")?;
    if output.status.success() {
        let answer: Value = serde_json::from_slice(&output.stdout).context("read the answer")?;
        // Some kinds name their uid elsewhere too.
        let uid = answer["metadata"]["uid"].as_str().unwrap_or_default();
        let mut answer: Value = serde_json::from_str(&answer.to_string().replace(uid, "fixed"))?;
        if let Some(metadata) = answer["metadata"].as_object_mut() {
            metadata.retain(|key, _| !FLEETING.contains(&key.as_str()));
        }
        if let Some(status) = answer.get_mut("status").and_then(Value::as_object_mut) {
            status.remove(FLEETING_STATUS);
        }
        return Ok(json!({"accepted": answer}));
    }
    Ok(json!({"refused": refusal(&String::from_utf8_lossy(&output.stderr))}))
}

/// The complaints, one per field, as kubectl lists them. What it shows of the difference between two objects is left
/// out.
fn refusal(text: &str) -> Vec<String> {
    let text = text.trim();
    let Some((_, complaints)) = text.split_once(" is invalid: ") else {
        let message = text.strip_prefix("Error from server (").and_then(|rest| rest.split_once("): "));
        return vec![message.map_or(text, |(_, message)| message).to_owned()];
    };
    if !complaints.trim_start().starts_with("* ") {
        return complaints.lines().take(1).map(str::to_owned).collect();
    }
    complaints.lines().filter_map(|line| line.strip_prefix("* ")).map(str::to_owned).collect()
}
