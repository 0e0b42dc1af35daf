//! Stories told to the server line by line, and what it answered.

use bytes::Bytes;
use serde_json::Value;
use sim::{Answer, ApiServer, ServerSettings, WatchStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A server with a clock that a story can move.
pub(crate) struct Story {
    pub(crate) server: ApiServer,
    seconds: Arc<AtomicI64>,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self::with(ServerSettings { seed: 1, keep_history: true, watch_window: 1000 })
    }

    pub(crate) fn with(settings: ServerSettings) -> Self {
        let seconds = Arc::new(AtomicI64::new(1_700_000_000));
        let clock = seconds.clone();
        let clock = move || jiff::Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap();
        Self { server: ApiServer::new(settings, Arc::new(clock)), seconds }
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Sends one line: method, path, then optionally the body. A body that begins with a word in brackets names its
    /// content type: `[merge]`, `[json]`, `[strategic]`, or any media type.
    pub(crate) fn send(&self, line: &str) -> Answer {
        let mut parts = line.trim().splitn(3, ' ');
        let (method, path, rest) =
            (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or_default().trim());
        let (media, body) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((media, body)) if !media.contains(['{', '"']) => (media, body),
            _ if method == "PATCH" => ("merge", rest),
            _ => ("application/json", rest),
        };
        let media = match media {
            "merge" => "application/merge-patch+json",
            "json" => "application/json-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            other => other,
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .body(Bytes::from(body.to_owned()))
            .unwrap();
        self.server.handle("tester", request)
    }

    /// Sends a line and gives code and body.
    pub(crate) fn call(&self, line: &str) -> (u16, Value) {
        let Answer::Document(response) = self.send(line) else { panic!("a stream: {line}") };
        let body = serde_json::from_slice(response.body())
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(response.body()).into_owned()));
        (response.status().as_u16(), body)
    }

    pub(crate) fn ok(&self, line: &str) -> Value {
        let (code, body) = self.call(line);
        assert!((200..300).contains(&code), "{line}: {code} {body}");
        body
    }

    pub(crate) fn watch(&self, path: &str) -> WatchStream {
        match self.send(&format!("GET {path}")) {
            Answer::Watch(_, stream) => stream,
            Answer::Document(response) => panic!("{path}: {response:?}"),
        }
    }

    /// Plays all lines; every line's answer in short.
    pub(crate) fn play(&self, lines: &str) -> String {
        let mut told = String::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line == "collect" {
                while self.server.collect_garbage(10) > 0 {}
                continue;
            }
            if let Some(seconds) = line.strip_prefix("pass ") {
                self.pass(seconds.parse().unwrap());
                continue;
            }
            let (line, wanted) = line.split_once(" => ").unwrap_or((line, ""));
            let (code, body) = self.call(line);
            told.push_str(&format!("{code} {}\n", short(&body, wanted)));
        }
        told
    }
}

/// A body in one line: refusals with their words, objects with their name and the values asked for.
pub(crate) fn short(body: &Value, wanted: &str) -> String {
    if body["kind"] == "Status" && body["status"] == "Failure" {
        let causes: Vec<String> = body["details"]["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| format!("{} {}", cause["reason"].as_str().unwrap_or("-"), cause["message"].as_str().unwrap()))
            .collect();
        let causes = if causes.is_empty() { String::new() } else { format!(" {causes:?}") };
        return format!("{}: {}{causes}", body["reason"].as_str().unwrap_or("-"), body["message"].as_str().unwrap());
    }
    if body["kind"] == "Status" {
        return format!("Success {}", body["details"]["name"].as_str().unwrap_or_default());
    }
    let kind = body["kind"].as_str().unwrap_or("?");
    let mut text = match body["items"].as_array() {
        Some(items) => {
            let names: Vec<&str> = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
            format!("{kind} [{}]", names.join(" "))
        }
        None => format!("{kind} {}", body["metadata"]["name"].as_str().unwrap_or_default()),
    };
    for path in wanted.split_whitespace() {
        let value = body.pointer(path).map_or_else(|| "-".to_owned(), Value::to_string);
        text.push_str(&format!(" {value}"));
    }
    text
}

/// The lines of a watch so far, in short.
pub(crate) fn heard(stream: &mut WatchStream, wanted: &str) -> String {
    let mut told = String::new();
    while let Some(frame) = stream.try_next() {
        assert!(frame.ends_with(b"\n"));
        let event: Value = serde_json::from_slice(&frame).unwrap();
        told.push_str(&format!("{} {}\n", event["type"].as_str().unwrap(), short(&event["object"], wanted)));
    }
    told
}

pub(crate) fn pod(name: &str, more: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}"{more}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}"#
    )
}

/// Plays a story on a new server and compares what it told.
pub(crate) fn check(lines: &str, expected: expect_test::Expect) {
    expected.assert_eq(&Story::new().play(lines));
}
