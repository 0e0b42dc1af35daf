//! What a controller asked the API server for, from the server's audit log.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Requests of one user: writes by verb and resource, and all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// Of every kind, reads and watches among them.
    pub(crate) all: usize,
    /// Successful and refused ones, without leases and events, which cost no node anything.
    pub(crate) writes: BTreeMap<String, usize>,
}

impl Requests {
    pub(crate) fn write_count(&self) -> usize {
        self.writes.values().sum()
    }
}

/// The policy under which the API server notes what one user asks for, once per request.
pub(crate) fn policy(user: &str) -> Value {
    serde_json::json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
    })
}

/// Reads the log as far as it is written.
pub(crate) fn read(log: &Path) -> Result<Requests> {
    let text = std::fs::read_to_string(log).context("read the audit log")?;
    Ok(requests(&text))
}

fn requests(log: &str) -> Requests {
    let mut requests = Requests::default();
    for line in log.lines() {
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        // A watch is noted when it begins and when it ends.
        if event["verb"] == "watch" && event["stage"] != "ResponseStarted" {
            continue;
        }
        requests.all += 1;
        let reference = &event["objectRef"];
        let (verb, resource) = (event["verb"].as_str().unwrap_or(""), reference["resource"].as_str().unwrap_or(""));
        if !["create", "update", "patch", "delete"].contains(&verb) || ["leases", "events"].contains(&resource) {
            continue;
        }
        let part = reference["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
        *requests.writes.entry(format!("{verb} {resource}{part}")).or_insert(0) += 1;
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_counted_by_what_they_write() {
        let log = r#"
{"verb":"create","stage":"ResponseComplete","objectRef":{"resource":"nodeclaims"}}
{"verb":"patch","stage":"ResponseComplete","objectRef":{"resource":"nodeclaims","subresource":"status"}}
{"verb":"patch","stage":"ResponseComplete","objectRef":{"resource":"nodeclaims","subresource":"status"}}
{"verb":"update","stage":"ResponseComplete","objectRef":{"resource":"leases"}}
{"verb":"create","stage":"ResponseComplete","objectRef":{"resource":"events"}}
{"verb":"watch","stage":"ResponseStarted","objectRef":{"resource":"pods"}}
{"verb":"watch","stage":"ResponseComplete","objectRef":{"resource":"pods"}}
{"verb":"lis"#;
        let found = requests(log);
        assert_eq!(found.all, 6);
        let expected = [("create nodeclaims", 1), ("patch nodeclaims/status", 2)];
        assert_eq!(found.writes, expected.map(|(what, count)| (what.to_owned(), count)).into());
        assert_eq!(found.write_count(), 3);
    }
}
