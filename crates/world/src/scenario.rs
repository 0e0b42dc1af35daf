//! Stories as data: what people do to a cluster, and when.
//!
//! The YAML form is described in `docs/scenarios.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::fault::FaultPlan;
use crate::world::CloudKind;

/// A story.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A short name.
    pub name: String,
    /// The cloud it plays on.
    pub cloud: CloudKind,
    /// Environment variables of the controller.
    pub settings: BTreeMap<String, String>,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// What is done, in order of time.
    pub steps: Vec<Step>,
    /// When the story ends.
    pub end: Duration,
}

/// Something that is done at a time since the beginning.
#[derive(Clone, Debug)]
pub struct Step {
    /// When.
    pub at: Duration,
    /// What.
    pub action: Action,
}

/// What a person, or the cloud, does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates objects, or merges into those that are there.
    Apply(Vec<Value>),
    /// Sets the replicas of a Deployment.
    Scale(Scale),
    /// Deletes an object.
    Delete(Target),
    /// Deletes some node of ours, or some claim.
    DeleteAny(AnyTarget),
    /// The cloud takes a spot instance back: a warning, and the end two minutes later.
    Interrupt,
    /// A machine ends without a warning.
    Crash,
}

/// Replicas for a Deployment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scale {
    /// Its name.
    pub deployment: String,
    /// Its namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// How many.
    pub replicas: u32,
}

/// An object by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Target {
    /// API version, for example `apps/v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace, for kinds that have one.
    pub namespace: Option<String>,
}

/// A choice that is made when the time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnyTarget {
    /// A node of ours.
    Node,
    /// A claim.
    Claim,
}

fn default_namespace() -> String {
    "default".to_owned()
}

/// A scenario that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ScenarioError {
    message: String,
    hint: Option<String>,
}

impl ScenarioError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hinting(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to try instead.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    name: String,
    #[serde(default)]
    cloud: CloudName,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    faults: Vec<String>,
    steps: Vec<FileStep>,
    end: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum CloudName {
    #[default]
    Aws,
    Kwok,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileStep {
    at: String,
    apply: Option<Vec<Value>>,
    scale: Option<Scale>,
    delete: Option<Target>,
    delete_any: Option<AnyTarget>,
    interrupt: Option<Any>,
    crash: Option<Any>,
}

/// The only choice there is, spelt out so that files read well.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Any {
    Any,
}

impl Scenario {
    /// Reads the YAML form.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let file: File = serde_yaml_ng::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        let File { name, cloud, settings, faults, steps, end } = file;
        let mut steps = steps.into_iter().enumerate().map(read_step).collect::<Result<Vec<Step>, _>>()?;
        steps.sort_by_key(|step| step.at);
        let end = duration("end", &end)?;
        if let Some(late) = steps.iter().find(|step| step.at > end) {
            let message = format!("a step at {}s is later than the end at {}s", late.at.as_secs(), end.as_secs());
            return Err(ScenarioError::new(message).hinting("raise `end`"));
        }
        let faults = faults.join(",").parse().map_err(|error| {
            ScenarioError::new(format!("faults: {error}")).hinting("for example `create nodeclaims #2 answer-lost`")
        })?;
        let cloud = match cloud {
            CloudName::Aws => CloudKind::Aws,
            CloudName::Kwok => CloudKind::Kwok,
        };
        Ok(Self { name, cloud, settings, faults, steps, end })
    }
}

fn read_step((index, step): (usize, FileStep)) -> Result<Step, ScenarioError> {
    let FileStep { at, apply, scale, delete, delete_any, interrupt, crash } = step;
    let at = duration(&format!("steps[{index}].at"), &at)?;
    let actions = [
        apply.map(Action::Apply),
        scale.map(Action::Scale),
        delete.map(Action::Delete),
        delete_any.map(Action::DeleteAny),
        interrupt.map(|Any::Any| Action::Interrupt),
        crash.map(|Any::Any| Action::Crash),
    ];
    let mut actions = actions.into_iter().flatten();
    match (actions.next(), actions.next()) {
        (Some(action), None) => Ok(Step { at, action }),
        _ => Err(ScenarioError::new(format!("steps[{index}] must do exactly one thing"))
            .hinting("one of apply, scale, delete, deleteAny, interrupt, crash")),
    }
}

fn duration(field: &str, text: &str) -> Result<Duration, ScenarioError> {
    controllers::process::parse_duration(text).ok_or_else(|| {
        ScenarioError::new(format!("{field}: `{text}` is not a duration")).hinting("write it like 90s, 5m or 1h30m")
    })
}

/// Every key of the format, for hints.
const KEYS: [&str; 21] = [
    "name",
    "cloud",
    "settings",
    "faults",
    "steps",
    "end",
    "at",
    "apply",
    "scale",
    "delete",
    "deleteAny",
    "interrupt",
    "crash",
    "deployment",
    "namespace",
    "replicas",
    "apiVersion",
    "kind",
    "node",
    "claim",
    "any",
];

/// Adds to a reader's complaint about an unknown key the key that was probably meant.
fn unreadable(complaint: &str) -> ScenarioError {
    let error = ScenarioError::new(complaint);
    let named = ["unknown field `", "unknown variant `"].iter().find_map(|before| complaint.split(before).nth(1));
    let Some(unknown) = named.and_then(|rest| rest.split('`').next()) else { return error };
    let nearest = KEYS.iter().map(|key| (distance(unknown, key), key)).min();
    match nearest {
        Some((steps, key)) if steps <= 1 + unknown.len() / 3 => error.hinting(format!("did you mean `{key}`?")),
        _ => error.hinting("docs/scenarios.md lists every key"),
    }
}

/// How many letters have to be added, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, theirs) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = "name: tiny
cloud: kwok
settings: {BATCH_IDLE_DURATION: 2s}
faults: ['create nodeclaims #2 answer-lost']
steps:
- at: 1m
  scale: {deployment: web, replicas: 3}
- at: 0s
  apply:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}
end: 10m
";

    #[test]
    fn steps_are_ordered_by_time() {
        let story = Scenario::parse(STORY).expect("a story");
        let times: Vec<u64> = story.steps.iter().map(|step| step.at.as_secs()).collect();
        assert_eq!(times, [0, 60]);
        assert_eq!(story.faults.faults.len(), 1);
    }

    #[test]
    fn mistakes_get_a_hint() {
        for (from, to, message, hint) in [
            ("replicas", "replica", "unknown field `replica`", "did you mean `replicas`?"),
            ("cloud: kwok", "cloud: azure", "unknown variant `azure`", "docs/scenarios.md lists every key"),
            ("at: 1m", "at: soon", "steps[0].at: `soon` is not a duration", "write it like 90s, 5m or 1h30m"),
            ("end: 10m", "end: 10s", "a step at 60s is later than the end at 10s", "raise `end`"),
            ("answer-lost", "eaten", "faults: ", "for example `create nodeclaims #2 answer-lost`"),
        ] {
            let error = Scenario::parse(&STORY.replacen(from, to, 1)).expect_err(from);
            assert!(error.to_string().contains(message), "{error}");
            assert_eq!(error.hint(), Some(hint), "{error}");
        }
    }
}
