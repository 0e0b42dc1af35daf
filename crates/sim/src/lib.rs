//! An embedded Kubernetes API: one schema-driven store in memory, spoken to like the real server, over a tower service,
//! over HTTP or by typed calls. One seed and one order of calls give the same answers, byte for byte.
//!
//! What it does not know is an error, never ignored: unknown paths, query parameters, selectors, content types and
//! patch directives are refused. Known differences from the real server:
//!
//! - `metadata.managedFields` are not kept, and server-side apply is answered with 415;
//! - nobody is forbidden anything: roles and bindings are objects like others, requests are not judged by them;
//! - bodies are JSON or YAML; Protobuf is refused with 415 (`kubectl create -f` sends JSON, `kubectl create namespace`
//!   and its kin send Protobuf) and never written (clients that prefer it accept JSON too);
//! - unknown query parameters are refused, where the real server ignores them;
//! - a continue token that is too old is answered with 410 and no token to go on with;
//! - definitions of custom resources are accepted at once, and their objects go at once with them;
//! - the work of controllers (owners, namespaces) waits for [`ApiServer::collect_garbage`];
//! - no quota, limit range or webhook is asked.
//!
//! This crate will never know our planner, state, controllers; AWS; a clock that is not handed in.

mod accept;
mod admission;
mod answer;
mod bootstrap;
mod call;
mod collect;
mod definitions;
mod delete;
mod event;
mod eviction;
mod hands;
mod header;
mod history;
pub mod http;
mod list;
mod logs;
mod names;
mod namespaces;
mod output;
mod patch;
mod path;
mod pods;
mod protobuf;
mod query;
mod scale;
mod selector;
mod server;
mod service;
mod shape;
mod status_body;
mod store;
mod strategy;
mod table;
mod times;
mod watch;
mod write;

pub use answer::{Answer, WatchStream};
pub use event::{Change, ObjectKey, StoreEvent, Subscription};
pub use hands::{Hands, Kind};
pub use history::{Record, Verb};
pub use server::{ApiServer, Clock, ServerSettings};
pub use service::{AnswerBody, ApiService};
pub use status_body::{Cause, Details, Outcome, Status};
