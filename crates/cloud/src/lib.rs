//! What every provider must be able to do, and how it says that it could not.
//!
//! This crate will never know any one provider, nor a client of one. The controllers hold a [`CloudProvider`] and
//! nothing else; an error tells them what to do next through [`LaunchError::next`], never through its text.

mod error;
mod hook;
mod launch;
mod repair;

use std::sync::Arc;

use api::lower::UnsupportedVolumes;
use api::{DurationText, NodeClaim, NodePool};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::{InstanceType, ProviderId, Vocabulary};

pub use error::{CloudError, LaunchError, Next};
pub use hook::{HookAnswer, RegistrationHook};
pub use launch::{Instance, LAUNCH_ID, LaunchId, LaunchRequest, Launched, Origin, Termination};
pub use repair::{RebootError, RepairAction, RepairError, RepairPolicy, RepairPolicyFault, check_repair_policies};

/// The instance types of one pool, shared between the provider and every snapshot.
pub type InstanceTypes = Arc<[Arc<InstanceType>]>;

/// A kind of NodeClass that a provider serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClassKind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
}

impl NodeClassKind {
    /// The label that names the NodeClass on claims and nodes.
    pub fn label(&self) -> String {
        api::labels::node_class_label(self.group, self.kind)
    }
}

/// The hands of the autoscaler at one provider. Every call may be repeated without harm.
pub trait CloudProvider: Send + Sync + 'static {
    /// The provider's name in metrics.
    fn name(&self) -> &'static str;

    /// The labels that new nodes carry and the domains that users may not claim.
    fn vocabulary(&self) -> Arc<Vocabulary>;

    /// The kind of NodeClass it serves; pools and claims with another kind are none of our business.
    fn node_class_kind(&self) -> NodeClassKind;

    /// Volumes that its nodes cannot serve; pods that want one are left alone.
    fn unsupported_volumes(&self) -> UnsupportedVolumes {
        UnsupportedVolumes::default()
    }

    /// How long the nodes of a pool that says nothing about it may take to drain; nothing for as long as it takes.
    fn default_termination_grace_period(&self) -> Option<DurationText> {
        None
    }

    /// What must be done before a node counts as registered; nothing at most providers.
    fn registration_hooks(&self) -> Vec<Arc<dyn RegistrationHook>> {
        Vec::new()
    }

    /// The illnesses of nodes that it knows; none at most providers. The list never changes.
    fn repair_policies(&self) -> Vec<RepairPolicy> {
        Vec::new()
    }

    /// All types a pool could use, those that are sold out included.
    ///
    /// A type whose offerings differ in the room they come with is listed once for each room, under one name, with the
    /// offerings that have it. A claim names types only; it is launched with an offering that holds its requests.
    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<InstanceTypes, CloudError>>;

    /// Starts an instance. The launch id makes a repeated call return the same instance.
    fn launch<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Launched, LaunchError>>;

    /// The instance that an earlier call with this launch id started, if any.
    fn find_launched<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Option<Launched>, CloudError>>;

    /// Ends an instance; called until it reports [`Termination::Gone`].
    fn terminate<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Termination, CloudError>>;

    /// Starts the machine of a claim anew, and answers once that is under way. Calls with the same word for the operation
    /// are one reboot.
    fn reboot<'a>(&'a self, _claim: &'a NodeClaim, _operation: &'a str) -> BoxFuture<'a, Result<(), RebootError>> {
        std::future::ready(Err(RebootError::NotImplemented)).boxed()
    }

    /// The instance with this identity, or nothing when it is gone or going.
    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Instance>, CloudError>>;

    /// All instances of this cluster that are not going.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, CloudError>>;
}
