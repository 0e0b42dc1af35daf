//! The two servers: ours in this process, and the real one on a socket.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::StreamExt;
use futures::io::AsyncBufReadExt;
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use sim::{Answer, ApiServer, ServerSettings, WatchStream};
use tokio::sync::mpsc;

use crate::request::Concrete;

/// Who we are for both servers.
const ACTOR: &str = "admin";

/// What a server said.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content_type: String,
    pub(crate) warnings: Vec<String>,
    /// A text if it is not JSON.
    pub(crate) body: Value,
}

/// Both servers.
pub(crate) struct Servers {
    embedded: ApiServer,
    real: Client,
}

impl Servers {
    /// Joins a real server with a new embedded one.
    pub(crate) fn new(real: Client) -> Self {
        let settings = ServerSettings { seed: 1, keep_history: false, ..ServerSettings::default() };
        Self { embedded: ApiServer::new(settings, Arc::new(Timestamp::now)), real }
    }

    /// Asks the embedded server.
    pub(crate) fn ask_embedded(&self, request: &Concrete) -> Result<Reply> {
        match self.embedded.handle(ACTOR, http_request(request)?.map(Bytes::from)) {
            Answer::Document(response) => {
                let (parts, body) = response.into_parts();
                Ok(reply(&parts, &body))
            }
            Answer::Watch(parts, mut stream) => {
                let mut body = Vec::new();
                while let Some(frame) = stream.try_next() {
                    body.extend_from_slice(&frame);
                }
                Ok(reply(&parts, &body))
            }
        }
    }

    /// Asks the real server.
    pub(crate) async fn ask_real(&self, request: &Concrete) -> Result<Reply> {
        let response = self.real.send(http_request(request)?.map(Body::from)).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(reply(&parts, &body))
    }

    /// Watches on both servers, from each one's own version on.
    pub(crate) async fn watch(&self, path: &str, selector: &str) -> Result<Watch> {
        let list = concrete("GET", format!("{path}?labelSelector={selector}"));
        let version = |reply: &Reply| {
            let version = reply.body.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            version.map(str::to_owned).with_context(|| format!("a list of {path} has a version"))
        };
        let from = |version: &str| {
            let uri =
                format!("{path}?labelSelector={selector}&watch=true&resourceVersion={version}&timeoutSeconds=3600");
            concrete("GET", uri)
        };
        let request = from(&version(&self.ask_embedded(&list)?)?);
        let Answer::Watch(_, embedded) = self.embedded.handle(ACTOR, http_request(&request)?.map(Bytes::from)) else {
            anyhow::bail!("the embedded server does not watch {path}");
        };
        let request = http_request(&from(&version(&self.ask_real(&list).await?)?))?;
        let lines = self.real.request_stream(request).await?.lines();
        let (sender, real) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut lines = std::pin::pin!(lines);
            while let Some(Ok(line)) = lines.next().await {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Watch { path: path.to_owned(), embedded, real })
    }
}

/// One watch on both servers.
pub(crate) struct Watch {
    pub(crate) path: String,
    embedded: WatchStream,
    real: mpsc::UnboundedReceiver<String>,
}

impl Watch {
    /// All events of both servers up to the one about the object of this name, which both must have sent.
    pub(crate) async fn until(mut self, last: &str) -> Result<(Vec<Value>, Vec<Value>)> {
        let is_last = |event: &Value| event.pointer("/object/metadata/name").is_some_and(|name| name == last);
        let mut embedded = Vec::new();
        while let Some(frame) = self.embedded.try_next() {
            embedded.push(serde_json::from_slice(&frame)?);
        }
        let mut real = Vec::new();
        while !real.last().is_some_and(is_last) {
            let line = self.real.recv().await.with_context(|| format!("the real watch of {} ended", self.path))?;
            real.push(serde_json::from_str(&line)?);
        }
        Ok((embedded, real))
    }
}

fn concrete(method: &'static str, uri: String) -> Concrete {
    Concrete { method, uri, accept: "application/json", content_type: None, body: Vec::new() }
}

fn http_request(request: &Concrete) -> Result<http::Request<Vec<u8>>> {
    let mut builder =
        http::Request::builder().method(request.method).uri(&request.uri).header("accept", request.accept);
    if let Some(content_type) = request.content_type {
        builder = builder.header("content-type", content_type);
    }
    Ok(builder.body(request.body.clone())?)
}

fn reply(parts: &http::response::Parts, body: &[u8]) -> Reply {
    let texts = |name: &str| {
        let values = parts.headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect::<Vec<_>>()
    };
    Reply {
        code: parts.status.as_u16(),
        content_type: texts("content-type").join(","),
        warnings: texts("warning"),
        body: serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into()),
    }
}
