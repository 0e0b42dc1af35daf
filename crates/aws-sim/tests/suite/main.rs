//! The embedded AWS through its public interface, on a small catalogue of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod calls;
mod fleets;
mod life;
mod market;
mod properties;
