//! The loops on an embedded API and a virtual clock.
#![allow(clippy::unwrap_used)]

mod common;
mod determinism;
mod stories;
