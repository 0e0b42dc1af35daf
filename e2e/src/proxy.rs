//! A proxy between the controller and the API server. A plan sees every write and may end the controller at any of
//! them; a sky decides what every request meets on its way.
//!
//! The controller is not told: it runs as in production, and what is killed is the whole process, as a node failure
//! or the kernel would do it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::StreamExt;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::kill::{KillEverywhere, Side, effect, write};
use crate::weather::{Fate, Sky};

/// How much later a request arrives that is late.
const LATE: Duration = Duration::from_secs(3);
/// What those are told who should come back later, in seconds.
const RETRY_AFTER: &str = "1";

/// What requests pass on their way.
#[derive(Clone, Default)]
pub(crate) struct Way {
    /// Sees every write.
    pub(crate) plan: Option<KillEverywhere>,
    /// Decides what they meet.
    pub(crate) sky: Sky,
}

/// The connection ends without an answer.
#[derive(Debug, Clone, Copy)]
struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the connection was dropped")
    }
}

impl std::error::Error for Dropped {}

type Outgoing = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;
type Answer = Result<Response<Outgoing>, Dropped>;

/// Starts the proxy on a free port; it lives as long as the runtime. The address is plain HTTP.
pub(crate) async fn start(upstream: Client, way: Way) -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("bind the proxy")?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (upstream, way) = (upstream.clone(), way.clone());
            // A task of its own: a write that has begun is carried through although the controller is dead by then.
            let service = service_fn(move |request| {
                let forwarded = tokio::spawn(forward(upstream.clone(), way.clone(), request));
                async move { forwarded.await.unwrap_or(Err(Dropped)) }
            });
            // A connection that breaks is the controller being killed, or the weather: that is the point.
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

async fn forward(upstream: Client, way: Way, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Dropped)?.to_bytes();
    let fate = way.sky.meet();
    match fate {
        Fate::Throttled => return Ok(refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
        Fate::Fails => return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
        Fate::Unavailable => return Ok(refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable")),
        Fate::RequestLost => return Err(Dropped),
        Fate::Late => sleep(LATE).await,
        Fate::Passes | Fate::AnswerLost => {}
    }
    let effect = write(&head.method, head.uri.path()).map(|write| effect(&write, &body));
    let struck = |side| effect.as_ref().zip(way.plan.as_ref()).is_some_and(|(effect, plan)| plan.strikes(effect, side));
    if struck(Side::Before) {
        return never().await;
    }
    let is_watch = is_watch(&head);
    let cut = way.sky.cut();
    let response = upstream.send(upstream_request(head, body)).await.map_err(|_| Dropped)?;
    if is_watch {
        // The answer to a watch does not end by itself: it is lost as soon as it begins.
        return if fate == Fate::AnswerLost { Err(Dropped) } else { Ok(watched(response, &way.sky, cut)) };
    }
    if effect.is_none() && fate != Fate::AnswerLost {
        return Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()));
    }
    let (head, body) = response.into_parts();
    let body = body.collect_bytes().await.map_err(|_| Dropped)?;
    if head.status.is_success() && struck(Side::After) {
        return never().await;
    }
    match fate {
        Fate::AnswerLost => Err(Dropped),
        _ => Ok(Response::from_parts(head, whole(body))),
    }
}

fn is_watch(head: &Parts) -> bool {
    let query = head.uri.query().unwrap_or_default();
    query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
}

fn upstream_request(head: Parts, body: Bytes) -> Request<Body> {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri.path_and_query().and_then(|path| path.as_str().parse().ok()).unwrap_or_default();
    for (name, value) in head.headers.iter().filter(|(name, _)| ["accept", "content-type"].contains(&name.as_str())) {
        request.headers_mut().insert(name, value.clone());
    }
    request
}

/// Passes a watch's news on, each as late as the sky says when it comes, until the sky cuts it.
fn watched(response: Response<Body>, sky: &Sky, cut: impl Future<Output = ()> + Send + 'static) -> Response<Outgoing> {
    if response.status() == StatusCode::GONE {
        sky.note_expired();
    }
    let (head, body) = response.into_parts();
    let (sender, receiver) = mpsc::unbounded_channel();
    let sky = sky.clone();
    tokio::spawn(async move {
        let mut frames = BodyStream::new(body);
        let mut cut = std::pin::pin!(cut);
        loop {
            let frame = tokio::select! {
                () = &mut cut => Some(Err(())),
                frame = frames.next() => frame.map(|frame| frame.map_err(|_| ())),
                () = sender.closed() => return,
            };
            let Some(frame) = frame else { return };
            let frame = frame.ok().and_then(|frame| frame.into_data().ok());
            if frame.as_ref().is_some_and(is_expiry) {
                sky.note_expired();
            }
            let is_over = frame.is_none();
            // What is cut is cut at once, and takes along what was on its way.
            if sender.send((Instant::now() + sky.news_delay(), frame.ok_or(Dropped))).is_err() || is_over {
                return;
            }
        }
    });
    let news = futures::stream::unfold(receiver, |mut receiver| async move {
        let (due, news) = receiver.recv().await?;
        if news.is_ok() {
            sleep_until(due).await;
        }
        Some((news.map(Frame::data), receiver))
    });
    Response::from_parts(head, StreamBody::new(news).map_err(Into::into).boxed_unsync())
}

/// Whether a watch says that what it was asked for is forgotten.
fn is_expiry(news: &Bytes) -> bool {
    String::from_utf8_lossy(news).contains(r#""type":"ERROR""#)
        && String::from_utf8_lossy(news).contains(r#""code":410"#)
}

/// A refusal that did not come from the API server itself but from something on the way.
fn refusal(code: StatusCode, reason: &str) -> Response<Outgoing> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the weather says {reason}"), "reason": reason, "code": code.as_u16(),
    });
    let mut response = Response::new(whole(Bytes::from(status.to_string())));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if code == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    response
}

fn whole(body: Bytes) -> Outgoing {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

/// No answer: the controller is dead before it could read one.
async fn never() -> Answer {
    std::future::pending().await
}
