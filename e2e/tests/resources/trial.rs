//! Sending cases to the API server and judging what comes back.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, stream};
use serde_json::Value;

use crate::case::{Case, Expectation};
use crate::server::{Answer, Server, Write, text};

/// How many cases are on their way at once: enough to keep two cores busy, few enough for the API server's limits.
const CASES_AT_ONCE: usize = 8;
/// How often and in what steps a kind is asked whether its rules count, before its cases are sent.
const PROBES_MAX: usize = 200;
const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// A case that went otherwise than written.
#[derive(Debug)]
pub(crate) struct Failure {
    case: String,
    rows: Vec<String>,
    wanted: String,
    found: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, rows, wanted, found } = self;
        let rows = if rows.is_empty() { "no row".to_owned() } else { rows.join(", ") };
        write!(formatter, "- {case} ({rows})\n    wanted: {wanted}\n    found:  {found}")
    }
}

/// Waits until the API server applies the rules of every kind that the cases create.
///
/// A definition can be established before its handler answers, so the first bad object of each kind is tried until it
/// is turned away. What is still accepted at the end of the wait will fail as a case, with its name.
pub(crate) async fn await_rules(server: &Server, cases: &[Case]) -> Result<()> {
    let mut probes = BTreeMap::new();
    for case in cases {
        if case.before.is_none() && matches!(case.expect, Expectation::Rejected(_)) {
            probes.entry(text(&case.object, "/kind")?).or_insert(case);
        }
    }
    for probe in probes.into_values() {
        for _ in 0..PROBES_MAX {
            match server.create(&probe.object, Write::Dry).await? {
                Answer::Rejected(_) => break,
                Answer::Accepted(_) | Answer::Failed(_) => tokio::time::sleep(PROBE_INTERVAL).await,
            }
        }
    }
    Ok(())
}

/// Tries all cases, several at a time, and returns those that went wrong, in their order.
pub(crate) async fn run(server: &Server, cases: &[Case]) -> Vec<Failure> {
    let verdicts = stream::iter(cases).map(|case| try_case(server, case)).buffered(CASES_AT_ONCE);
    verdicts.filter_map(futures::future::ready).collect().await
}

/// The failures as a list for people.
pub(crate) fn report(failures: &[Failure], cases: usize) -> String {
    let list: Vec<_> = failures.iter().map(Failure::to_string).collect();
    format!("{} of {cases} cases went otherwise than written:\n{}\n", failures.len(), list.join("\n"))
}

async fn try_case(server: &Server, case: &Case) -> Option<Failure> {
    let answer = match &case.before {
        None => server.create(&case.object, Write::Dry).await,
        Some(before) => update(server, case, before).await,
    };
    let failed = |error: anyhow::Error| Answer::Failed(format!("{error:#}"));
    let (wanted, found) = judge(case, &answer.unwrap_or_else(failed)).err()?;
    Some(Failure { case: case.name.clone(), rows: case.rows.clone(), wanted, found })
}

/// Creates what was before, tries the update, and removes it again whatever came of it.
async fn update(server: &Server, case: &Case, before: &Value) -> Result<Answer> {
    let created = match server.create(before, Write::Real).await.context("create the object to be updated")? {
        Answer::Accepted(created) => created,
        answer @ (Answer::Rejected(_) | Answer::Failed(_)) => bail!("the object to be updated: {}", shown(&answer)),
    };
    let path = server.path(before)?;
    let answer = send_update(server, case, &created, &path).await;
    match server.delete(&path).await.context("remove the updated object")? {
        Answer::Accepted(_) => answer,
        refusal @ (Answer::Rejected(_) | Answer::Failed(_)) => {
            bail!("the updated object could not be removed: {}", shown(&refusal))
        }
    }
}

async fn send_update(server: &Server, case: &Case, created: &Value, path: &str) -> Result<Answer> {
    let mut object = case.object.clone();
    // Without it an update is refused, or would not notice that somebody else wrote in between.
    object["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let target = case.subresource.map_or_else(|| path.to_owned(), |part| format!("{path}/{}", part.path()));
    server.replace(&target, &object, Write::Dry).await
}

/// What was wanted and what was found, where they differ.
fn judge(case: &Case, answer: &Answer) -> Result<(), (String, String)> {
    match (&case.expect, answer) {
        (Expectation::Accepted, Answer::Accepted(object)) => {
            for (pointer, wanted) in &case.defaults {
                let found = object.pointer(pointer);
                if found != Some(wanted) {
                    let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
                    return Err((format!("{wanted} at `{pointer}`"), found));
                }
            }
            Ok(())
        }
        (Expectation::Rejected(text), Answer::Rejected(message)) if message.contains(text.as_str()) => Ok(()),
        (Expectation::Accepted, answer) => Err(("accepted".to_owned(), shown(answer))),
        (Expectation::Rejected(text), answer) => Err((format!("rejected: {text}"), shown(answer))),
    }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Accepted(_) => "accepted".to_owned(),
        Answer::Rejected(message) => format!("rejected: {message}"),
        Answer::Failed(problem) => format!("failed: {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::judge;
    use crate::case::Case;
    use crate::server::Answer;

    fn case(expect: Value, defaults: Value) -> Case {
        let case = json!({
            "name": "a", "rows": ["API-01"], "flavour": "eks", "object": {}, "expect": expect, "defaults": defaults,
        });
        serde_json::from_value(case).unwrap()
    }

    #[test]
    fn only_what_is_written_passes() {
        let accepted = || Answer::Accepted(json!({"spec": {"weight": 1}}));
        let rejected = || Answer::Rejected("spec is immutable, sorry".to_owned());
        let failed = || Answer::Failed("status 409: spec is immutable".to_owned());
        let wants_accepted = case(json!("accepted"), json!({}));
        let wants_default = case(json!("accepted"), json!({"/spec/weight": 1}));
        let wants_other_default = case(json!("accepted"), json!({"/spec/weight": 2}));
        let wants_more = case(json!("accepted"), json!({"/spec/height": 1}));
        let wants_rejected = case(json!({"rejected": "is immutable"}), json!({}));
        let wants_other_words = case(json!({"rejected": "is mutable"}), json!({}));
        for (case, answer, passes) in [
            (&wants_accepted, accepted(), true),
            (&wants_accepted, rejected(), false),
            (&wants_accepted, failed(), false),
            (&wants_default, accepted(), true),
            (&wants_other_default, accepted(), false),
            (&wants_more, accepted(), false),
            (&wants_rejected, rejected(), true),
            (&wants_rejected, accepted(), false),
            (&wants_rejected, failed(), false),
            (&wants_other_words, rejected(), false),
        ] {
            assert_eq!(judge(case, &answer).is_ok(), passes, "{case:?} {answer:?}");
        }
    }
}
