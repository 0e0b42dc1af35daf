//! What can be told, as data. Several news of one kind and one moment become one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::offers::Offer;

/// One line of the story.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Virtual time since the beginning.
    pub at: Duration,
    /// What happened.
    pub news: News,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum News {
    /// The story begins.
    Started(Started),
    /// Somebody created objects that decide about nodes.
    Applied(Objects),
    /// Somebody changed the wishes of such objects.
    Changed(Objects),
    /// Such objects are gone.
    Deleted(Objects),
    /// A workload has another size.
    Scaled(Scaled),
    /// The scheduler found no node for pods.
    Pending(PodsOf),
    /// New nodes were decided on.
    Decided(Box<Decided>),
    /// Pods will fit a place that is there or on its way.
    Nominated(Moved),
    /// Pods get no node.
    Refused(Refused),
    /// Pools can make no node at all.
    Barren(Barren),
    /// Instances were bought for claims.
    Launched(Launched),
    /// The nodes of claims joined the cluster.
    Registered(Joined),
    /// The nodes of claims take pods.
    Initialized(Joined),
    /// Pods got a node.
    Bound(Welcomed),
    /// The last pods left nodes of ours.
    Emptied(Nodes),
    /// Nodes of ours have to go.
    Removing(Removing),
    /// Nodes of ours are gone, their instances ended.
    Removed(Removed),
    /// The controller told people of something that is not well.
    Warned(Warned),
    /// Something that no object shows: what the cloud does, and what this program does.
    Announced(Announced),
}

impl News {
    /// The name of the event in JSON.
    pub fn event(&self) -> &'static str {
        match self {
            Self::Started(_) => "started",
            Self::Applied(_) => "applied",
            Self::Changed(_) => "changed",
            Self::Deleted(_) => "deleted",
            Self::Scaled(_) => "scaled",
            Self::Pending(_) => "pending",
            Self::Decided(_) => "decided",
            Self::Nominated(_) => "nominated",
            Self::Refused(_) => "refused",
            Self::Barren(_) => "barren",
            Self::Launched(_) => "launched",
            Self::Registered(_) => "registered",
            Self::Initialized(_) => "initialized",
            Self::Bound(_) => "bound",
            Self::Emptied(_) => "emptied",
            Self::Removing(_) => "removing",
            Self::Removed(_) => "removed",
            Self::Warned(_) => "warning",
            Self::Announced(announced) => announced.event,
        }
    }

    /// Takes other news in if both say the same of different things; otherwise gives them back.
    pub(crate) fn absorb(&mut self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Applied(own), Self::Applied(other))
            | (Self::Changed(own), Self::Changed(other))
            | (Self::Deleted(own), Self::Deleted(other)) => own.objects.extend(other.objects),
            (Self::Pending(own), Self::Pending(other)) if own.workload == other.workload => own.pods.extend(other.pods),
            (Self::Decided(own), Self::Decided(other)) if own.is_like(&other) => own.absorb(*other),
            (Self::Nominated(own), Self::Nominated(other))
                if (&own.workload, &own.place) == (&other.workload, &other.place) =>
            {
                own.pods.extend(other.pods);
            }
            (Self::Refused(own), Self::Refused(other))
                if (&own.workload, &own.reasons) == (&other.workload, &other.reasons) =>
            {
                own.pods.extend(other.pods);
            }
            (Self::Launched(own), Self::Launched(other)) if own.is_like(&other) => own.claims.extend(other.claims),
            (Self::Registered(own), Self::Registered(other)) | (Self::Initialized(own), Self::Initialized(other))
                if own.pool == other.pool =>
            {
                own.absorb(other);
            }
            (Self::Bound(own), Self::Bound(other)) if own.workload == other.workload => own.absorb(other),
            (Self::Emptied(own), Self::Emptied(other)) if own.pool == other.pool => own.nodes.extend(other.nodes),
            (Self::Removing(own), Self::Removing(other))
                if (&own.pool, &own.reason) == (&other.pool, &other.reason) =>
            {
                own.machines.extend(other.machines);
                own.pods += other.pods;
            }
            (Self::Removed(own), Self::Removed(other)) if own.pool == other.pool => own.absorb(other),
            (Self::Warned(own), Self::Warned(other))
                if (&own.reason, &own.message) == (&other.reason, &other.message) =>
            {
                own.about.extend(other.about);
            }
            (_, other) => return Some(other),
        }
        None
    }
}

/// How the story was begun.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The story's name.
    pub scenario: String,
    /// Everything left to chance follows from it.
    pub seed: u64,
    /// The embedded cloud.
    pub cloud: String,
}

/// An object that people write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    /// Kind.
    pub kind: String,
    /// Namespace, if the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// Some objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Objects {
    /// The objects.
    pub objects: Vec<ObjectName>,
}

/// A workload of another size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scaled {
    /// The workload.
    #[serde(flatten)]
    pub object: ObjectName,
    /// Replicas before.
    pub from: u64,
    /// Replicas now.
    pub to: u64,
}

/// Pods of one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodsOf {
    /// The workload.
    pub workload: String,
    /// The pods.
    pub pods: Vec<String>,
}

/// New nodes, all alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// The pool.
    pub pool: String,
    /// How many.
    pub nodes: u64,
    /// How many pods of each workload they are for.
    pub pods: BTreeMap<String, u64>,
    /// What the pods and daemons of each node ask for.
    pub requests: BTreeMap<String, String>,
    /// How many instance types each node may become.
    pub types: usize,
    /// The cheapest way to buy it.
    #[serde(flatten)]
    pub chosen: Offer,
    /// The cheapest way with another instance type.
    pub runner_up: Option<Offer>,
    /// The cheapest way with each other capacity type.
    pub other_capacity_types: Vec<Offer>,
}

impl Decided {
    fn is_like(&self, other: &Self) -> bool {
        let Self { pool, nodes: _, pods: _, requests, types, chosen, runner_up, other_capacity_types } = self;
        (pool, requests, types, chosen) == (&other.pool, &other.requests, &other.types, &other.chosen)
            && (runner_up, other_capacity_types) == (&other.runner_up, &other.other_capacity_types)
    }

    fn absorb(&mut self, other: Self) {
        self.nodes += other.nodes;
        for (workload, pods) in other.pods {
            *self.pods.entry(workload).or_default() += pods;
        }
    }
}

/// Pods of one workload and where they will go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    /// The workload.
    pub workload: String,
    /// The pods.
    pub pods: Vec<String>,
    /// A node, or a claim on its way.
    pub place: String,
}

/// Pods of one workload that get no node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The workload.
    pub workload: String,
    /// The pods.
    pub pods: Vec<String>,
    /// One sentence per pool; empty if there is no pool.
    pub reasons: Vec<String>,
}

/// A pool that can make no node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Barren {
    /// The pool.
    pub pool: String,
    /// Why.
    pub reason: String,
}

/// Claims whose instances were bought, all the same way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Launched {
    /// The pool.
    pub pool: String,
    /// The claims.
    pub claims: Vec<String>,
    /// What was bought.
    #[serde(flatten)]
    pub bought: Offer,
    /// Whether that is the cheapest way that the plan named; the cloud chooses among all that the claim lists.
    pub as_decided: Option<bool>,
}

impl Launched {
    fn is_like(&self, other: &Self) -> bool {
        (&self.pool, &self.bought, self.as_decided) == (&other.pool, &other.bought, other.as_decided)
    }
}

/// A claim with its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The claim.
    pub claim: String,
    /// Its node, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl Machine {
    /// The name people use: the node's, or the claim's before there is a node.
    pub fn name(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.claim)
    }
}

/// Claims that came one step further.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// The pool.
    pub pool: String,
    /// The claims.
    pub machines: Vec<Machine>,
    /// How long after its launch the slowest came so far.
    #[serde(rename = "afterSeconds", serialize_with = "seconds")]
    pub after: Duration,
}

impl Joined {
    fn absorb(&mut self, other: Self) {
        self.machines.extend(other.machines);
        self.after = self.after.max(other.after);
    }
}

/// Pods of one workload that got nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcomed {
    /// The workload.
    pub workload: String,
    /// The pods.
    pub pods: Vec<String>,
    /// The nodes.
    pub nodes: BTreeSet<String>,
    /// How long the one that waited longest had waited.
    #[serde(rename = "waitedSeconds", serialize_with = "seconds")]
    pub waited: Duration,
}

impl Welcomed {
    fn absorb(&mut self, other: Self) {
        self.pods.extend(other.pods);
        self.nodes.extend(other.nodes);
        self.waited = self.waited.max(other.waited);
    }
}

/// Nodes of one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// The pool.
    pub pool: String,
    /// The nodes.
    pub nodes: Vec<String>,
}

/// Nodes of one pool that have to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removing {
    /// The pool.
    pub pool: String,
    /// The nodes.
    pub machines: Vec<Machine>,
    /// How many pods are still on them, daemons left out.
    pub pods: usize,
    /// Why, if that can be seen.
    pub reason: Option<String>,
}

/// Nodes of one pool that are gone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// The pool.
    pub pool: String,
    /// The nodes.
    pub machines: Vec<Machine>,
    /// How long their instances ran, all together.
    #[serde(rename = "nodeHours", serialize_with = "hours")]
    pub used: Duration,
    /// What that cost.
    #[serde(serialize_with = "dollars")]
    pub cost_usd: f64,
}

impl Removed {
    fn absorb(&mut self, other: Self) {
        self.machines.extend(other.machines);
        self.used += other.used;
        self.cost_usd += other.cost_usd;
    }
}

/// What the controller warned people of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warned {
    /// The reason, as in `kubectl get events`.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// The objects it is about.
    pub about: Vec<ObjectName>,
}

/// What no object shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Announced {
    /// The event's name.
    #[serde(skip)]
    pub event: &'static str,
    /// What people read.
    pub message: String,
    /// Commands to try.
    #[serde(rename = "try", skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Further fields, for programs.
    #[serde(flatten)]
    pub fields: BTreeMap<&'static str, String>,
}

/// Seconds with milliseconds, which is as exact as the clock of a world needs to be told.
pub(crate) fn to_seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// Hours to the fourth digit, about a third of a second.
pub(crate) fn to_hours(duration: Duration) -> f64 {
    (to_seconds(duration) / 3600.0 * 10_000.0).round() / 10_000.0
}

/// Dollars to the millionth, as prices are listed.
pub(crate) fn to_dollars(dollars: f64) -> f64 {
    (dollars * 1e6).round() / 1e6
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(to_seconds(*duration))
}

fn hours<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(to_hours(*duration))
}

fn dollars<S: Serializer>(dollars: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(to_dollars(*dollars))
}
