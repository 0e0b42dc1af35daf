//! What a seed stands for: a cluster, a story, and what goes wrong in it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::effect::{CLOUD_CALLS, Effect, WATCHES, WRITES};
use crate::fault::{Blow, CallFault, Fault, FaultPlan};
use crate::scenario::{Action, AnyTarget, Scale, Scenario, Step};
use crate::world::CloudKind;

/// Faults end here.
pub const HEALED: Duration = Duration::from_secs(40 * 60);
/// Everything that wants to run runs by now: a claim whose machine never joins takes fifteen minutes to be given up,
/// and its successor may have been started before the faults ended.
pub const SETTLED: Duration = Duration::from_secs(85 * 60);
/// Nothing wants to run since [`SETTLED`]; by now nothing of ours is left.
pub const EMPTY: Duration = Duration::from_secs(110 * 60);

/// The names under which controllers run; with two, one stands by.
const PROCESSES: [&str; 2] = ["alpha", "beta"];

/// A drawn run.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The story, without its faults.
    pub scenario: Scenario,
    /// The faults.
    pub plan: FaultPlan,
    /// The controllers.
    pub processes: &'static [&'static str],
    /// How long a controller that ended is away.
    pub pause: Duration,
}

/// Draws everything from a seed.
pub fn draw(seed: u64) -> Drawn {
    let chance = Chance::of(seed, "story");
    let cloud = if seed.is_multiple_of(2) { CloudKind::Aws } else { CloudKind::Kwok };
    let has_standby = chance.percent(40);
    let mut settings = BTreeMap::new();
    if !has_standby {
        settings.insert("DISABLE_LEADER_ELECTION".to_owned(), "true".to_owned());
    }
    let apps: Vec<App> = (0..chance.number(2..=4)).map(|index| App::draw(index, &chance)).collect();
    let mut steps = vec![Step { at: Duration::ZERO, action: Action::Apply(base(cloud, &chance)) }];
    steps.extend(apps.iter().map(|app| Step { at: Duration::from_secs(1), action: Action::Apply(app.objects()) }));
    steps.extend(
        (0..chance.number(4..=9)).map(|_| Step { at: minutes(&chance, 1..=35), action: action(&apps, &chance) }),
    );
    let nothing =
        |app: &App| Action::Scale(Scale { deployment: app.name.clone(), namespace: "default".to_owned(), replicas: 0 });
    steps.extend(apps.iter().map(|app| Step { at: SETTLED, action: nothing(app) }));
    let fixed = fixed_pool(seed, cloud);
    if !fixed.is_empty() {
        settings.insert("FEATURE_GATES".to_owned(), "StaticCapacity=true".to_owned());
    }
    steps.extend(fixed);
    steps.sort_by_key(|step| step.at);
    let scenario =
        Scenario { name: format!("seed {seed}"), cloud, settings, faults: FaultPlan::default(), steps, end: EMPTY };
    Drawn {
        scenario,
        plan: FaultPlan { faults: plan(cloud, has_standby, &chance).into_iter().chain(wrong_clock(seed)).collect() },
        processes: if has_standby { &PROCESSES } else { &PROCESSES[..1] },
        pause: chance.duration(&(Duration::from_millis(500)..=Duration::from_secs(20))),
    }
}

fn minutes(chance: &Chance, range: std::ops::RangeInclusive<u64>) -> Duration {
    chance.duration(&(Duration::from_secs(range.start() * 60)..=Duration::from_secs(range.end() * 60)))
}

/// A Deployment and its budget.
struct App {
    name: String,
    cpu: &'static str,
    memory: &'static str,
    replicas: u32,
    min_available: Option<u32>,
    stays: bool,
}

impl App {
    fn draw(index: u32, chance: &Chance) -> Self {
        let pick = |choices: &[&'static str]| chance.choose(choices).copied().unwrap_or("1");
        Self {
            name: format!("app-{index}"),
            cpu: pick(&["250m", "500m", "1", "2"]),
            memory: pick(&["128Mi", "512Mi", "1Gi", "3Gi"]),
            replicas: chance.number(0..=10),
            min_available: chance.percent(40).then(|| chance.number(1..=3)),
            stays: chance.percent(20),
        }
    }

    fn objects(&self) -> Vec<Value> {
        let labels = json!({"app": self.name});
        let annotations = if self.stays { json!({"karpenter.sh/do-not-disrupt": "true"}) } else { json!({}) };
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": annotations},
                    "spec": {
                        "terminationGracePeriodSeconds": 5,
                        "containers": [{
                            "name": "main", "image": "registry.k8s.io/pause:3.10",
                            "resources": {"requests": {"cpu": self.cpu, "memory": self.memory}},
                        }],
                    },
                },
            },
        });
        let budget = self.min_available.map(|count| {
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": self.name, "namespace": "default"},
                "spec": {"minAvailable": count, "selector": {"matchLabels": labels}},
            })
        });
        [Some(deployment), budget].into_iter().flatten().collect()
    }
}

fn action(apps: &[App], chance: &Chance) -> Action {
    match chance.number(0..=9) {
        0 => Action::DeleteAny(AnyTarget::Node),
        1 => Action::DeleteAny(AnyTarget::Claim),
        _ => {
            let deployment = chance.choose(apps).map(|app| app.name.clone()).unwrap_or_default();
            Action::Scale(Scale { deployment, namespace: "default".to_owned(), replicas: chance.number(0..=14) })
        }
    }
}

/// Class, pools, and perhaps a daemon and a node that is not ours.
fn base(cloud: CloudKind, chance: &Chance) -> Vec<Value> {
    let (class, reference) = class(cloud);
    let mut objects = vec![class, pool("default", cloud, &reference, chance, None)];
    if chance.percent(50) {
        let limits = match chance.number(0..=3) {
            0 => json!({"nodes": chance.number(1..=4).to_string()}),
            1 => json!({"memory": format!("{}Gi", chance.number(8..=64))}),
            _ => json!({"cpu": chance.number(4..=24).to_string()}),
        };
        objects.push(pool("limited", cloud, &reference, chance, Some(limits)));
    }
    if chance.percent(50) {
        objects.push(daemon());
    }
    if chance.percent(70) {
        objects.push(foreign_node(chance.percent(50)));
    }
    objects
}

fn class(cloud: CloudKind) -> (Value, Value) {
    match cloud {
        CloudKind::Kwok => (
            json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}),
            json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}),
        ),
        CloudKind::Aws => (
            json!({
                "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
                "spec": {
                    "role": "karpenter",
                    "amiSelectorTerms": [{"alias": "al2023@latest"}],
                    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "world"}}],
                    "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "world"}}],
                },
            }),
            json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}),
        ),
    }
}

fn pool(name: &str, cloud: CloudKind, class: &Value, chance: &Chance, limits: Option<Value>) -> Value {
    let mut requirements = vec![
        json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}),
        json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}),
    ];
    match cloud {
        CloudKind::Kwok => requirements
            .push(json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["2", "4", "8"]})),
        CloudKind::Aws => {
            requirements.push(
                json!({"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}),
            );
            requirements.push(json!({"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["9"]}));
            if chance.percent(60) {
                requirements.push(
                    json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}),
                );
            }
        }
    }
    // A deadline, because pods that must not be disrupted would otherwise hold a deleted node for ever.
    let spec = json!({"nodeClassRef": class, "requirements": requirements, "terminationGracePeriod": "3m"});
    let after = chance.choose(&["0s", "30s", "2m"]).copied().unwrap_or("30s");
    let nodes = chance.choose(&["1", "50%", "100%"]).copied().unwrap_or("100%");
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "weight": if limits.is_some() { 10 } else { 1 },
            "template": {"spec": spec},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": after, "budgets": [{"nodes": nodes}]},
        },
    });
    if let Some(limits) = limits {
        pool["spec"]["limits"] = limits;
    }
    pool
}

/// Now and then a pool of fixed size that somebody makes larger and smaller. Its chance is its own: the other stories
/// stay what they were before there were such pools.
fn fixed_pool(seed: u64, cloud: CloudKind) -> Vec<Step> {
    let chance = Chance::of(seed, "static pool");
    // The embedded AWS is asked for what a plan lists; a claim that lists nothing is for a real one to choose for.
    if cloud == CloudKind::Aws || !chance.percent(30) {
        return Vec::new();
    }
    let (_, reference) = class(cloud);
    let limits = chance.percent(50).then(|| json!({"nodes": chance.number(1..=4).to_string()}));
    let mut pool = pool("fixed", cloud, &reference, &chance, limits);
    if let Some(spec) = pool["spec"].as_object_mut() {
        spec.remove("weight");
    }
    let listed = json!({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["s-4x-amd64-linux"]});
    pool["spec"]["template"]["spec"]["requirements"] = json!([listed]);
    let mut resized = |at: Duration, replicas: u32| {
        pool["spec"]["replicas"] = json!(replicas);
        Step { at, action: Action::Apply(vec![pool.clone()]) }
    };
    let first = resized(Duration::ZERO, chance.number(0..=3));
    let changes = (0..chance.number(1..=4)).map(|_| resized(minutes(&chance, 1..=35), chance.number(0..=5)));
    let changes: Vec<Step> = changes.collect();
    [first].into_iter().chain(changes).chain([resized(SETTLED, 0)]).collect()
}

fn daemon() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "main", "image": "registry.k8s.io/pause:3.10",
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    }],
                },
            },
        },
    })
}

fn foreign_node(is_tainted: bool) -> Value {
    let taints = if is_tainted { json!([{"key": "example.com/foreign", "effect": "NoSchedule"}]) } else { json!([]) };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "foreign",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": "foreign", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "spec": {"taints": taints},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        },
    })
}

fn plan(cloud: CloudKind, has_standby: bool, chance: &Chance) -> Vec<Fault> {
    let possible = |effect: &&str| match cloud {
        _ if effect.ends_with(" leases") => has_standby,
        CloudKind::Aws => *effect != "create nodes",
        CloudKind::Kwok => true,
    };
    let effects: Vec<&str> = WRITES.into_iter().chain(CLOUD_CALLS).chain(WATCHES).filter(possible).collect();
    let count = chance.number(4..=18);
    (0..count).filter_map(|_| fault(cloud, &effects, chance)).collect()
}

/// Now and then a clock is wrong. Its chance is its own: the other stories stay what they were before clocks were.
fn wrong_clock(seed: u64) -> Option<Fault> {
    let chance = Chance::of(seed, "clocks");
    let blow = *chance.choose(&CLOCKS)?;
    chance.percent(30).then(|| Fault::Blow { at: minutes(&chance, 1..=34), blow })
}

fn fault(cloud: CloudKind, effects: &[&str], chance: &Chance) -> Option<Fault> {
    if chance.percent(match cloud {
        CloudKind::Aws => 35,
        CloudKind::Kwok => 15,
    }) {
        let blow = *chance.choose(&blows(cloud))?;
        return Some(Fault::Blow { at: minutes(chance, 1..=38), blow });
    }
    // Cells of the table are drawn evenly, so that rare effects go wrong as often as common ones.
    let effect = chance.choose(effects)?;
    let faults: Vec<CallFault> = CallFault::ALL.into_iter().filter(|fault| fault.applies_to(effect)).collect();
    let fault = *chance.choose(&faults)?;
    // Some effects happen once or twice in a story, others all the time.
    let occurrence = *chance.choose(&[1, 1, 1, 2, 2, 3, 5, 8])?;
    Some(Fault::Call { effect: Effect::named(effect), occurrence, fault })
}

/// What befalls clocks, on any cloud.
const CLOCKS: [Blow; 2] = [Blow::ClockAhead, Blow::ClockBehind];

/// What can befall the machines of a cloud.
pub fn blows(cloud: CloudKind) -> Vec<Blow> {
    match cloud {
        CloudKind::Aws => Blow::ALL.into_iter().filter(|blow| !CLOCKS.contains(blow)).collect(),
        CloudKind::Kwok => vec![Blow::Kill, Blow::Silence, Blow::Compaction],
    }
}
