//! Lives of claims and nodes, with a provider that does what a test wants.

mod collects;
mod drains;
mod ends;
mod expires;
mod launches;
pub(crate) mod provider;
mod registers;
mod stage;
mod volumes;
mod writes;
