//! A script: changes go in line by line, questions come in between.
//!
//! ```text
//! type    m cpu=4 mem=8Gi offer=a:0.10 attach=ebs:3          (sold to every pool; `offer=!a:0.10` is sold out)
//! overlays                                                   (from here on they are in use)
//! overlay cheap weight=5 require=zone:In:a price=0.05 adjust=-10% gpu=1
//! pool    default label=team=web require=zone:In:a limit.cpu=8 weight=5 replicas=2 unready going kind=Other group=x
//! class   default
//! claim   c1 pool=default request.cpu=2 require=type:In:m    (promised)
//! claim   c1 pool=default provider=i-1 cpu=4 capacity.cpu=5  (launched) label= taint= startup= going
//! node    n1 provider=i-1 cpu=4 label=initialized=true taint=gpu:NoSchedule going
//! pod     web cpu=1 on=n1 owner=StatefulSet label=app=web select=zone=a protect=true born=5 ready done going new
//! daemon  logs cpu=1                                         (its pods say by=DaemonSet/logs)
//! budget  b select=app=web max=0 spares-unready
//! pvc     data volume=v1 class=fast bound lost going         (pods say volume=data, or ephemeral=data)
//! pv      v1 zone=a host=n1 driver=ebs local going
//! storageclass fast driver=ebs zone=a key=rack immediate
//! csinode n1 limit=ebs:25 limit=nfs
//! attachment a1 on=n1 volume=v1
//! service web select=app=web                                 (also replicaset, statefulset, replicationcontroller)
//! defaults {..}                                              (the scheduler's configuration; comes first)
//! late    2 node n1 ...                                      (version 2 of what is known, whatever came since)
//! ghost   node n1 ...                                        (the incarnation before the present one)
//! gone    pod web
//! listed  pod web db                                         (a full list of a kind: what is not in it is gone)
//! nominate node/n1 20                                        (until second 20)
//! seat claim/c1 web api                                  (where the last plan put pods)
//! keep web                                                   (we nominate it to its seat; pods say nominated=n1)
//! at      15                                                 (the clock)
//! ? wakes | places | pending | bound | faults | daemons | pools | tracked | capacity default | nominated c1 n1
//! ? complete | types | costs | overlays | attached n1 | untried web
//! ```
//!
//! Short keys stand for long labels: `zone`, `pool`, `type`, `registered`, `initialized`, `hostname`; and for the taints
//! `not-ready` and `readiness`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use api::lower::{GroupingKind, UnsupportedVolumes};
use api::scheduler_config::DefaultSpread;
use expect_test::Expect;
use jiff::Timestamp;
use model::{
    ClaimName, InstanceType, NodeName, PendingPod, Place, PlaceId, PodClass, PodVolumes, PoolName, Resources, Snapshot,
    SpreadConstraint,
};
use state::{Cluster, Key, Kind, ManagedKind, OverlayVerdict, Tracked, Wake};

use crate::objects::{Words, instance_type, key, object, vocabulary};

/// Compares the answers to a script's questions with what is expected.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "expect![..] reads better at the call sites without a reference")]
pub(crate) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&Script::run(script).answers);
}

/// A cluster that was told a story.
pub(crate) struct Script {
    pub(crate) cluster: Cluster,
    pub(crate) answers: String,
    types: Vec<Arc<InstanceType>>,
    now: Timestamp,
    version: u64,
    /// How often an object of this kind and name has gone.
    incarnations: BTreeMap<Key, u64>,
    wakes: Vec<Wake>,
}

impl Script {
    /// A cluster that nothing was told about.
    pub(crate) fn new() -> Self {
        Self {
            cluster: empty(),
            answers: String::new(),
            types: Vec::new(),
            now: Timestamp::UNIX_EPOCH,
            // Versions of `late` lines are below this.
            version: 100,
            incarnations: BTreeMap::new(),
            wakes: Vec::new(),
        }
    }

    /// The state at the end of a script.
    pub(crate) fn run(text: &str) -> Self {
        let mut script = Self::new();
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        lines.filter(|line| !line.is_empty()).for_each(|line| script.step(line));
        script
    }

    /// Carries out one line.
    pub(crate) fn step(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["?", ..] => self.answer(&words[1..]),
            ["at", seconds] => self.now = second(seconds),
            ["seat", place, ..] => {
                let seats = words[2..].iter().map(|pod| (model::PodKey::new("shop", *pod), place_id(place)));
                self.cluster.set_seats(seats.collect());
            }
            ["keep", pod] => {
                let pod = Arc::clone(self.cluster.pod(&model::PodKey::new("shop", pod)).unwrap());
                self.cluster.keep_seat(&pod);
            }
            ["nominate", place, until] => self.cluster.nominate(place_id(place), Timestamp::MIN..second(until)),
            ["type", name, ..] => self.types.push(instance_type(name, &Words { line, words: words[2..].to_vec() })),
            ["defaults", ..] => {
                let defaults = DefaultSpread::parse(line.strip_prefix("defaults").unwrap()).unwrap();
                self.cluster = empty().with_default_spread(defaults);
            }
            ["overlays"] => self.cluster = std::mem::replace(&mut self.cluster, empty()).with_overlays(),
            ["gone", kind, name] => self.wakes = self.remove(&key(kind, name)),
            ["listed", kind, ..] => self.list(kind, &words[2..]),
            ["late", version, ..] => self.apply(line, &words[2..], version.parse().unwrap(), 0),
            ["ghost", ..] => self.apply(line, &words[1..], self.version, 1),
            _ => {
                self.version += 1;
                self.apply(line, &words, self.version, 0);
            }
        }
    }

    fn apply(&mut self, line: &str, words: &[&str], version: u64, before: u64) {
        let (kind, name) = (words[0], words[1]);
        let incarnation = self.incarnations.get(&key(kind, name)).copied().unwrap_or(0);
        let uid = format!("{kind}-{name}-{}", incarnation.checked_sub(before).unwrap());
        let words = Words { line, words: words[2..].to_vec() };
        self.wakes = self.cluster.apply(object(kind, name, &words, &uid, version));
        if kind == "pool" && self.cluster.pool(&PoolName::new(name)).is_some() {
            self.cluster.set_types(PoolName::new(name), self.types.clone().into());
        }
    }

    fn remove(&mut self, key: &Key) -> Vec<Wake> {
        *self.incarnations.entry(key.clone()).or_insert(0) += 1;
        self.cluster.remove(key)
    }

    /// From here on the name belongs to another object; nobody saw the old one go.
    pub(crate) fn reincarnate(&mut self, kind: &str, name: &str) {
        *self.incarnations.entry(key(kind, name)).or_insert(0) += 1;
    }

    fn list(&mut self, kind: &str, names: &[&str]) {
        let present: BTreeSet<Key> = names.iter().map(|name| key(kind, name)).collect();
        self.wakes = self.cluster.finish_list(key(kind, "").kind(), &present);
    }

    /// The snapshot as of now; which revision it is does not matter.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        Snapshot { revision: model::Revision(0), ..Snapshot::clone(&self.cluster.snapshot(self.now)) }
    }

    fn faults(&self) -> Vec<String> {
        let faults = |pod: &Arc<api::lower::PodFacts>| {
            let texts: Vec<String> = self.cluster.faults_of(pod).iter().map(ToString::to_string).collect();
            (!texts.is_empty()).then(|| format!("{}: {}", pod.key.name, texts.join("; ")))
        };
        self.cluster.waiting().filter_map(faults).collect()
    }

    fn answer(&mut self, question: &[&str]) {
        let mut lines: Vec<String> = match question {
            ["wakes"] => {
                let wakes: BTreeSet<String> = self.wakes.iter().map(wake).collect();
                vec![wakes.into_iter().collect::<Vec<_>>().join(", ")]
            }
            ["places"] => self.snapshot().places.iter().map(|found| place(found)).collect(),
            ["pending"] => groups(&self.snapshot().pending),
            ["bound"] => self.snapshot().bound.iter().map(bound).collect(),
            ["faults"] => self.faults(),
            ["daemons"] => {
                let one =
                    |daemon: &Arc<model::Daemon>| format!("{}{}", daemon.name, named("asks", &daemon.class.requests));
                self.snapshot().daemons.iter().map(one).collect()
            }
            ["pools"] => self.snapshot().pools.iter().map(|found| pool(found)).collect(),
            ["tracked"] => self.cluster.tracked().map(|found| tracked(&found)).collect(),
            ["capacity", name] => {
                let name = PoolName::new(*name);
                let (claimed, running) = (self.cluster.claimed_capacity(&name), self.cluster.running_capacity(&name));
                vec![format!("claimed: {claimed}"), format!("running: {}", told(&above_zero(&running)))]
            }
            ["nominated", claim, node] => {
                let found = self.cluster.is_nominated(&ClaimName::new(*claim), &NodeName::new(*node), self.now);
                vec![found.to_string()]
            }
            ["types"] => {
                self.snapshot().pools.iter().flat_map(|pool| pool.types.iter().map(|kind| sold(pool, kind))).collect()
            }
            ["costs"] => {
                let cost = |(pool, cost): (&PoolName, &model::Price)| format!("{pool} ${}", cost.dollars());
                self.cluster.costs().iter().map(cost).collect()
            }
            ["overlays"] => {
                let verdict = |(facts, verdict): (&Arc<api::lower::OverlayFacts>, OverlayVerdict)| {
                    let name = &facts.name;
                    format!("{name}: {}{}", verdict.reason().unwrap_or("applied"), named("says", verdict.message()))
                };
                self.cluster.overlay_verdicts().map(verdict).collect()
            }
            ["attached", node] => {
                let one = |found: &Arc<api::lower::AttachmentFacts>| {
                    format!("{}{}", found.name, named("volume", found.volume.as_deref().unwrap_or_default()))
                };
                self.cluster.attachments_on(&NodeName::new(*node)).map(one).collect()
            }
            ["untried", pod] => vec![self.cluster.is_untried(&model::PodKey::new("shop", *pod)).to_string()],
            ["complete"] => vec![self.cluster.is_complete().to_string()],
            _ => panic!("unknown question {question:?}"),
        };
        lines.retain(|line| !line.is_empty());
        writeln!(self.answers, "{}", told(&lines.join("\n"))).unwrap();
    }
}

/// A cluster that serves neither a driver called `odd` nor racks.
fn empty() -> Cluster {
    let managed = ManagedKind { group: "karpenter.kwok.sh".to_owned(), kind: "KWOKNodeClass".to_owned() };
    let (drivers, topology_keys) = (BTreeSet::from(["odd".into()]), BTreeSet::from(["rack".into()]));
    Cluster::new(Arc::new(vocabulary()), managed)
        .with_unsupported_volumes(UnsupportedVolumes { drivers, topology_keys })
}

fn told(answer: &impl ToString) -> String {
    Some(answer.to_string()).filter(|text| !text.is_empty()).unwrap_or_else(|| "nothing".to_owned())
}

fn second(text: &str) -> Timestamp {
    Timestamp::from_second(text.parse().unwrap()).unwrap()
}

fn place_id(text: &str) -> PlaceId {
    match text.split_once('/') {
        Some(("node", name)) => PlaceId::Node(NodeName::new(name)),
        Some(("claim", name)) => PlaceId::Claim(ClaimName::new(name)),
        _ => panic!("`{text}` is no place"),
    }
}

fn wake(wake: &Wake) -> String {
    match wake {
        Wake::Waiting(pod) => format!("waiting {}", pod.name),
        Wake::PodMoved(node) => format!("moved {node}"),
        Wake::PodLeft(node) => format!("left {node}"),
        Wake::Protection(pod) => format!("protection {}", pod.name),
        Wake::Claim(claim) => format!("claim {claim}"),
        Wake::Node(node) => format!("node {node}"),
        Wake::Pool(pool) => format!("pool {pool}"),
        Wake::Overlays => "overlays".to_owned(),
        Wake::Buffer(buffer) => format!("buffer {buffer}"),
        Wake::Headroom(buffer) => format!("headroom {buffer}"),
    }
}

fn named(name: &str, value: impl ToString) -> String {
    let value = value.to_string();
    if value.is_empty() { value } else { format!(" {name}({value})") }
}

fn place(place: &Place) -> String {
    let taints: Vec<String> = place.taints.iter().map(ToString::to_string).collect();
    let pool = place.pool.as_ref().map_or_else(String::new, |pool| format!(" of {pool}"));
    [
        format!("{} {:?}{pool}", place.id, place.stage),
        named("labels", &place.requirements),
        named("taints", taints.join(" ")),
        named("has", &place.allocatable),
        named("used", &place.used),
        named("daemons", &place.used_by_daemons),
        named("ports", place.host_ports.iter().map(|port| port.port.to_string()).collect::<Vec<_>>().join(" ")),
        named("attached", attached(&place.attached)),
        named(
            "attaches",
            place.attach_limits.iter().map(|(driver, limit)| format!("{driver}:{limit}")).collect::<Vec<_>>().join(" "),
        ),
    ]
    .concat()
}

/// Equal pods in one line, the oldest first.
fn groups(pending: &[PendingPod]) -> Vec<String> {
    let mut groups: BTreeMap<(&PodClass, &PodVolumes), Vec<&PendingPod>> = BTreeMap::new();
    for pod in pending {
        groups.entry((&pod.class, &pod.volumes)).or_default().push(pod);
    }
    let line = |((class, volumes), mut pods): ((&PodClass, &PodVolumes), Vec<&PendingPod>)| {
        pods.sort_by_key(|pod| (pod.created, pod.key.clone()));
        let names: Vec<&str> = pods.iter().map(|pod| &*pod.key.name).collect();
        let requirements = class.alternatives.first().map(ToString::to_string).unwrap_or_default();
        let reach: Vec<String> = volumes.alternatives.iter().map(all_labels).collect();
        [
            format!("{}:", names.join(" ")),
            named("asks", &class.requests),
            named("labels", requirements),
            named("spread", class.spread.iter().map(constraint).collect::<Vec<_>>().join("; ")),
            named("soft", class.soft_spread.iter().map(constraint).collect::<Vec<_>>().join("; ")),
            named("volumes", reach.join(" | ")),
            named("attaches", attached(&volumes.attachments)),
        ]
        .concat()
    };
    groups.into_iter().map(line).collect()
}

/// Requirements with those on host names, which people are spared elsewhere.
fn all_labels(requirements: &model::Requirements) -> String {
    requirements.iter().map(|(key, one)| format!("{key} {one}")).collect::<Vec<_>>().join(", ")
}

fn constraint(constraint: &SpreadConstraint) -> String {
    let selected = match &constraint.selector {
        model::Selector::Nothing => "nothing".to_owned(),
        model::Selector::All(all) => {
            all.iter().map(|one| format!("{}={}", one.key, one.values.join("|"))).collect::<Vec<_>>().join(" ")
        }
    };
    format!("{} of {selected}", constraint.topology_key)
}

fn attached(attachments: &BTreeSet<model::Attachment>) -> String {
    attachments.iter().map(|one| format!("{} {}", one.driver, one.handle)).collect::<Vec<_>>().join(", ")
}

fn bound((kind, counts): (&Arc<model::BoundKind>, &BTreeMap<NodeName, u32>)) -> String {
    let labels: Vec<String> = kind.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let counts: Vec<String> = counts.iter().map(|(node, count)| format!("{count} on {node}")).collect();
    let apart = if kind.anti_affinity.is_empty() { "" } else { " apart" };
    format!("{}/{}{apart}: {}", kind.namespace, labels.join(","), counts.join(", "))
}

fn pool(pool: &model::Pool) -> String {
    let types: Vec<&str> = pool.types.iter().map(|kind| kind.name.as_str()).collect();
    [
        format!("{} weight {}", pool.name, pool.weight),
        named("requires", &pool.requirements),
        named("taints", pool.taints.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        named("limits", &pool.limits),
        named("uses", &pool.in_use),
        named("types", types.join(" ")),
    ]
    .concat()
}

fn sold(pool: &model::Pool, kind: &InstanceType) -> String {
    let offering = |offering: &model::Offering| {
        format!(" {}:{}", offering.zone().map_or("", |zone| zone), offering.price.dollars())
    };
    let offerings: String = kind.offerings.iter().map(offering).collect();
    format!("{} {} has({}){offerings}", pool.name, kind.name, kind.allocatable)
}

fn tracked(tracked: &Tracked) -> String {
    let name = |claim: &api::NodeClaim| claim.metadata.name.clone().unwrap_or_default();
    match tracked {
        Tracked::Claimed(claim) => format!("claimed {}", name(claim)),
        Tracked::Joined(claim, node) => format!("joined {} {}", name(claim), node.name),
        Tracked::Foreign(node) => format!("foreign {}", node.name),
    }
}

fn above_zero(amounts: &Resources) -> Resources {
    amounts.iter().filter(|(_, amount)| *amount > 0).map(|(name, amount)| (name.clone(), amount)).collect()
}

/// Every kind by the word that scripts use.
pub(crate) const KINDS: [(&str, Kind); 18] = [
    ("pod", Kind::Pod),
    ("node", Kind::Node),
    ("claim", Kind::Claim),
    ("pool", Kind::Pool),
    ("class", Kind::NodeClass),
    ("daemon", Kind::Daemon),
    ("budget", Kind::Budget),
    ("pvc", Kind::VolumeClaim),
    ("pv", Kind::Volume),
    ("storageclass", Kind::StorageClass),
    ("csinode", Kind::CsiNode),
    ("attachment", Kind::Attachment),
    ("namespace", Kind::Namespace),
    ("overlay", Kind::Overlay),
    ("service", Kind::Grouping(GroupingKind::Service)),
    ("replicationcontroller", Kind::Grouping(GroupingKind::ReplicationController)),
    ("replicaset", Kind::Grouping(GroupingKind::ReplicaSet)),
    ("statefulset", Kind::Grouping(GroupingKind::StatefulSet)),
];
