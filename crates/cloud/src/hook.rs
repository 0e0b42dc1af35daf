//! Checks of a provider's own before a node counts as registered.

use std::time::Duration;

use api::NodeClaim;
use futures::future::BoxFuture;

use crate::error::CloudError;

/// Something a provider wants done before pods may come to a node.
///
/// All hooks are asked in each pass until all have passed. Until then the node keeps the taint that holds pods off.
pub trait RegistrationHook: Send + Sync + 'static {
    /// The name, as the claim's `Registered` condition shows it.
    fn name(&self) -> &'static str;

    /// Whether the node of this claim may be registered. An error holds it back too, and is tried again.
    fn check<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<HookAnswer, CloudError>>;
}

/// What a hook says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// Nothing is in the way any more.
    Passed,
    /// Not yet.
    Pending {
        /// When to ask again; otherwise back-off decides.
        again: Option<Duration>,
    },
}
