//! The network between clients and the embedded API server: latency, loss, broken watches.
//!
//! A request that has left its sender is on its own: it arrives and is carried out although the sender may be dead by
//! then, as on a real network.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use sim::{Answer, ApiServer, WatchStream};
use tokio::sync::{mpsc, oneshot};
use tower::{BoxError, Service};

use crate::chance::Chance;
use crate::effect::Effect;
use crate::fault::{Call, CallFault, Meddler};
use crate::process::Processes;

/// How long things take on the way.
#[derive(Clone, Debug)]
pub struct WirePace {
    /// A request or an answer.
    pub call: RangeInclusive<Duration>,
    /// News of a watch.
    pub news: RangeInclusive<Duration>,
    /// A call that a fault plan wants late.
    pub late: RangeInclusive<Duration>,
    /// Until a caller notices that its connection is broken.
    pub noticed: RangeInclusive<Duration>,
}

impl Default for WirePace {
    fn default() -> Self {
        Self {
            call: Duration::from_micros(300)..=Duration::from_millis(8),
            news: Duration::from_millis(1)..=Duration::from_millis(40),
            late: Duration::from_secs(2)..=Duration::from_secs(25),
            noticed: Duration::from_millis(50)..=Duration::from_secs(30),
        }
    }
}

/// Between two bookmarks of a watch.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// The network of one world.
#[derive(Clone)]
pub struct Wire(Arc<WireParts>);

struct WireParts {
    server: ApiServer,
    pace: WirePace,
    chance: Chance,
    processes: Processes,
    watches: Mutex<OpenWatches>,
}

/// Watches that can be broken, by a number of their own.
#[derive(Default)]
struct OpenWatches {
    opened: u64,
    open: BTreeMap<u64, oneshot::Sender<()>>,
}

/// Who calls: an account, and the process that dies when a fault says so.
#[derive(Clone)]
pub struct Caller {
    /// The account's name in the API.
    pub account: String,
    /// The process's name in this world.
    pub process: String,
    /// Decides about its calls; others' calls never go wrong.
    pub meddler: Option<Arc<dyn Meddler>>,
}

/// Who hears the news of a watch.
struct Listener {
    caller: Caller,
    effect: Effect,
    fault: Option<CallFault>,
}

impl Wire {
    /// A network in front of a server.
    pub fn new(server: ApiServer, pace: WirePace, chance: Chance, processes: Processes) -> Self {
        Self(Arc::new(WireParts { server, pace, chance, processes, watches: Mutex::default() }))
    }

    /// A client at the end of this network.
    pub fn client(&self, caller: Caller) -> kube::Client {
        kube::Client::new(Line { wire: self.clone(), caller }, "default")
    }

    fn watches(&self) -> MutexGuard<'_, OpenWatches> {
        self.0.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks every watch.
    pub fn break_watches(&self) {
        self.watches().open.clear();
    }

    async fn carry(self, caller: Caller, request: Request<Bytes>, effect: Effect, fault: Option<CallFault>) -> Carried {
        let parts = &self.0;
        tokio::time::sleep(parts.chance.duration(&parts.pace.call)).await;
        match fault {
            Some(CallFault::Fails) => return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
            Some(CallFault::Throttled) => return Ok(refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
            Some(CallFault::Conflicts) => return Ok(refusal(StatusCode::CONFLICT, "Conflict")),
            Some(CallFault::RequestLost) => {
                tokio::time::sleep(parts.chance.duration(&parts.pace.noticed)).await;
                return Err(Broken);
            }
            Some(CallFault::Late) => tokio::time::sleep(parts.chance.duration(&parts.pace.late)).await,
            _ => {}
        }
        let answer = parts.server.handle(&caller.account, request);
        if fault == Some(CallFault::KillAfter) {
            parts.processes.kill(&caller.process);
        }
        if fault == Some(CallFault::AnswerLost) {
            tokio::time::sleep(parts.chance.duration(&parts.pace.noticed)).await;
            return Err(Broken);
        }
        tokio::time::sleep(parts.chance.duration(&parts.pace.call)).await;
        Ok(match answer {
            Answer::Document(response) => {
                response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync())
            }
            Answer::Watch(head, stream) => {
                let (sender, receiver) = mpsc::unbounded_channel();
                tokio::spawn(self.clone().forward(stream, sender, Listener { caller, effect, fault }));
                let frames = futures::stream::unfold(receiver, |mut receiver| async {
                    let next: Result<Bytes, BoxError> = receiver.recv().await?;
                    Some((next.map(http_body::Frame::data), receiver))
                });
                Response::from_parts(head, StreamBody::new(frames).boxed_unsync())
            }
        })
    }

    /// Carries a watch's frames, each batch with one latency, until it ends, breaks, or nobody listens any more.
    async fn forward(
        self,
        mut stream: WatchStream,
        sender: mpsc::UnboundedSender<Result<Bytes, BoxError>>,
        Listener { caller, effect, fault }: Listener,
    ) {
        let breaks_after_first = matches!(fault, Some(CallFault::Breaks | CallFault::TooOld));
        let (breaker, mut broken) = oneshot::channel();
        let number = {
            let mut watches = self.watches();
            watches.opened += 1;
            let number = watches.opened;
            watches.open.insert(number, breaker);
            number
        };
        let end = stream.timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        loop {
            let frame = tokio::select! {
                biased;
                _ = &mut broken, if effect.is_watch() => {
                    let _ = sender.send(Err(Box::new(Broken)));
                    break;
                }
                frame = stream.next() => frame,
                () = sleep_until_some(end) => {
                    stream.bookmark();
                    while let Some(frame) = stream.try_next() {
                        let _ = sender.send(Ok(frame));
                    }
                    break;
                }
                () = sender.closed() => break,
                () = tokio::time::sleep(BOOKMARKS) => {
                    stream.bookmark();
                    continue;
                }
            };
            let Some(frame) = frame else { break };
            let later = caller.meddler.as_ref().map(|meddler| meddler.news_delay()).unwrap_or_default();
            tokio::time::sleep(self.0.chance.duration(&self.0.pace.news) + later).await;
            let mut is_heard = sender.send(Ok(frame)).is_ok();
            while let Some(frame) = stream.try_next() {
                is_heard = sender.send(Ok(frame)).is_ok();
            }
            if breaks_after_first {
                if fault == Some(CallFault::TooOld) {
                    self.0.server.compact();
                }
                let _ = sender.send(Err(Box::new(Broken)));
                break;
            }
            if !is_heard {
                break;
            }
        }
        self.watches().open.remove(&number);
    }
}

async fn sleep_until_some(end: Option<tokio::time::Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

type Carried = Result<Response<UnsyncBoxBody<Bytes, BoxError>>, Broken>;

/// The connection broke.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("connection reset by peer")]
pub struct Broken;

/// A refusal that did not come from the server itself but from something on the way.
fn refusal(code: StatusCode, reason: &str) -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the fault plan says {reason}"), "reason": reason, "code": code.as_u16(),
    });
    let mut response =
        Response::new(Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

/// One caller's end of the network, as kube's client wants it.
#[derive(Clone)]
struct Line {
    wire: Wire,
    caller: Caller,
}

impl Service<Request<Body>> for Line {
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { wire, caller } = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let effect = Effect::of_request(&head.method, &head.uri);
            let call = Call { process: &caller.process, effect: &effect, body: &body };
            let fault = caller.meddler.as_ref().and_then(|meddler| meddler.meddle(&call));
            if fault == Some(CallFault::KillBefore) {
                wire.0.processes.kill(&caller.process);
                return std::future::pending().await;
            }
            let request = Request::from_parts(head, body);
            // On a task of its own: the request goes on its way whatever becomes of the caller.
            let (sender, receiver) = oneshot::channel();
            tokio::spawn(async move {
                let _ = sender.send(wire.carry(caller, request, effect, fault).await);
            });
            let carried = receiver.await.map_err(|_| Broken)?;
            Ok(carried?)
        })
    }
}
