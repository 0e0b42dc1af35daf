//! The two endpoints of the process: probes for the kubelet, metrics for Prometheus.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The content type of the text format that every Prometheus reads.
const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The group and version in which our resources must be served.
const RESOURCES_VERSION: &str = "karpenter.sh/v1";
/// The kinds without which no reconciler can work.
const RESOURCE_KINDS: [&str; 2] = ["NodePool", "NodeClaim"];

/// What `/readyz` knows; clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    state: Arc<Mutex<ReadinessState>>,
}

#[derive(Debug, Default)]
struct ReadinessState {
    caches: Caches,
    resources: Resources,
}

#[derive(Debug, Default)]
enum Caches {
    #[default]
    Syncing,
    Standby,
    Synced,
}

#[derive(Debug, Default)]
enum Resources {
    #[default]
    NotLookedUp,
    Missing(Vec<String>),
    Present,
}

/// Why the process is not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// Nobody has looked yet whether our resources exist.
    #[error("resources of {RESOURCES_VERSION} not looked up yet")]
    ResourcesUnknown,
    /// Some of our resources do not exist; their definitions have to be installed.
    #[error("no {} in {RESOURCES_VERSION}: install the custom resource definitions", kinds.join(" and no "))]
    ResourcesMissing {
        /// The kinds that are missing.
        kinds: Vec<String>,
    },
    /// The caches do not yet hold the whole cluster.
    #[error("caches not synced")]
    CachesNotSynced,
}

impl Readiness {
    /// The caches hold the whole cluster.
    pub fn caches_synced(&self) {
        self.lock().caches = Caches::Synced;
    }

    /// The caches have to be filled, or filled again.
    pub fn caches_syncing(&self) {
        self.lock().caches = Caches::Syncing;
    }

    /// The process waits for the Lease: it is ready to take over, though its caches may be empty.
    pub fn standby(&self) {
        self.lock().caches = Caches::Standby;
    }

    /// Notes which of our kinds the API server does not serve, as told by [`missing_resources`].
    pub fn resources_looked_up(&self, missing: Vec<String>) {
        self.lock().resources = if missing.is_empty() { Resources::Present } else { Resources::Missing(missing) };
    }

    /// Whether the process is ready, and if not, the first reason.
    pub fn check(&self) -> Result<(), NotReady> {
        let state = self.lock();
        match (&state.resources, &state.caches) {
            (Resources::NotLookedUp, _) => Err(NotReady::ResourcesUnknown),
            (Resources::Missing(kinds), _) => Err(NotReady::ResourcesMissing { kinds: kinds.clone() }),
            (Resources::Present, Caches::Syncing) => Err(NotReady::CachesNotSynced),
            (Resources::Present, Caches::Standby | Caches::Synced) => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadinessState> {
        // Every write is a single assignment, so a panic elsewhere cannot leave the state half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the API server which of our kinds it does not serve.
pub async fn missing_resources(client: &Client) -> Result<Vec<String>, kube::Error> {
    match client.list_api_group_resources(RESOURCES_VERSION).await {
        Ok(list) => Ok(missing_kinds(&list)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(missing_kinds(&APIResourceList::default())),
        Err(error) => Err(error),
    }
}

fn missing_kinds(list: &APIResourceList) -> Vec<String> {
    let is_served = |kind: &str| list.resources.iter().any(|resource| resource.kind == kind);
    RESOURCE_KINDS.into_iter().filter(|kind| !is_served(kind)).map(ToOwned::to_owned).collect()
}

/// `/healthz`, which answers as long as the process does, and `/readyz`, which answers 500 with the reason until ready.
pub fn probe_router(readiness: Readiness) -> Router {
    let ready = move || {
        let verdict = readiness.check();
        async move {
            match verdict {
                Ok(()) => (StatusCode::OK, "ok".to_owned()),
                Err(reason) => (StatusCode::INTERNAL_SERVER_ERROR, reason.to_string()),
            }
        }
    };
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready))
}

/// `/metrics`, in the text format of Prometheus.
pub fn metrics_router(metrics: Arc<Metrics>) -> Router {
    let answer = move || {
        let metrics = Arc::clone(&metrics);
        async move {
            // A large cluster has a long page; the threads of the runtime have other things to do meanwhile.
            match tokio::task::spawn_blocking(move || metrics.scrape()).await {
                Ok(text) => ([(header::CONTENT_TYPE, METRICS_TEXT)], text).into_response(),
                Err(error) => {
                    (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot tell metrics: {error}")).into_response()
                }
            }
        }
    };
    Router::new().route("/metrics", get(answer))
}

/// Why an endpoint cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port is taken, or may not be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address wanted.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The server stopped by itself.
    #[error("cannot serve: {0}")]
    Serve(#[source] io::Error),
}

/// A server whose port is taken but which does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

impl Server {
    /// The address it listens on, with the port that was picked.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` completes, then finishes the requests under way.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        axum::serve(self.listener, self.router).with_graceful_shutdown(shutdown).await.map_err(ServeError::Serve)
    }
}

/// Takes an address; port 0 picks a free one.
pub async fn bind(address: SocketAddr, router: Router) -> Result<Server, ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Server { listener, address, router })
}

/// Takes a port on all interfaces, IPv6 and IPv4 where the system has both.
pub async fn bind_all_interfaces(port: u16, router: Router) -> Result<Server, ServeError> {
    match bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), router.clone()).await {
        // Nodes may run without IPv6.
        Err(ServeError::Listen { source, .. }) if source.kind() != io::ErrorKind::AddrInUse => {
            bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), router).await
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};
    use std::sync::Arc;

    use axum::Router;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
    use tokio::sync::oneshot;

    use super::{
        NotReady, Readiness, ServeError, bind, bind_all_interfaces, metrics_router, missing_kinds, probe_router,
    };
    use crate::metrics::{Build, Metrics, Naming};

    const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// Serves the router on loopback, fetches the paths in turn, and shuts it down.
    async fn fetch(router: Router, paths: &'static [&'static str]) -> Vec<String> {
        let server = bind(LOOPBACK, router).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async move {
            stopped.await.ok();
        }));
        let responses = tokio::task::spawn_blocking(move || paths.iter().map(|path| get(address, path)).collect());
        let responses = responses.await.unwrap();
        stop.send(()).unwrap();
        running.await.unwrap().unwrap();
        responses
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    fn status_and_body(response: &str) -> (&str, &str) {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap(), body)
    }

    /// OBS-08: health is liveness alone; readiness wants the resources, and caches unless on standby.
    #[tokio::test]
    async fn probes_answer() {
        type Step = fn(&Readiness);
        let cases: [(Step, &str, &str); 5] = [
            (|_| (), "HTTP/1.1 500 Internal Server Error", "resources of karpenter.sh/v1 not looked up yet"),
            (
                |readiness| readiness.resources_looked_up(vec!["NodePool".into(), "NodeClaim".into()]),
                "HTTP/1.1 500 Internal Server Error",
                "no NodePool and no NodeClaim in karpenter.sh/v1: install the custom resource definitions",
            ),
            (
                |readiness| readiness.resources_looked_up(vec![]),
                "HTTP/1.1 500 Internal Server Error",
                "caches not synced",
            ),
            (Readiness::standby, "HTTP/1.1 200 OK", "ok"),
            (Readiness::caches_synced, "HTTP/1.1 200 OK", "ok"),
        ];
        let readiness = Readiness::default();
        for (step, status, body) in cases {
            step(&readiness);
            let responses = fetch(probe_router(readiness.clone()), &["/healthz", "/readyz", "/other"]).await;
            assert_eq!(status_and_body(&responses[0]), ("HTTP/1.1 200 OK", "ok"));
            assert_eq!(status_and_body(&responses[1]), (status, body));
            assert_eq!(status_and_body(&responses[2]).0, "HTTP/1.1 404 Not Found");
        }
        readiness.caches_syncing();
        assert_eq!(readiness.check(), Err(NotReady::CachesNotSynced));
    }

    #[tokio::test]
    async fn metrics_are_served_as_text() {
        let text = |text: &str| text.to_owned();
        let build = Build { version: text("1"), goversion: text("rust"), goarch: text("x"), commit: text("c") };
        let naming = Naming { node_class: text("class"), well_known: Vec::new() };
        let metrics = Arc::new(Metrics::new(&build, naming));
        let responses = fetch(metrics_router(metrics), &["/metrics", "/healthz"]).await;
        assert!(
            responses[0].contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            "{}",
            responses[0]
        );
        let info = "# HELP karpenter_build_info What is running\n# TYPE karpenter_build_info gauge\n\
                    karpenter_build_info{version=\"1\",goversion=\"rust\",goarch=\"x\",commit=\"c\"} 1\n";
        assert_eq!(status_and_body(&responses[0]), ("HTTP/1.1 200 OK", info));
        assert_eq!(status_and_body(&responses[1]).0, "HTTP/1.1 404 Not Found");
    }

    #[tokio::test]
    async fn a_taken_port_is_named() {
        let server = bind_all_interfaces(0, Router::new()).await.unwrap();
        let port = server.address().port();
        assert_ne!(port, 0);
        let error = bind_all_interfaces(port, Router::new()).await.unwrap_err();
        assert!(matches!(&error, ServeError::Listen { address, .. } if address.port() == port), "{error}");
    }

    /// OBS-08: a resource exists when its kind is served in the right version.
    #[test]
    fn missing_kinds_are_told() {
        let list = |kinds: &[&str]| APIResourceList {
            group_version: "karpenter.sh/v1".into(),
            resources: kinds
                .iter()
                .map(|kind| APIResource { kind: (*kind).into(), ..APIResource::default() })
                .collect(),
        };
        let cases: [(&[&str], &[&str]); 3] = [
            (&[], &["NodePool", "NodeClaim"]),
            (&["NodePool"], &["NodeClaim"]),
            (&["NodeClaim", "NodePool", "Other"], &[]),
        ];
        for (served, missing) in cases {
            assert_eq!(missing_kinds(&list(served)), missing);
        }
    }
}
