//! The server on a socket, for clients outside this process.

use crate::server::ApiServer;
use crate::service::AnswerBody;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Serves HTTP/1 until accepting fails; every connection is a task of its own. Whoever connects is `actor`.
///
/// Dropping the future ends all connections.
pub async fn serve(listener: TcpListener, server: ApiServer, actor: &str) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        let (server, actor) = (server.clone(), Arc::<str>::from(actor));
        let service = service_fn(move |request| answer(server.clone(), actor.clone(), request));
        connections.spawn(async move {
            // A client that goes away in the middle is its own affair.
            let _ =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(socket), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    server: ApiServer,
    actor: Arc<str>,
    request: http::Request<Incoming>,
) -> Result<http::Response<AnswerBody>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(AnswerBody::response(server.handle(&actor, http::Request::from_parts(parts, body))))
}
