//! A proxy between the controller and the API server that sees every write and may end the controller at any of them.
//!
//! The controller is not told: it runs as in production, and what is killed is the whole process, as a node failure
//! or the kernel would do it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use tokio::net::TcpListener;

use crate::kill::{KillEverywhere, Side, effect, write};

/// Starts the proxy on a free port; it lives as long as the runtime. The address is plain HTTP.
pub(crate) async fn start(upstream: Client, plan: KillEverywhere) -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("bind the proxy")?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (upstream, plan) = (upstream.clone(), plan.clone());
            // A task of its own: a write that has begun is carried through although the controller is dead by then.
            let service = service_fn(move |request| {
                let forwarded = tokio::spawn(forward(upstream.clone(), plan.clone(), request));
                async move { forwarded.await.unwrap_or_else(|_| Ok(Response::new(Body::empty()))) }
            });
            // A connection that breaks is the controller being killed: that is the point.
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service),
            );
        }
    });
    Ok(address)
}

/// A kubeconfig that leads through the proxy.
pub(crate) fn kubeconfig(address: SocketAddr, folder: &Path) -> Result<PathBuf> {
    let path = folder.join("proxy.kubeconfig");
    let text = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "users": [{"name": "proxy", "user": {}}],
    });
    std::fs::write(&path, text.to_string()).context("write the kubeconfig")?;
    Ok(path)
}

async fn forward(
    upstream: Client,
    plan: KillEverywhere,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else { return never().await };
    let effect = write(&head.method, head.uri.path()).map(|write| effect(&write, &body));
    if effect.as_ref().is_some_and(|effect| plan.strikes(effect, Side::Before)) {
        return never().await;
    }
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri.path_and_query().and_then(|path| path.as_str().parse().ok()).unwrap_or_default();
    for (name, value) in head.headers.iter().filter(|(name, _)| ["accept", "content-type"].contains(&name.as_str())) {
        request.headers_mut().insert(name, value.clone());
    }
    let Ok(response) = upstream.send(request).await else { return never().await };
    let Some(effect) = effect else { return Ok(response) };
    let (head, body) = response.into_parts();
    let Ok(body) = body.collect_bytes().await else { return never().await };
    if head.status.is_success() && plan.strikes(&effect, Side::After) {
        return never().await;
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

/// No answer: the controller is dead before it could read one.
async fn never() -> Result<Response<Body>, Infallible> {
    std::future::pending().await
}
