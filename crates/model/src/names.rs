//! Names as types of their own, so that a pool's name never stands where a node's name belongs.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Shared, immutable text: label keys and values repeat thousands of times in a cluster.
pub type Text = Arc<str>;

/// The one copy of things that are stated again and again: hundreds of instance types that repeat the same few fit the
/// processor's cache, and are compared by address. Nothing but speed depends on it.
pub(crate) struct Shared<T>(RwLock<BTreeSet<T>>);

/// Clusters have some hundred label keys, resource names and values of labels of types; strangers may invent more, which
/// are not remembered.
const SHARED_MAX: usize = 4096;

impl<T: Ord + Clone> Shared<T> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(BTreeSet::new()))
    }

    pub(crate) fn copy_of<Q: Ord + ?Sized>(&self, wanted: &Q, make: impl FnOnce() -> T) -> T
    where
        T: Borrow<Q>,
    {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(wanted) {
            return known.clone();
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let new = all.get(wanted).cloned().unwrap_or_else(make);
        if all.len() < SHARED_MAX {
            all.insert(new.clone());
        }
        new
    }
}

static TEXTS: Shared<Text> = Shared::new();

/// The one copy of a text that is asked for again and again: a label's key, a resource's name.
pub fn shared(text: &str) -> Text {
    TEXTS.copy_of(text, || Text::from(text))
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
