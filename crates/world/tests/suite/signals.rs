//! What a controller tells: metrics and events over a whole story.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::NodeClaim;
use controllers::metrics::{Kind, Naming, Source, table};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use world::{
    Action, AnyTarget, Call, CallFault, CloudKind, Controller, ControllerSettings, Meddler, Player, Scale, Target,
    World, WorldSettings, run_in_virtual_time, sleep_until,
};

use crate::scrape::{Gathered, sum};

/// Metrics that this story has no reason to move, each with the place that shows it or the feature that it waits for.
const ELSEWHERE: [(&str, &str); 12] = [
    ("karpenter_pods_disruption_initiated_total", "only empty nodes are ended here"),
    ("karpenter_scheduler_queue_depth", "a solve takes no time here: census::tests"),
    ("karpenter_scheduler_unfinished_work_seconds", "a solve takes no time here: census::tests"),
    ("controller_runtime_reconcile_panics_total", "nothing panics"),
    ("karpenter_watch_malformed_objects_total", "e2e: bad_input"),
    ("process_cpu_seconds_total", "process::process_metrics::tests"),
    ("process_resident_memory_bytes", "process::process_metrics::tests"),
    ("process_virtual_memory_bytes", "process::process_metrics::tests"),
    ("process_start_time_seconds", "process::process_metrics::tests"),
    ("process_open_fds", "process::process_metrics::tests"),
    ("process_max_fds", "process::process_metrics::tests"),
    ("go_gc_", "e2e: process"),
];
/// Labels that may be empty: what they name does not exist on this cluster or in this part of the roadmap.
const MAY_BE_EMPTY: [&str; 5] = ["consolidation_policy", "namespace", "region", "windows_build", "phase"];

/// Of every kind of call of the cloud the first fails, the second takes seconds, and the rest goes well.
#[derive(Default)]
struct CloudLearns(Mutex<BTreeMap<String, u32>>);

impl Meddler for CloudLearns {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        let effect = call.effect.to_string();
        if !effect.starts_with("cloud ") {
            return None;
        }
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(effect).or_default();
        *count += 1;
        match count {
            1 => Some(CallFault::Fails),
            2 => Some(CallFault::Late),
            _ => None,
        }
    }
}

/// Writes down what leaves a process.
#[derive(Default)]
struct Seen(Mutex<BTreeSet<String>>);

impl Meddler for Seen {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        self.0.lock().unwrap().insert(call.effect.to_string());
        None
    }
}

fn class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
}

fn pool(budget: &str, finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "default", "finalizers": finalizers},
        "spec": {
            "limits": {"cpu": "100", "memory": "1000Gi"},
            "disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": budget}]},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}],
            }},
        },
    })
}

fn pod_spec(cpu: &str) -> Value {
    json!({"terminationGracePeriodSeconds": 5, "containers": [{
        "name": "main", "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": cpu, "memory": "128Mi"}},
    }]})
}

fn workload(kind: &str, name: &str, cpu: &str, replicas: Option<u32>) -> Value {
    let labels = json!({"app": name});
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod_spec(cpu)}},
    });
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = replicas.into();
    }
    object
}

fn buffer(finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "default", "finalizers": finalizers},
        "spec": {"podTemplateRef": {"name": "spare"}, "replicas": 1},
    })
}

fn lonely_pod(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn objects() -> Vec<Value> {
    let mut unbindable = pod_spec("1");
    unbindable["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]);
    vec![
        class(),
        pool("100%", &["example.com/wait"]),
        workload("DaemonSet", "agent", "100m", None),
        workload("Deployment", "web", "3", Some(3)),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
        }),
        lonely_pod("giant", pod_spec("1000")),
        lonely_pod("unbindable", unbindable),
        json!({
            "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "spare", "namespace": "default"},
            "template": {"spec": pod_spec("1")},
        }),
        buffer(&["example.com/wait"]),
    ]
}

/// A story under way: time goes on second by second, and every second is scraped.
struct Story<'a> {
    world: &'a World,
    controller: &'a Controller,
    gathered: Gathered,
    now: u64,
}

impl Story<'_> {
    async fn until(&mut self, second: u64) {
        while self.now < second {
            self.now += 1;
            // The beginning is over within a second: it is looked at more closely.
            let parts = if self.now <= 3 { 20 } else { 1 };
            for part in (0..parts).rev() {
                let moment = Duration::from_secs(self.now) - Duration::from_millis(50 * part);
                sleep_until(self.world.clock(), moment).await;
                self.gathered.read(&self.controller.metrics());
            }
        }
    }

    /// A node's own condition changes.
    async fn node_says(&mut self, status: &str) {
        let nodes: Api<Node> = Api::all(self.world.client());
        let names = nodes.list(&ListParams::default()).await.unwrap().items;
        let condition = json!({"type": "Cooled", "status": status, "reason": "Fan", "lastTransitionTime": self.time()});
        let patch = json!({"status": {"conditions": [condition]}});
        for node in names {
            let name = node.metadata.name.unwrap();
            nodes.patch_status(&name, &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
        }
    }

    fn time(&self) -> String {
        self.world.clock().timestamp().to_string()
    }
}

fn target(api_version: &str, kind: &str, name: &str, namespace: Option<&str>) -> Action {
    Action::Delete(Target {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: namespace.map(ToOwned::to_owned),
    })
}

/// Nodes come, a node is drained against a budget, the buffer goes, all nodes become empty and go, the pool goes.
async fn play(world: &World, story: &mut Story<'_>) {
    let player = Player::new(world);
    story.until(3).await;
    player.perform(&Action::Apply(objects())).await.unwrap();
    story.until(110).await;
    player.perform(&target("v1", "Pod", "giant", Some("default"))).await.unwrap();
    story.node_says("True").await;
    story.until(115).await;
    story.node_says("False").await;
    story.until(120).await;
    player.perform(&Action::DeleteAny(AnyTarget::Node)).await.unwrap();
    story.until(180).await;
    player.perform(&target("policy/v1", "PodDisruptionBudget", "web", Some("default"))).await.unwrap();
    story.until(300).await;
    let scale = Scale { deployment: "web".to_owned(), namespace: "default".to_owned(), replicas: 0 };
    player.perform(&Action::Scale(scale)).await.unwrap();
    player.perform(&target("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "spare", Some("default"))).await.unwrap();
    story.until(320).await;
    player.perform(&Action::Apply(vec![buffer(&[])])).await.unwrap();
    story.until(500).await;
    player.perform(&target("karpenter.sh/v1", "NodePool", "default", None)).await.unwrap();
    story.until(520).await;
    player.perform(&Action::Apply(vec![pool("100%", &[])])).await.unwrap();
    story.until(540).await;
}

fn naming() -> Naming {
    let kwok = |key: &str, label: &str| (key.to_owned(), label.to_owned());
    Naming {
        node_class: "karpenter_kwok_sh_kwoknodeclass".to_owned(),
        well_known: vec![kwok("topology.kubernetes.io/zone", "zone")],
    }
}

/// What is wrong with what was told of a metric.
fn faults(gathered: &Gathered) -> Vec<String> {
    let mut faults = Vec::new();
    for row in table() {
        let is_elsewhere = ELSEWHERE.iter().any(|(name, _)| row.name.starts_with(name));
        let is_due = !matches!(row.source, Source::Later { .. }) && !is_elsewhere;
        let Some(told) = gathered.metric(row.name) else {
            if is_due {
                faults.push(format!("{}: not told", row.name));
            }
            continue;
        };
        if !is_due {
            faults.push(format!("{}: told, against what is expected", row.name));
        }
        if !told.is_nonzero {
            faults.push(format!("{}: always zero", row.name));
        }
        if gathered.kind(row.name) != Some(&row.kind.to_string()) {
            faults.push(format!("{}: {:?}, not {}", row.name, gathered.kind(row.name), row.kind));
        }
        let wanted: BTreeSet<String> = row.label_names(&naming()).into_iter().collect();
        let missing: Vec<&String> = wanted.iter().filter(|label| !told.labels.contains_key(*label)).collect();
        let is_open = row.labels.contains(&controllers::metrics::WELL_KNOWN);
        let unknown: Vec<&String> = told.labels.keys().filter(|label| !is_open && !wanted.contains(*label)).collect();
        let empty = told.labels.iter().filter(|(label, filled)| !**filled && !MAY_BE_EMPTY.contains(&label.as_str()));
        let empty: Vec<&String> = empty.map(|(label, _)| label).collect();
        if !(missing.is_empty() && unknown.is_empty() && empty.is_empty()) {
            faults.push(format!("{}: missing {missing:?}, unknown {unknown:?}, empty {empty:?}", row.name));
        }
        if let Kind::Histogram(bounds) = row.kind
            && told.bounds.len() != bounds.len() + 1
        {
            faults.push(format!("{}: {} bounds", row.name, told.bounds.len()));
        }
    }
    let known: BTreeSet<&str> = table().map(|row| row.name).collect();
    faults.extend(gathered.names().filter(|name| !known.contains(name.as_str())).map(|name| format!("{name}: no row")));
    faults
}

/// OBS-01, OBS-03, OBS-04, OBS-06, MET-01, CP-07: after a story that gives each a reason, every metric of the table has
/// been told with its type, with every label filled and a value other than zero; and nothing else has.
#[test]
fn every_metric_is_told() {
    let found = run_in_virtual_time(11, async {
        let world = World::start(WorldSettings::new(11, CloudKind::Kwok));
        let settings =
            ControllerSettings { meddler: Some(Arc::new(CloudLearns::default())), ..ControllerSettings::default() };
        let settings = settings.with("FEATURE_GATES", "CapacityBuffer=true,PodDeletionCostManagement=true");
        let controller = world.start_controller("alpha", &settings).unwrap();
        let mut story = Story { world: &world, controller: &controller, gathered: Gathered::default(), now: 0 };
        play(&world, &mut story).await;
        Player::new(&world).perform(&Action::Apply(vec![pool("100%", &[])])).await.unwrap();
        story.until(560).await;
        controller.kill();
        let observer = ControllerSettings::default().with("OBSERVE", "true");
        let watcher = world.start_controller("watcher", &observer).unwrap();
        let late = workload("Deployment", "late", "3", Some(2));
        Player::new(&world).perform(&Action::Apply(vec![late])).await.unwrap();
        let mut story = Story { controller: &watcher, ..story };
        story.until(620).await;
        faults(&story.gathered)
    })
    .unwrap();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Metrics in whose names these words stand describe single pods, nodes or pools.
const OF_SINGLE_OBJECTS: [&str; 15] = [
    "karpenter_cluster_utilization_percent",
    "karpenter_nodes_allocatable",
    "karpenter_nodes_current_lifetime_seconds",
    "karpenter_nodes_system_overhead",
    "karpenter_nodes_total_",
    "karpenter_nodepools_cost_total",
    "karpenter_nodepools_limit",
    "karpenter_nodepools_usage",
    "karpenter_pods_bound_duration_seconds",
    "karpenter_pods_provisioning_",
    "karpenter_pods_startup_duration_seconds",
    "karpenter_pods_state",
    "karpenter_pods_unbound_time_seconds",
    "karpenter_pods_unstarted_time_seconds",
    "operator_",
];

/// OBS-05: with the flag, neither pods, nodes and pools nor conditions are told of one by one; everything else is told.
#[test]
fn observability_of_the_state_can_be_reduced() {
    let (full, reduced) = (told("false"), told("true"));
    let names = |scrape: &str| -> BTreeSet<String> {
        let described = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        described.map(ToOwned::to_owned).collect()
    };
    let is_single = |name: &&String| OF_SINGLE_OBJECTS.iter().any(|prefix| name.starts_with(prefix));
    let (all, left) = (names(&full.scrape), names(&reduced.scrape));
    for prefix in OF_SINGLE_OBJECTS {
        assert!(all.iter().any(|name| name.starts_with(prefix)), "{prefix}");
    }
    let expected: BTreeSet<String> = all.iter().filter(|name| !is_single(name)).cloned().collect();
    assert_eq!(left, expected);
    let transitions = |events: &[String]| events.iter().filter(|event| event.contains("transitioned")).count();
    assert!(transitions(&full.events) > 0 && transitions(&reduced.events) == 0);
    // What a life came to is told at its end, and of the pool.
    for metric in ["karpenter_nodes_lifetime_duration_seconds", "karpenter_nodeclaims_termination_duration_seconds"] {
        let ends = |scrape: &str| sum(scrape, &format!("{metric}_count"), &[("nodepool", "default")]);
        assert_eq!((ends(&full.last_scrape), ends(&reduced.last_scrape)), (1.0, 1.0), "{metric}");
    }
}

/// OBS-10, OBS-11: condition transitions and the end of finalizers are events of the object, in the reference's words and
/// from the reference's source.
#[test]
fn transitions_and_finalizers_are_events() {
    let Told { events, .. } = told("false");
    for expected in [
        "NodeClaim Normal Launched Status condition transitioned, Type: Launched, Status: Unknown -> True, Reason: Launched",
        "NodeClaim Normal Ready Status condition transitioned, Type: Ready, Status: Unknown -> True, Reason: Ready",
        "NodePool Normal Ready Status condition transitioned, Type: Ready, Status: Unknown -> True, Reason: Ready",
        "NodeClaim Normal Finalized Finalized karpenter.sh/termination",
        "Node Normal Finalized Finalized karpenter.sh/termination",
    ] {
        let expected = format!("karpenter: {expected}");
        assert!(events.contains(&expected), "{expected}\n{}", events.join("\n"));
    }
}

/// What was told of a node that came and went.
struct Told {
    events: Vec<String>,
    /// The last before it went.
    scrape: String,
    /// After it had gone.
    last_scrape: String,
}

/// A node comes and goes.
fn told(reduced: &'static str) -> Told {
    run_in_virtual_time(12, async move {
        let world = World::start(WorldSettings::new(12, CloudKind::Kwok));
        let settings = ControllerSettings::default()
            .with("DISABLE_LEADER_ELECTION", "true")
            .with("DISABLE_CLUSTER_STATE_OBSERVABILITY", reduced);
        let controller = world.start_controller("alpha", &settings).unwrap();
        let player = Player::new(&world);
        let giant = lonely_pod("giant", pod_spec("1000"));
        let objects = vec![class(), pool("100%", &[]), workload("Deployment", "web", "3", Some(1)), giant];
        player.perform(&Action::Apply(objects)).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(100)).await;
        let scrape = controller.metrics();
        let scale = Scale { deployment: "web".to_owned(), namespace: "default".to_owned(), replicas: 0 };
        player.perform(&Action::Scale(scale)).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(300)).await;
        let events: Api<Event> = Api::all(world.client());
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let text = |event: Event| {
            let Event { involved_object, type_, reason, message, source, .. } = event;
            let source = source.and_then(|source| source.component).unwrap_or_default();
            let parts = [involved_object.kind, type_, reason, message];
            format!("{source}: {}", parts.map(Option::unwrap_or_default).join(" "))
        };
        Told { events: events.into_iter().map(text).collect(), scrape, last_scrape: controller.metrics() }
    })
    .unwrap()
}

/// CFG-08: without an election nobody asks for a Lease, and the work is done; with one it is done by who holds it.
#[test]
fn leader_election_can_be_disabled() {
    for disabled in ["true", "false"] {
        let (seen, scrape) = run_in_virtual_time(15, async move {
            let world = World::start(WorldSettings::new(15, CloudKind::Kwok));
            let seen = Arc::new(Seen::default());
            let settings = ControllerSettings {
                meddler: Some(Arc::clone(&seen) as Arc<dyn Meddler>),
                ..ControllerSettings::default()
            };
            let settings = settings.with("DISABLE_LEADER_ELECTION", disabled);
            let controller = world.start_controller("alpha", &settings).unwrap();
            let objects = vec![class(), pool("100%", &[]), workload("Deployment", "web", "3", Some(1))];
            Player::new(&world).perform(&Action::Apply(objects)).await.unwrap();
            sleep_until(world.clock(), Duration::from_secs(60)).await;
            let effects = seen.0.lock().unwrap().clone();
            (effects, controller.metrics())
        })
        .unwrap();
        let asked = seen.iter().any(|effect| effect.ends_with("leases"));
        assert_eq!(
            (asked, scrape.contains("leader_election_master_status")),
            (disabled == "false", disabled == "false")
        );
        assert_eq!(sum(&scrape, "karpenter_nodeclaims_created_total", &[("nodepool", "default")]), 1.0, "{disabled}");
    }
}

/// One pod on one node after a minute, and what the controller told then.
fn scrape_with(settings: ControllerSettings) -> String {
    run_in_virtual_time(16, async move {
        let world = World::start(WorldSettings::new(16, CloudKind::Kwok));
        let settings = settings.with("DISABLE_LEADER_ELECTION", "true");
        let controller = world.start_controller("alpha", &settings).unwrap();
        let objects = vec![class(), pool("100%", &[]), workload("Deployment", "web", "3", Some(1))];
        Player::new(&world).perform(&Action::Apply(objects)).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(60)).await;
        controller.metrics()
    })
    .unwrap()
}

/// CFG-06: how much is done at once follows the processor time that the container asked for.
#[test]
fn passes_at_once_grow_with_cores() {
    for (millicores, passes) in [("1000", 128.0), ("-1", 128.0), ("30500", 583.0), ("60000", 1024.0)] {
        let scrape = scrape_with(ControllerSettings::default().with("CPU_REQUESTS", millicores));
        let most = |controller: &str| {
            sum(&scrape, "controller_runtime_max_concurrent_reconciles", &[("controller", controller)])
        };
        let expected = (passes, 4.0 * passes);
        assert_eq!((most("provisioner"), most("nodeclaim.lifecycle")), expected, "{millicores}");
    }
}

/// CFG-07: a process that holds more than its soft limit leaves the series of single pods out, and nothing else.
#[test]
fn pods_are_left_out_where_memory_is_scarce() {
    for (limit, is_told) in [("1000000", false), ("1000000000000000", true), ("-1", true)] {
        let scrape = scrape_with(ControllerSettings::default().with("MEMORY_LIMIT", limit));
        assert_eq!(scrape.contains("karpenter_pods_state{"), is_told, "{limit}");
        assert!(scrape.contains("karpenter_nodes_allocatable{"), "{limit}");
    }
}

/// A process that observes sends nothing but reads, not even of the Lease; it tells what it would have done: once.
#[test]
fn an_observer_writes_nothing() {
    let (seen, scrape, claims) = run_in_virtual_time(13, async {
        let world = World::start(WorldSettings::new(13, CloudKind::Kwok));
        let acting = world.start_controller("alpha", &ControllerSettings::default()).unwrap();
        let player = Player::new(&world);
        let objects = vec![class(), pool("0", &[]), workload("Deployment", "web", "3", Some(2))];
        player.perform(&Action::Apply(objects)).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(100)).await;
        let scale = |replicas| Scale { deployment: "web".to_owned(), namespace: "default".to_owned(), replicas };
        player.perform(&Action::Scale(scale(1))).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(200)).await;
        acting.kill();
        let seen = Arc::new(Seen::default());
        let settings = ControllerSettings {
            meddler: Some(Arc::clone(&seen) as Arc<dyn Meddler>),
            ..ControllerSettings::default()
        };
        let observer = world.start_controller("watcher", &settings.with("OBSERVE", "true")).unwrap();
        player.perform(&Action::Apply(vec![pool("100%", &[])])).await.unwrap();
        player.perform(&Action::Apply(vec![workload("Deployment", "more", "3", Some(3))])).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(400)).await;
        let claims: Api<NodeClaim> = Api::all(world.client());
        let claims = claims.list(&ListParams::default()).await.unwrap().items.len();
        let effects = seen.0.lock().unwrap().clone();
        (effects, observer.metrics(), claims)
    })
    .unwrap();
    assert_eq!(claims, 2, "nothing came and nothing went");
    let writes: Vec<&String> = seen.iter().filter(|effect| world::effect::WRITES.contains(&effect.as_str())).collect();
    assert!(writes.is_empty() && seen.contains("watch pods"), "{writes:?}");
    let hands = ["cloud launch", "cloud terminate"];
    assert!(!seen.iter().any(|effect| hands.contains(&effect.as_str())));
    let decided = |decision: &str| {
        sum(&scrape, "karpenter_observe_decisions_total", &[("decision", decision), ("nodepool", "default")])
    };
    // Of the two nodes one is empty and takes one of the three pods.
    assert_eq!((decided("create"), decided("delete")), (2.0, 0.0), "{scrape}");
    assert!(sum(&scrape, "karpenter_observe_refused_writes_total", &[("resource", "nodeclaims")]) >= 2.0);
}
