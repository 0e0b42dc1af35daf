//! Built-in kinds: their OpenAPI schemas, read once, and what the types behind them do to JSON.

mod arena;
mod decode;
mod wire;

pub(crate) use arena::{Arena, Node, NodeKind};
pub(crate) use decode::decode;
pub(crate) use wire::write_zeros;
