//! The server under a client library, and on a socket.

use crate::story::Story;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_client_reads_and_writes() {
    let story = Story::new();
    let client = story.server.client("somebody");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let refused = maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists"));
    let patch = json!({ "data": { "k": "v" } });
    let patched = maps.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(patched.data.unwrap()["k"], "v");
    let apply = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let refused = maps.patch("a", &PatchParams::apply("me"), &Patch::Apply(&apply)).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 415));
    assert_eq!(maps.list(&ListParams::default().limit(1)).await.unwrap().items.len(), 1);
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    assert!(pods.evict("nobody", &EvictParams::default()).await.is_err());
    let nodes: Api<Node> = Api::all(client);
    assert!(nodes.get_opt("nobody").await.unwrap().is_none());
    let actors: Vec<String> = story.server.history().iter().map(|record| record.actor.clone()).collect();
    assert!(actors.iter().all(|actor| actor == "somebody"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_time_with_a_bookmark() {
    let story = Story::new();
    let maps: Api<ConfigMap> = Api::namespaced(story.server.client("somebody"), "default");
    let start = Instant::now();
    let stream = maps.watch(&WatchParams::default().timeout(100), "0").await.unwrap();
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let events: Vec<WatchEvent<ConfigMap>> = stream.try_collect().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(100));
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| match event {
            WatchEvent::Added(_) => "added",
            WatchEvent::Bookmark(_) => "bookmark",
            _ => "other",
        })
        .collect();
    // One bookmark after a minute, one at the end.
    assert_eq!(kinds, ["added", "bookmark", "bookmark"]);
}

#[tokio::test]
async fn the_server_speaks_http() {
    let story = Story::new();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = story.server.clone();
    let serving = tokio::spawn(async move { sim::http::serve(listener, server, "kubectl").await });
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = "GET /api/v1/namespaces?watch=true&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("transfer-encoding: chunked"), "{answer}");
    assert_eq!(answer.matches("\"type\":\"ADDED\"").count(), 4);
    serving.abort();
}
