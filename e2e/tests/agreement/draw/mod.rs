//! Small clusters made up by chance, as the objects that people write: the same for the same seed everywhere.
//!
//! Every seed has some flavours and not others, so that a failure stays readable.

mod machines;
mod pods;
mod rules;
mod sizes;
mod storage;

use std::sync::Arc;

use api::NodePool;
use fastrand::Rng;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use model::InstanceType;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use machines::{CLASS_GROUP, CLASS_KIND, is_going};
pub(crate) use storage::{DRIVER, csi_node};

/// The label that keeps clusters apart, with the cluster's name.
pub(crate) const FENCE: &str = "agreement";

/// The one runtime class; its pods take more than their containers ask for.
pub(crate) const RUNTIME_CLASS: &str = "agreement";

/// The priorities that made-up pods have, apart from none.
pub(crate) const PRIORITIES: [i32; 2] = [5, -1];

/// Few enough that every plan for those left over can be tried.
const PODS_MAX: usize = 10;

/// What happens to the waiting pods of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// They come one after the other, where they were planned. No constraint heeds taints, because a cordon is one.
    Steered,
    /// They come all at once, wherever they like. No pool has limits: what it may not add, no second round can mend.
    LeftAlone,
}

/// A cluster before anything is planned.
pub(crate) struct Draft {
    /// Its name: that of its namespace, the beginning of its other names, and the value of [`FENCE`].
    pub(crate) name: String,
    types_text: String,
    pub(crate) types: Arc<[Arc<InstanceType>]>,
    pub(crate) pools: Vec<NodePool>,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) storage_classes: Vec<StorageClass>,
    pub(crate) volumes: Vec<PersistentVolume>,
    pub(crate) claims: Vec<PersistentVolumeClaim>,
    pub(crate) daemons: Vec<DaemonSet>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) csi_nodes: Vec<CSINode>,
    pub(crate) running: Vec<Pod>,
    pub(crate) waiting: Vec<Pod>,
}

impl Draft {
    /// The cluster of a seed.
    pub(crate) fn new(seed: u64, name: &str, phase: Phase) -> Self {
        let mut rng = Rng::with_seed(seed);
        let flavours = Flavours::drawn(seed, &mut rng);
        let mut artist = Artist { name: name.to_owned(), phase, flavours, rng };
        let (types_text, types) = artist.types(seed);
        let pools = artist.pools();
        let namespaces = artist.namespaces();
        let (nodes, csi_nodes) = artist.nodes();
        let running = nodes.iter().flat_map(|node| artist.running(node)).collect();
        let daemons = artist.daemons();
        let storage_classes = artist.storage_classes();
        let (waiting, claims, volumes) = artist.waiting();
        Self {
            name: name.to_owned(),
            types_text,
            types,
            pools,
            namespaces,
            storage_classes,
            volumes,
            claims,
            daemons,
            nodes,
            csi_nodes,
            running,
            waiting,
        }
    }

    /// The cluster as text: one line for every object.
    pub(crate) fn shown(&self) -> String {
        let mut lines = vec![self.types_text.clone()];
        show(&mut lines, "pool", &self.pools);
        show(&mut lines, "namespace", &self.namespaces);
        show(&mut lines, "storage class", &self.storage_classes);
        show(&mut lines, "volume", &self.volumes);
        show(&mut lines, "claim", &self.claims);
        show(&mut lines, "daemon", &self.daemons);
        show(&mut lines, "node", &self.nodes);
        show(&mut lines, "csi node", &self.csi_nodes);
        show(&mut lines, "running", &self.running);
        show(&mut lines, "waiting", &self.waiting);
        lines.join("\n")
    }
}

fn show<K: Serialize>(lines: &mut Vec<String>, kind: &str, objects: &[K]) {
    let line = |object: &K| {
        let written = serde_json::to_value(object).unwrap_or_default();
        let part = |key: &str| written.get(key).map(|part| format!(" {part}")).unwrap_or_default();
        ["metadata", "spec", "status", "allowedTopologies"].map(part).concat()
    };
    lines.extend(objects.iter().map(|object| format!("{kind}{}", line(object))));
}

/// What occurs in a cluster.
#[derive(Clone, Copy, Debug)]
struct Flavours {
    volumes: bool,
    daemons: bool,
    /// Soft rules.
    wishes: bool,
    /// The finer points of spreading: policies, `minDomains`, `matchLabelKeys`, a label of its own to spread over.
    counting: bool,
    /// Rules across namespaces.
    namespaces: bool,
    ports: bool,
    priorities: bool,
    /// A node that is on its way out, with pods that stay to the end.
    going: bool,
    /// Init containers, sidecars, overhead, pod-level resources.
    sizes: bool,
}

impl Flavours {
    fn drawn(seed: u64, rng: &mut Rng) -> Self {
        let mut likely = |percent: u8| rng.u8(..100) < percent;
        Self {
            volumes: likely(30),
            daemons: likely(30),
            wishes: likely(35),
            counting: likely(30),
            namespaces: likely(25),
            ports: likely(20),
            priorities: likely(30),
            sizes: likely(30),
            // By a draw of its own, as whatever is added later: seeds that do without stay what they are.
            going: Rng::with_seed(!seed).u8(..100) < 25,
        }
    }
}

/// Draws the objects of one cluster.
struct Artist {
    name: String,
    phase: Phase,
    flavours: Flavours,
    rng: Rng,
}

impl Artist {
    fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.rng.usize(..among.len())]
    }

    /// True so many times in a hundred.
    fn percent(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    /// One of several, so many times in a hundred.
    fn perhaps<'a, T>(&mut self, percent: u8, among: &'a [T]) -> Option<&'a T> {
        let wanted = self.percent(percent);
        wanted.then(|| self.pick(among))
    }

    /// A label that only nodes of this cluster have, so that rules that look at all nodes do not see other clusters.
    fn rack_label(&self) -> String {
        format!("{}.example.com/rack", self.name)
    }

    /// The second namespace, if rules reach across namespaces.
    fn other_namespace(&self) -> String {
        format!("{}-other", self.name)
    }

    /// Nobody's rules look into this one.
    fn system_namespace(&self) -> String {
        format!("{}-system", self.name)
    }

    fn namespaces(&self) -> Vec<Namespace> {
        let one = |name: &str, team: &str| {
            read(json!({"metadata": {"name": name, "labels": {FENCE: self.name, "team": team}}}))
        };
        let mut all = vec![one(&self.name, "x")];
        if self.flavours.namespaces {
            all.push(one(&self.other_namespace(), "y"));
        }
        if self.flavours.daemons {
            all.push(one(&self.system_namespace(), "z"));
        }
        all
    }
}

/// The name of a priority's class.
pub(crate) fn priority_class(priority: i32) -> String {
    if priority < 0 { format!("minus-{}", -i64::from(priority)) } else { format!("plus-{priority}") }
}

/// An object from its written form.
pub(crate) fn read<K: DeserializeOwned>(written: Value) -> K {
    serde_json::from_value(written).expect("made-up objects are well-formed")
}
