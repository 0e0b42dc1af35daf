//! Machines whose kubelet this process plays.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

/// Nodes with this annotation get a kubelet by themselves, as under kwok.
const FAKE_NODE: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// Whether a Node object asks for a played kubelet.
pub(crate) fn is_fake(node: &Node) -> bool {
    let annotations = node.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(FAKE_NODE.0)).is_some_and(|value| value == FAKE_NODE.1)
}

/// What a machine's kubelet does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// It reports.
    Speaks,
    /// It works but cannot be heard since then.
    Silent(Timestamp),
    /// The machine has been without power since then.
    Off(Timestamp),
}

/// A machine that runs, or ran, a kubelet.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The Node that the kubelet has yet to create.
    pub(crate) to_register: Option<Box<Node>>,
    /// When the machine came up.
    pub(crate) booted_at: Timestamp,
    /// When its Node was first seen.
    pub(crate) registered_at: Option<Timestamp>,
    pub(crate) voice: Voice,
}

impl Machine {
    /// A machine that came up and is to register this Node.
    pub(crate) fn booted(node: Box<Node>, now: Timestamp) -> Self {
        Self { to_register: Some(node), booted_at: now, registered_at: None, voice: Voice::Speaks }
    }

    /// A machine that became known by its Node.
    pub(crate) fn registered(now: Timestamp) -> Self {
        Self { to_register: None, booted_at: now, registered_at: Some(now), voice: Voice::Speaks }
    }

    /// Whether the kubelet can be heard.
    pub(crate) fn speaks(&self) -> bool {
        self.voice == Voice::Speaks
    }

    /// Since when the kubelet has not been heard.
    pub(crate) fn quiet_since(&self) -> Option<Timestamp> {
        match self.voice {
            Voice::Speaks => None,
            Voice::Silent(since) | Voice::Off(since) => Some(since),
        }
    }
}
