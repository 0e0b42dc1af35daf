//! Serves an empty embedded cluster on a free port of this machine, for trying it with kubectl:
//!
//! ```text
//! cargo run -p sim --example serve &
//! kubectl --server http://127.0.0.1:PORT get namespaces
//! ```

#![allow(clippy::print_stdout)]

use sim::{ApiServer, ServerSettings};
use std::sync::Arc;
use std::time::Duration;

/// How often owners and namespaces are looked after.
const COLLECT_INTERVAL: Duration = Duration::from_millis(100);

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let server = ApiServer::new(ServerSettings::default(), Arc::new(jiff::Timestamp::now));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}", listener.local_addr()?);
    let collector = server.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(COLLECT_INTERVAL).await;
            collector.collect_garbage(1000);
        }
    });
    sim::http::serve(listener, server, "kubernetes-admin").await
}
