//! Names as types of their own, so that a pool's name never stands where a node's name belongs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Shared, immutable text: label keys and values repeat thousands of times in a cluster.
pub type Text = Arc<str>;

/// Clusters have some hundred label keys and resource names; strangers may invent more, which are not remembered.
const SHARED_MAX: usize = 4096;

static SHARED: RwLock<BTreeSet<Text>> = RwLock::new(BTreeSet::new());

/// The one copy of a text that is asked for again and again: a label's key, a resource's name.
///
/// Equal texts that are one copy are compared by address, and hundreds of instance types that repeat the same keys fit
/// the processor's cache. Nothing but speed depends on it.
pub fn shared(text: &str) -> Text {
    if let Some(known) = SHARED.read().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Text::clone(known);
    }
    let mut all = SHARED.write().unwrap_or_else(PoisonError::into_inner);
    let new = all.get(text).map_or_else(|| Text::from(text), Text::clone);
    if all.len() < SHARED_MAX {
        all.insert(Text::clone(&new));
    }
    new
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Text);

        impl $name {
            /// Wraps a name that the API server or a provider handed out.
            pub fn new(name: impl Into<Text>) -> Self {
                Self(name.into())
            }

            /// The bare text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The shared text, for use as a label value.
            pub fn text(&self) -> Text {
                Arc::clone(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of a NodePool.
    PoolName
}
name! {
    /// The name of a NodeClaim.
    ClaimName
}
name! {
    /// The name of a Node.
    NodeName
}
name! {
    /// The name of an instance type.
    TypeName
}
name! {
    /// The identity of an instance at its provider, for example `kwok://node-1`.
    ProviderId
}

/// Namespace and name of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// The pod's namespace.
    pub namespace: Text,
    /// The pod's name.
    pub name: Text,
}

impl PodKey {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// Namespace and name of a capacity buffer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferKey {
    /// The buffer's namespace.
    pub namespace: Text,
    /// The buffer's name.
    pub name: Text,
}

impl BufferKey {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for BufferKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}
