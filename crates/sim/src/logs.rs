//! What containers wrote, and reading it.

use crate::answer::{Answer, WatchStream};
use crate::call::{Call, Reply};
use crate::status_body::Status;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// How many lines of one container are kept; a kubelet rotates its logs too.
const LINES_MAX: usize = 10_000;

/// The logs of all containers of pods that exist.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    /// By namespace and name of the pod, then by name of the container.
    pods: BTreeMap<(String, String), BTreeMap<String, Log>>,
}

#[derive(Debug, Default)]
struct Log {
    lines: std::collections::VecDeque<Line>,
    followers: Vec<Follower>,
}

#[derive(Debug, Clone)]
struct Line {
    at: Timestamp,
    text: String,
}

#[derive(Debug)]
struct Follower {
    sender: mpsc::UnboundedSender<Bytes>,
    timestamps: bool,
}

impl Logs {
    /// Adds a line and sends it to those who follow.
    pub(crate) fn append(&mut self, namespace: &str, pod: &str, container: &str, text: &str, at: Timestamp) {
        let log = self.of_container(namespace, pod, container);
        let line = Line { at, text: text.to_owned() };
        log.followers.retain(|follower| follower.sender.send(line.shown(follower.timestamps)).is_ok());
        log.lines.push_back(line);
        while log.lines.len() > LINES_MAX {
            log.lines.pop_front();
        }
    }

    /// The pod's containers write no more: those who follow come to an end.
    pub(crate) fn end(&mut self, namespace: &str, pod: &str) {
        let containers = self.pods.get_mut(&key(namespace, pod));
        containers.into_iter().flat_map(BTreeMap::values_mut).for_each(|log| log.followers.clear());
    }

    /// The pod is gone, and its logs with it.
    pub(crate) fn forget(&mut self, namespace: &str, pod: &str) {
        self.pods.remove(&key(namespace, pod));
    }

    fn of_container(&mut self, namespace: &str, pod: &str, container: &str) -> &mut Log {
        self.pods.entry(key(namespace, pod)).or_default().entry(container.to_owned()).or_default()
    }
}

impl Line {
    fn shown(&self, timestamps: bool) -> Bytes {
        let Self { at, text } = self;
        Bytes::from(if timestamps { format!("{at} {text}\n") } else { format!("{text}\n") })
    }
}

fn key(namespace: &str, pod: &str) -> (String, String) {
    (namespace.to_owned(), pod.to_owned())
}

/// Reads a container's log.
pub(crate) fn get(call: &mut Call<'_>) -> Result<Reply, Status> {
    let stored = call.existing()?;
    let pod = stored.value();
    let (namespace, name) = (call.namespace().unwrap_or_default().to_owned(), call.name().to_owned());
    let container = container(&pod, &name, call.query.text("container"))?;
    let (timestamps, follow) = (call.query.flag("timestamps")?, call.query.flag("follow")?);
    if call.query.flag("previous")? {
        let problem = format!("previous terminated container \"{container}\" in pod \"{name}\" not found");
        return Err(Status::bad_request(problem));
    }
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        return Ok(Reply::Ready(Answer::document(200, "text/plain", Bytes::new())));
    }
    if let Some(reason) = waiting_reason(&pod, &container) {
        let problem = format!("container \"{container}\" in pod \"{name}\" is waiting to start: {reason}");
        return Err(Status::bad_request(problem));
    }
    let since = since(call)?;
    let tail = call.query.number("tailLines")?.and_then(|lines| usize::try_from(lines).ok());
    let limit = call.query.number("limitBytes")?.and_then(|bytes| usize::try_from(bytes).ok());
    let log = call.store.logs.of_container(&namespace, &name, &container);
    let lines: Vec<&Line> = log.lines.iter().filter(|line| since.is_none_or(|since| line.at >= since)).collect();
    let skipped = tail.map_or(0, |tail| lines.len().saturating_sub(tail));
    let mut text: Vec<u8> = lines[skipped..].iter().flat_map(|line| line.shown(timestamps)).collect();
    text.truncate(limit.unwrap_or(usize::MAX));
    if !follow {
        return Ok(Reply::Ready(Answer::document(200, "text/plain", Bytes::from(text))));
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    if !text.is_empty() {
        // The receiver is in this function, so this cannot fail.
        let _ = sender.send(Bytes::from(text));
    }
    if !has_ended(&pod) {
        log.followers.push(Follower { sender, timestamps });
    }
    Ok(Reply::Ready(Answer::stream("text/plain", WatchStream::new(receiver, None))))
}

fn since(call: &Call<'_>) -> Result<Option<Timestamp>, Status> {
    let seconds = call.query.number("sinceSeconds")?;
    let time = call.query.text("sinceTime");
    match (seconds, time) {
        (Some(_), Some(_)) => Err(Status::bad_request("at most one of `sinceTime` or `sinceSeconds` may be specified")),
        (Some(seconds), None) => Ok(call.store.now().checked_sub(SignedDuration::from_secs(seconds)).ok()),
        (None, Some(time)) => time.parse().map(Some).map_err(|problem| {
            Status::bad_request(format!("invalid value of query parameter \"sinceTime\": {problem}"))
        }),
        (None, None) => Ok(None),
    }
}

/// Whether the pod's containers have all stopped for good.
pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn container(pod: &Value, name: &str, asked: Option<&str>) -> Result<String, Status> {
    let names = |list: &str| -> Vec<String> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).map(str::to_owned).collect()
    };
    let (main, init, ephemeral) = (names("containers"), names("initContainers"), names("ephemeralContainers"));
    match asked {
        Some(asked) if [&main, &init, &ephemeral].iter().any(|names| names.iter().any(|name| name == asked)) => {
            Ok(asked.to_owned())
        }
        Some(asked) => Err(Status::bad_request(format!("container {asked} is not valid for pod {name}"))),
        None => match main.as_slice() {
            [only] => Ok(only.clone()),
            _ => Err(Status::bad_request(ambiguous(name, &main, &init))),
        },
    }
}

fn ambiguous(name: &str, main: &[String], init: &[String]) -> String {
    let mut text = format!("a container name must be specified for pod {name}, choose one of: [{}]", main.join(" "));
    if !init.is_empty() {
        text.push_str(&format!(" or one of the init containers: [{}]", init.join(" ")));
    }
    text
}

fn waiting_reason(pod: &Value, container: &str) -> Option<String> {
    let statuses = |list: &str| pod["status"][list].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> =
        ["containerStatuses", "initContainerStatuses"].iter().flat_map(|list| statuses(list)).collect();
    match all.iter().find(|status| status["name"] == container) {
        None => Some("ContainerCreating".to_owned()),
        Some(status) => {
            let waiting = status["state"]["waiting"].as_object()?;
            Some(waiting.get("reason").and_then(Value::as_str).unwrap_or("ContainerCreating").to_owned())
        }
    }
}
