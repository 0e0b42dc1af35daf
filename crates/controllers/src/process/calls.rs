//! Calls of the API server: counted, paced, and, for a process that only observes, kept from changing anything.
//!
//! Every request of the process goes through here. A process that observes cannot write by mistake: what is no read is
//! answered on the spot and never leaves.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower::Service;

use super::options::{Mode, Options};
use crate::metrics::{CallMetrics, Collector, Page};

/// The reason in the answer to a write that was not sent.
pub(crate) const OBSERVED: &str = "Observed";

/// What all calls of one process share.
#[derive(Debug)]
pub struct Calls {
    metrics: CallMetrics,
    mode: Mode,
    work: Option<Pace>,
    events: Option<Pace>,
}

impl Calls {
    /// As the options say.
    pub fn new(options: &Options) -> Arc<Self> {
        let pace = || Pace::new(options.kube_client_qps, options.kube_client_burst);
        Arc::new(Self { metrics: CallMetrics::standalone(), mode: options.mode, work: pace(), events: pace() })
    }

    /// The same client, with every request seen.
    pub fn client(self: &Arc<Self>, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        Client::new(Watched { client, calls: Arc::clone(self) }, namespace)
    }

    /// Whoever holds the Lease must not lose it because of much other work, and work does not wait for events.
    fn pace(&self, target: Option<&Target<'_>>) -> Option<&Pace> {
        match target {
            Some(Target { group: "coordination.k8s.io", .. }) => None,
            Some(Target { group: "" | "events.k8s.io", resource: "events", .. }) => self.events.as_ref(),
            _ => self.work.as_ref(),
        }
    }

    fn is_refused(&self, method: &Method) -> bool {
        self.mode == Mode::Observe && !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    async fn pass(self: Arc<Self>, client: Client, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let target = Target::of(&path);
        if self.is_refused(&method) {
            let resource = target.as_ref().map_or("", |target| target.resource);
            self.metrics.refused.inc([verb(&method, target.as_ref()), resource]);
            return Ok(refusal(&method, &path));
        }
        if let Some(pace) = self.pace(target.as_ref()) {
            pace.wait().await;
        }
        let began = Instant::now();
        let answer = client.send(request).await;
        let code = answer.as_ref().map_or("<error>".to_owned(), |answer| answer.status().as_u16().to_string());
        self.metrics.requests.inc([&code, method.as_str()]);
        if let Some(target) = &target {
            let Target { group, version, resource, subresource, .. } = target;
            let labels = [verb(&method, Some(target)), group, version, resource, subresource];
            self.metrics.request_seconds.observe(labels, began.elapsed().as_secs_f64());
        }
        answer
    }
}

impl Collector for Calls {
    fn collect(&self, page: &mut Page) {
        self.metrics.write(page);
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    is_named: bool,
}

impl<'a> Target<'a> {
    /// Reads `/api/v1/...` and `/apis/<group>/<version>/...`; other paths are about no resource.
    fn of(path: &'a str) -> Option<Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let version = parts.next()?;
        let rest: Vec<&str> = parts.collect();
        let rest = match rest.as_slice() {
            ["namespaces", _, resource, ..] if !matches!(*resource, "status" | "finalize") => &rest[2..],
            rest => rest,
        };
        let (resource, name) = (rest.first()?, rest.get(1));
        let subresource = rest.get(2).copied().unwrap_or_default();
        Some(Self { group, version, resource, subresource, is_named: name.is_some() })
    }
}

/// The verb as client libraries name it.
fn verb(method: &Method, target: Option<&Target<'_>>) -> &'static str {
    let is_named = target.is_some_and(|target| target.is_named);
    match *method {
        Method::GET if is_named => "GET",
        Method::GET => "LIST",
        Method::PUT if is_named => "UPDATE",
        Method::POST | Method::PUT => "CREATE",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}

/// The answer to a write that is not sent.
fn refusal(method: &Method, path: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": OBSERVED, "code": 403,
        "message": format!("{method} {path} was not sent: this process only observes"),
    });
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

/// So many requests a second, and so many at once.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    burst: u32,
    /// When the last request that was let through would have been, had they all kept the interval.
    last: Mutex<Option<Instant>>,
}

impl Pace {
    /// Nothing where there is no limit.
    fn new(per_second: i32, burst: i32) -> Option<Self> {
        let per_second = u32::try_from(per_second).ok().filter(|per_second| *per_second > 0)?;
        let burst = u32::try_from(burst).unwrap_or(0).max(1);
        Some(Self { interval: Duration::from_secs(1) / per_second, burst, last: Mutex::default() })
    }

    async fn wait(&self) {
        let due = self.due(Instant::now());
        // A timer for now would still let others run first.
        if due > Instant::now() {
            tokio::time::sleep_until(due).await;
        }
    }

    /// When a request that comes now may leave.
    fn due(&self, now: Instant) -> Instant {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = last.map_or(now, |last| (last + self.interval).max(now));
        *last = Some(slot);
        slot.checked_sub(self.interval * (self.burst - 1)).map_or(now, |due| due.max(now))
    }
}

/// A client behind which every request is seen.
#[derive(Clone)]
struct Watched {
    client: Client,
    calls: Arc<Calls>,
}

impl Service<Request<Body>> for Watched {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(Arc::clone(&self.calls).pass(self.client.clone(), request))
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
