//! Instance types as classes see them.
#![allow(clippy::unwrap_used)]

mod capacity;
mod common;
mod labels;
mod offerings;
