//! The server under a client: a tower service, and bodies that know when a watch ends.

use crate::answer::{Answer, WatchStream};
use crate::server::ApiServer;
use bytes::Bytes;
use futures::Stream;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// How often a watch gets a bookmark, as from the real server.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// A tower service on an [`ApiServer`], for one user.
#[derive(Debug, Clone)]
pub struct ApiService {
    server: ApiServer,
    actor: Arc<str>,
}

impl ApiService {
    pub(crate) fn new(server: ApiServer, actor: &str) -> Self {
        Self { server, actor: Arc::from(actor) }
    }
}

impl<B> tower::Service<http::Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = http::Response<AnswerBody>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Self { server, actor } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            Ok(AnswerBody::response(server.handle(&actor, http::Request::from_parts(parts, body))))
        })
    }
}

/// The body of an answer: one piece, or a stream that ends after its timeout, with bookmarks on the way.
#[derive(Debug)]
pub struct AnswerBody(Content);

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    Frames { stream: WatchStream, deadline: Option<Pin<Box<Sleep>>>, bookmark: Pin<Box<Sleep>>, is_ending: bool },
}

impl AnswerBody {
    /// An answer as an HTTP response. Streams read tokio's clock, so this must be called inside a runtime for them.
    pub fn response(answer: Answer) -> http::Response<Self> {
        match answer {
            Answer::Document(response) => response.map(|body| Self(Content::Whole(Some(body)))),
            Answer::Watch(parts, stream) => {
                let start = Instant::now();
                let deadline = stream.timeout.map(|timeout| Box::pin(sleep_until(start + timeout)));
                let bookmark = Box::pin(sleep_until(start + BOOKMARK_INTERVAL));
                let content = Content::Frames { stream, deadline, bookmark, is_ending: false };
                http::Response::from_parts(parts, Self(content))
            }
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(body) => {
                Poll::Ready(body.take().filter(|body| !body.is_empty()).map(|body| Ok(Frame::data(body))))
            }
            Content::Frames { stream, deadline, bookmark, is_ending } => {
                let is_over =
                    |sleep: &mut Pin<Box<Sleep>>, context: &mut Context<'_>| sleep.as_mut().poll(context).is_ready();
                if !*is_ending && deadline.as_mut().is_some_and(|deadline| is_over(deadline, context)) {
                    *is_ending = true;
                    stream.bookmark();
                }
                if !*is_ending && is_over(bookmark, context) {
                    stream.bookmark();
                    bookmark.as_mut().reset(Instant::now() + BOOKMARK_INTERVAL);
                    // Registers the new time with this task.
                    let _ = is_over(bookmark, context);
                }
                match Pin::new(stream).poll_next(context) {
                    Poll::Ready(frame) => Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes)))),
                    Poll::Pending if *is_ending => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
            Content::Frames { .. } => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Content::Whole(body) if body.as_ref().is_none_or(Bytes::is_empty))
    }
}
