//! Answers: one document, or a stream of frames.

use crate::server::ApiServer;
use crate::watch::Bookmarks;
use bytes::Bytes;
use futures::Stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// What the server says to one request.
#[derive(Debug)]
pub enum Answer {
    /// All of it, at once.
    Document(http::Response<Bytes>),
    /// A beginning, and frames that follow.
    Watch(http::response::Parts, WatchStream),
}

impl Answer {
    /// A document of this kind.
    pub(crate) fn document(code: u16, content_type: &str, body: Bytes) -> Self {
        let mut response = http::Response::new(body);
        *response.status_mut() = status_code(code);
        if let Ok(value) = HeaderValue::from_str(content_type) {
            response.headers_mut().insert(CONTENT_TYPE, value);
        }
        Self::Document(response)
    }

    /// A stream of this kind.
    pub(crate) fn stream(content_type: &'static str, stream: WatchStream) -> Self {
        let mut response = http::Response::new(());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let (parts, ()) = response.into_parts();
        Self::Watch(parts, stream)
    }

    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Document(response) => response.status().as_u16(),
            Self::Watch(parts, _) => parts.status.as_u16(),
        }
    }

    pub(crate) fn headers_mut(&mut self) -> &mut http::HeaderMap {
        match self {
            Self::Document(response) => response.headers_mut(),
            Self::Watch(parts, _) => &mut parts.headers,
        }
    }
}

fn status_code(code: u16) -> http::StatusCode {
    http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR)
}

/// Frames of a watch (one JSON document and a line end each) or of a followed log.
///
/// The stream reads no clock: whoever carries it to the client ends it after [`WatchStream::timeout`], and asks for a
/// [`WatchStream::bookmark`] now and then and before the end.
#[derive(Debug)]
pub struct WatchStream {
    frames: mpsc::UnboundedReceiver<Bytes>,
    bookmarks: Option<(ApiServer, Bookmarks)>,
    /// After how long the server would end this stream; None = when the source ends.
    pub timeout: Option<Duration>,
}

impl WatchStream {
    pub(crate) fn new(frames: mpsc::UnboundedReceiver<Bytes>, timeout: Option<Duration>) -> Self {
        Self { frames, bookmarks: None, timeout }
    }

    pub(crate) fn with_bookmarks(mut self, server: ApiServer, bookmarks: Bookmarks) -> Self {
        self.bookmarks = Some((server, bookmarks));
        self
    }

    /// Appends a bookmark at the store's revision behind all frames so far, if the client asked for bookmarks and the
    /// stream has not ended. Says whether it did.
    pub fn bookmark(&self) -> bool {
        self.bookmarks.as_ref().is_some_and(|(server, bookmarks)| server.send_bookmark(bookmarks))
    }

    /// The next frame if there is one by now.
    pub fn try_next(&mut self) -> Option<Bytes> {
        self.frames.try_recv().ok()
    }
}

impl Stream for WatchStream {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.frames.poll_recv(context)
    }
}
