//! Machines whose Node appears later, and the making of Nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::NodeClaim;
use cloud::{LaunchRequest, Launched};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use model::NodeName;

use crate::{claim, node};

/// Ten attempts with pauses of 1, 2, 4 … 30 seconds last over two minutes: longer than an API server restarts, and
/// far shorter than the time after which a claim without a node is given up.
const ATTEMPTS_MAX: u32 = 10;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A Node that could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// The API server refused or was out of reach.
    #[error("{}", words(.0))]
    Api(#[from] kube::Error),
    /// The name belongs to a Node of another launch.
    #[error("node `{name}` exists and belongs to another launch")]
    Taken {
        /// The name.
        name: String,
    },
    /// The Node was there a moment ago.
    #[error("node `{name}` was removed while it was made")]
    Vanished {
        /// The name.
        name: String,
    },
}

/// What the API server said, without the wrapping.
pub(crate) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Makes Nodes, now or later, and knows which machines still wait for theirs.
pub(crate) struct Arrivals {
    client: Client,
    expected: Mutex<BTreeMap<NodeName, Launched>>,
}

impl Arrivals {
    pub(crate) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self { client, expected: Mutex::default() })
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn expected(&self) -> MutexGuard<'_, BTreeMap<NodeName, Launched>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine that waits for a Node of this name.
    pub(crate) fn expects(&self, name: &NodeName) -> Option<Launched> {
        self.expected().get(name).cloned()
    }

    /// All machines that wait for their Node.
    pub(crate) fn all(&self) -> Vec<NodeName> {
        self.expected().keys().cloned().collect()
    }

    /// Makes the Node of a launch; a Node that the same launch made before is as good.
    pub(crate) async fn make(&self, wanted: &Node) -> Result<Node, NodeError> {
        match self.nodes().create(&PostParams::default(), wanted).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            made => return Ok(made?),
        }
        let name = wanted.metadata.name.clone().unwrap_or_default();
        match self.nodes().get_opt(&name).await? {
            None => Err(NodeError::Vanished { name }),
            Some(present) if node::launch_of(&present) == node::launch_of(wanted) => Ok(present),
            Some(_) => Err(NodeError::Taken { name }),
        }
    }

    /// Removes a Node, or the prospect of one. Fine if there is neither.
    pub(crate) async fn remove(&self, name: &NodeName) -> Result<(), kube::Error> {
        // First, so that a Node that is being made right now is removed by its maker.
        self.expected().remove(name);
        match self.nodes().delete(name.as_str(), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => deleted.map(|_| ()),
        }
    }

    /// The making of a launch's Node after a delay, unless the claim goes first; nothing if it is being made already.
    pub(crate) fn make_later(
        self: &Arc<Self>,
        request: &LaunchRequest,
        wanted: Node,
        delay: Duration,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let name = node::node_name(claim::name(&request.claim), &request.id);
        if self.expected().insert(name.clone(), node::launched(&wanted)).is_some() {
            return None;
        }
        let arrival = Arrival { arrivals: Arc::clone(self), claim: Arc::clone(&request.claim), name, wanted };
        Some(async move {
            tokio::time::sleep(delay).await;
            arrival.happen().await;
        })
    }
}

/// One Node that is to be made.
struct Arrival {
    arrivals: Arc<Arrivals>,
    claim: Arc<NodeClaim>,
    name: NodeName,
    wanted: Node,
}

impl Arrival {
    async fn happen(self) {
        let mut pause = PAUSE_MIN;
        for attempt in 1..=ATTEMPTS_MAX {
            match self.attempt().await {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(node = %self.name, attempt, %error, "node could not be made, trying again");
                }
            }
            if attempt == ATTEMPTS_MAX {
                tracing::error!(node = %self.name, attempts = attempt, "node could not be made, giving up");
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.arrivals.expected().remove(&self.name);
    }

    /// One attempt; done when the Node exists or nobody wants it any more.
    async fn attempt(&self) -> Result<(), NodeError> {
        if self.arrivals.expects(&self.name).is_none() || !self.is_wanted().await? {
            return Ok(());
        }
        self.arrivals.make(&self.wanted).await?;
        if self.arrivals.expects(&self.name).is_none() {
            self.arrivals.remove(&self.name).await?;
        }
        Ok(())
    }

    /// Whether the claim still exists, as the same object, and stays.
    async fn is_wanted(&self) -> Result<bool, kube::Error> {
        let claims: Api<NodeClaim> = Api::all(self.arrivals.client.clone());
        let present = claims.get_opt(claim::name(&self.claim)).await?;
        let same = |found: &NodeClaim| found.metadata.uid == self.claim.metadata.uid;
        Ok(present.is_some_and(|found| same(&found) && found.metadata.deletion_timestamp.is_none()))
    }
}
