//! Clusters and plans as text, for every test that wants to say one in a few lines.
//!
//! One line per object, `#` begins a comment. Short keys stand for well-known labels: `zone`, `arch`, `os`, `type`,
//! `capacity`, `pool`, `host`, `reservation`. A requirement is `key:Operator:value|value`; in pools one of the values may
//! be `min=2`. Pods carry the label `app` with their name unless they say otherwise, and rules between pods speak of the
//! pod's own `app` unless they say otherwise.
//!
//! ```text
//! type    m.large cpu=2 mem=8Gi arch=arm64 overhead.cpu=100m label=family=m attach=ebs:2
//!         .. and offerings: a:0.10  spot:b:0.03  !c:0.10 (not for sale)  reserved:a:0.01:cr-1*2 (id and count left)
//! pool    default weight=10 limit.cpu=8 used.cpu=2 require=type:Exists:min=2 taint=gpu=yes:NoSchedule label=team=a
//! node    n1 pool=default cpu=4 used.cpu=2 daemons.cpu=100m label=zone=a port=80 attach=ebs:2 attached=ebs:vol-1
//! joining n2 ..                                             (a node that is not usable yet)
//! going   n3 ..                                             (a node that is on its way out)
//! claim   c1 .. require=zone:In:a|b                         (a claim without a node)
//! daemon  logs cpu=100m select=team=a tolerate=gpu port=9100
//! namespace other team=a                                    (its labels)
//! on      n1: db*3 app=db away=host                         (pods that run there; their room is the node's `used`)
//! seat    c1: web-0 web-1                                   (where an earlier plan put pods that still wait)
//! pod     web*3 cpu=1 priority=5 created=7 select=zone=a affinity=arch:In:arm64 or=arch:In:amd64 prefer=50:zone:In:b
//!         .. ns=other app=web label=tier=front tolerate=gpu headroom rule=claim
//!         .. spread=zone/1  spread=host/2?  (the latter soft), with /min=3 /taints /anywhere /of=app=web behind it
//!         .. near=zone  near=zone:app=db  away=host:app=web  away=50:host:app=web (soft) with @ns @* @?team=a behind it
//!         .. port=80  port=UDP/10.0.0.1/80  volume=zone:a|b (each such word is an alternative)  attach=ebs:vol-1
//! options preferences=ignore min-values=best-effort reservations=fallback
//! show    requests requirements bound sequence places       (say more about the plan)
//! ```

mod machines;
mod places;
mod pods;
mod render;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    BoundPods, Daemon, InstanceType, Labels, NodeName, PendingPod, Place, PlaceId, PodKey, Pool, Revision, Snapshot,
    Stage, Text, Vocabulary,
};

use words::Words;

/// The label that tells one capacity reservation from another.
pub(crate) const RESERVATION: &str = "example.com/reservation-id";

/// A parsed scenario.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// The cluster.
    pub(crate) snapshot: Snapshot,
    /// What the `options` lines say, by name.
    pub(crate) options: BTreeMap<String, String>,
    show: BTreeSet<String>,
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    types: Vec<Arc<InstanceType>>,
    pools: Vec<Pool>,
    places: Vec<Arc<Place>>,
    pending: Vec<PendingPod>,
    seats: BTreeMap<PodKey, PlaceId>,
    bound: BoundPods,
    namespaces: BTreeMap<Text, Labels>,
    daemons: Vec<Arc<Daemon>>,
    options: BTreeMap<String, String>,
    show: BTreeSet<String>,
}

impl Scenario {
    /// Reads a scenario; a word it does not know is a mistake in the test.
    pub(crate) fn parse(text: &str) -> Self {
        let lines =
            text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
        let mut reader = Reader::default();
        lines.for_each(|line| reader.line(line));
        let Reader { types, pools, places, pending, seats, bound, namespaces, daemons, options, show } = reader;
        let types: Arc<[Arc<InstanceType>]> = types.into();
        let pools = pools.into_iter().map(|pool| Arc::new(Pool { types: Arc::clone(&types), ..pool })).collect();
        let vocabulary = Arc::new(Vocabulary::core().with_reservation_label(RESERVATION));
        let namespaces = Arc::new(namespaces);
        let revision = Revision(1);
        let snapshot = Snapshot { revision, vocabulary, pools, places, pending, seats, bound, namespaces, daemons };
        Self { snapshot, options, show }
    }
}

impl Reader {
    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let (kind, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let words = Words { line, words: words.collect() };
        match kind {
            "type" => self.types.push(machines::instance_type(name, &words)),
            "pool" => self.pools.push(machines::pool(name, &words)),
            "node" => self.places.push(Arc::new(places::existing(name, Stage::Ready, &words))),
            "joining" => self.places.push(Arc::new(places::existing(name, Stage::Joining, &words))),
            "going" => self.places.push(Arc::new(places::existing(name, Stage::Going, &words))),
            "claim" => self.places.push(Arc::new(places::existing(name, Stage::Promised, &words))),
            "daemon" => {
                let class = Arc::new(pods::pod(name, &words).class);
                self.daemons.push(Arc::new(Daemon { name: Text::from(name), class }));
            }
            "namespace" => {
                let labels = words.pairs("a namespace has labels");
                let labels = labels.into_iter().map(|(key, value)| (Text::from(key), Text::from(value))).collect();
                self.namespaces.insert(Text::from(name), labels);
            }
            "on" => self.running(name, &words),
            "seat" => self.seat(name, &words),
            "pod" => self.pending.extend(pods::group(name, &words)),
            "options" => {
                let all = Words { line, words: [name].into_iter().chain(words.words).collect() };
                let pairs = all.pairs("an option is name=value");
                self.options.extend(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())));
            }
            "show" => {
                let known = ["requests", "requirements", "bound", "sequence", "places"];
                for word in [name].into_iter().chain(words.words.iter().copied()) {
                    let shown = known.contains(&word).then(|| self.show.insert(word.to_owned()));
                    shown.unwrap_or_else(|| {
                        words.unknown(word, "show requests, requirements, bound, sequence or places")
                    });
                }
            }
            _ => words.unknown(
                kind,
                "a line begins with type, pool, node, joining, going, claim, daemon, namespace, on, seat, pod, options or show",
            ),
        }
    }

    /// `seat c1: web-0 web-1`, after the place
    fn seat(&mut self, place: &str, words: &Words<'_>) {
        let name = place.trim_end_matches(':');
        let named = |place: &&Arc<Place>| match &place.id {
            PlaceId::Claim(own) => own.as_str() == name,
            PlaceId::Node(own) => own.as_str() == name,
        };
        let Some(place) = self.places.iter().find(named) else { words.unknown(name, "seat PLACE: POD ..") };
        let seats = words.words.iter().map(|pod| (PodKey::new("default", *pod), place.id.clone()));
        self.seats.extend(seats);
    }

    /// `on n1: web*3 ..`
    fn running(&mut self, node: &str, words: &Words<'_>) {
        let node = NodeName::new(node.trim_end_matches(':'));
        let Some((name, rest)) = words.words.split_first() else { words.unknown("on", "on NODE: NAME*COUNT ..") };
        let rest = Words { line: words.line, words: rest.to_vec() };
        let (name, count) = words::counted(name);
        let kind = Arc::new(pods::bound_kind(name, &rest));
        self.bound.add_times(&kind, &node, count.unwrap_or(1));
    }
}
