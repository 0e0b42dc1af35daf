//! The little that is asked of etcd itself, over the JSON it serves beside its own protocol.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Only a broken etcd takes that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Forgets every revision but the current one.
pub(crate) fn compact(port: u16) -> Result<()> {
    let status = post(port, "/v3/maintenance/status", "{}").context("ask etcd for its revision")?;
    let revision = revision(&status).with_context(|| format!("find the revision in `{status}`"))?;
    let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
    post(port, "/v3/kv/compaction", &body).context("compact etcd")?;
    Ok(())
}

/// The revision in the head of an answer.
fn revision(answer: &str) -> Option<u64> {
    let (_, rest) = answer.split_once(r#""revision":""#)?;
    rest.split_once('"')?.0.parse().ok()
}

fn post(port: u16, path: &str, body: &str) -> Result<String> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("connect")?;
    connection.set_read_timeout(Some(PATIENCE)).context("bound the wait for an answer")?;
    let length = body.len();
    let head = format!("POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    connection.write_all(format!("{head}{body}").as_bytes()).context("send")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).context("read the answer")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head and a body")?;
    ensure!(head.split_whitespace().nth(1) == Some("200"), "etcd answered `{answer}`");
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::revision;

    #[test]
    fn the_revision_is_read_from_the_head() {
        let answer =
            r#"{"header":{"cluster_id":"1","member_id":"2","revision":"345","raft_term":"2"},"version":"3.6"}"#;
        assert_eq!(revision(answer), Some(345));
        assert_eq!(revision("{}"), None);
    }
}
