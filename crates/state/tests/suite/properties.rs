//! However the state was reached, it is the state of the objects that there are.

use std::collections::BTreeMap;

use model::{NodeName, PodKey, PoolName};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use crate::script::{KINDS, Script};

/// Kind and name of an object, and its line or nothing if it is gone.
type Change = (String, Option<String>);

const AMOUNTS: &[&str] = &["cpu=1", "cpu=2 mem=1Gi", "cpu=1 gpu=1", "mem=2Gi"];
const GOING: &[&str] = &["", "", "", "going"];
const PROVIDERS: &[&str] = &["", "provider=i-1", "provider=i-2", "provider=i-3"];

/// A change of one of `names` objects of a kind, with one word out of each slot.
fn change(
    kind: &'static str,
    names: usize,
    slots: &[&'static [&'static str]],
) -> impl Strategy<Value = Change> + use<> {
    let words: Vec<_> = slots.iter().map(|slot| select(*slot)).collect();
    (0..names, 0..4, words).prop_map(move |(name, fate, words)| {
        let object = format!("{kind} {kind}{name}");
        let line = (fate > 0).then(|| format!("{object} {}", words.join(" ")));
        (object, line)
    })
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let places = &["", "", "on=node0", "on=node1", "on=node2"];
    let owners =
        &["", "", "owner=DaemonSet", "owner=StatefulSet", "by=DaemonSet/daemon0 born=1", "by=ReplicaSet/replicaset0"];
    let pod = change(
        "pod",
        6,
        &[
            AMOUNTS,
            places,
            owners,
            GOING,
            &["", "", "done"],
            &["", "label=app=web"],
            &["", "select=zone=a", "protect=true"],
            &["", "", "volume=pvc0", "volume=pvc0 volume=pvc1", "port=80", "apart=web", "spread=zone"],
        ],
    );
    let labels = &["", "label=registered=true", "label=registered=true label=initialized=true label=zone=a"];
    let node = change("node", 3, &[AMOUNTS, PROVIDERS, labels, GOING, &["", "taint=not-ready:NoSchedule"]]);
    let owned = &["", "pool=pool0", "pool=pool1"];
    let requires = &["", "require=type:In:m", "require=zone:In:a|b"];
    let claim = change("claim", 3, &[AMOUNTS, PROVIDERS, owned, requires, GOING, &["", "request.cpu=1"]]);
    let pool =
        change("pool", 2, &[&["", "unready", "limit.cpu=4"], GOING, &["", "label=team=web"], &["", "", "kind=Other"]]);
    let daemon = change("daemon", 2, &[AMOUNTS]);
    let budget = change("budget", 2, &[&["select=app=web"], &["max=0", "max=1"]]);
    let class = change("class", 2, &[&[""]]);
    let claims =
        change("pvc", 2, &[&["", "volume=pv0", "volume=pv1"], &["", "class=storageclass0"], &["", "bound"], GOING]);
    let volume = change("pv", 2, &[&["", "zone=a", "zone=a zone=b"], &["", "driver=ebs"], GOING]);
    let storage = change("storageclass", 1, &[&["driver=ebs", "driver=nfs"], &["", "zone=b"], &["", "immediate"]]);
    let limits = change("csinode", 3, &[&["limit=ebs:2", "limit=ebs", ""]]);
    let limits = limits.prop_map(|(object, line)| {
        (
            object.replace("csinode csinode", "csinode node"),
            line.map(|line| line.replace("csinode csinode", "csinode node")),
        )
    });
    let attachments = change("attachment", 2, &[&["on=node0", "on=node1"], &["", "volume=pv0"]]);
    let overlay = change(
        "overlay",
        3,
        &[
            &["", "weight=5"],
            &["require=zone:In:a", "require=pool:In:pool0", "require=team:In:web", "require=type:In:m gpu=2"],
            &["price=0.5", "adjust=+10%", ""],
        ],
    );
    let space = change("namespace", 2, &[&["", "label=team=web"]]);
    let service = change("service", 2, &[&["select=app=web", "none"]]);
    let replicas = change("replicaset", 1, &[&["select=app=web", "select=hash=1"]]);
    let workloads = prop_oneof![4 => pod, 1 => daemon, 1 => budget, 1 => space, 1 => service, 1 => replicas];
    let machines = prop_oneof![3 => node, 3 => claim, 1 => pool, 1 => class, 1 => overlay];
    let storage = prop_oneof![claims, volume, storage, limits, attachments];
    vec(prop_oneof![6 => workloads, 6 => machines, 2 => storage], 0..60)
}

/// Everything that anybody can ask.
fn answers(script: &mut Script) -> String {
    let mut text = format!("{:#?}\n", script.snapshot());
    script.answers.clear();
    script.step("? tracked");
    script.step("? overlays");
    script.step("? attached node0");
    script.step("? attached node1");
    text.push_str(&script.answers);
    for pool in ["pool0", "pool1"].map(PoolName::new) {
        text += &format!("{} {}\n", script.cluster.claimed_capacity(&pool), script.cluster.running_capacity(&pool));
    }
    for node in ["node0", "node1", "node2"].map(NodeName::new) {
        text += &format!("{:?}\n", script.cluster.pods_on(&node).map(|pod| pod.key.to_string()).collect::<Vec<_>>());
    }
    let waiting: Vec<&PodKey> = script.cluster.waiting().map(|pod| &pod.key).collect();
    text + &format!("{waiting:?}")
}

fn started() -> Script {
    let defaults = "{podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}";
    let types = "type m cpu=4 mem=8Gi attach=ebs:3 offer=a:1 offer=b:1\ntype g cpu=2 gpu=1 offer=a:2";
    Script::run(&format!("defaults {defaults}\noverlays\n{types}"))
}

fn apply(script: &mut Script, change: &Change) {
    let (object, line) = change;
    script.step(line.as_deref().unwrap_or(&format!("gone {object}")));
}

/// The last line about each object that is still there.
fn survivors(changes: &[Change]) -> BTreeMap<String, String> {
    let mut last = BTreeMap::new();
    for (object, line) in changes {
        match line {
            Some(line) => last.insert(object.clone(), line.clone()),
            None => last.remove(object),
        };
    }
    last
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    /// Any story ends in the same state as telling only how it ended.
    #[test]
    fn the_way_does_not_matter(changes in changes()) {
        let mut lived = started();
        for change in &changes {
            apply(&mut lived, change);
            // What is remembered from one snapshot to the next must not show.
            lived.snapshot();
        }
        let mut told = started();
        survivors(&changes).values().for_each(|line| told.step(line));
        assert_eq!(answers(&mut lived), answers(&mut told));
    }

    /// A relist makes up for every deletion that was missed.
    #[test]
    fn lists_make_up_for_missed_deletions(changes in changes()) {
        let mut deaf = started();
        for (_, line) in &changes {
            line.iter().for_each(|line| deaf.step(line));
        }
        let last = survivors(&changes);
        last.values().for_each(|line| deaf.step(line));
        for (kind, _) in KINDS {
            let own = last.keys().filter_map(|object| object.strip_prefix(kind)?.strip_prefix(' '));
            deaf.step(&format!("listed {kind} {}", own.collect::<Vec<_>>().join(" ")));
        }
        let mut told = started();
        last.values().for_each(|line| told.step(line));
        assert_eq!(answers(&mut deaf), answers(&mut told));
    }

    /// When everything is gone, nothing is left.
    #[test]
    fn nothing_is_left_behind(changes in changes()) {
        let mut script = started();
        changes.iter().for_each(|change| apply(&mut script, change));
        let last = survivors(&changes);
        last.keys().for_each(|object| script.step(&format!("gone {object}")));
        assert_eq!(answers(&mut script), answers(&mut started()));
    }
}
