//! Rows of workloads, nodes, events and other resources.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::table::duration;
use crate::table::read::{Subject, field, or_none};

pub(super) fn name_and_creation(object: Subject<'_>) -> Vec<Value> {
    vec![object.name(), object.text("/metadata/creationTimestamp").into()]
}

pub(super) fn name_and_age(object: Subject<'_>) -> Vec<Value> {
    vec![object.name(), object.age()]
}

pub(super) fn node(node: Subject<'_>) -> Vec<Value> {
    let mut status = match node.condition("Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.flag("/spec/unschedulable") == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    let mut kernel = node.text_or("/status/nodeInfo/kernelVersion", "<unknown>").to_owned();
    let architecture = node.text("/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel.push_str(&format!(" ({architecture})"));
    }
    vec![
        node.name(),
        status.into(),
        node_roles(node).into(),
        node.age(),
        node.text("/status/nodeInfo/kubeletVersion").into(),
        node_address(node, "InternalIP").into(),
        node_address(node, "ExternalIP").into(),
        node.text_or("/status/nodeInfo/osImage", "<unknown>").into(),
        kernel.into(),
        node.text_or("/status/nodeInfo/containerRuntimeVersion", "<unknown>").into(),
    ]
}

fn node_roles(node: Subject<'_>) -> String {
    let labels = node.get("/metadata/labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    or_none(roles.into_iter().collect::<Vec<_>>().join(","))
}

fn node_address<'a>(node: Subject<'a>, kind: &str) -> &'a str {
    node.list("/status/addresses")
        .iter()
        .find(|address| field(address, "type") == kind)
        .map_or("<none>", |address| field(address, "address"))
}

pub(super) fn namespace(namespace: Subject<'_>) -> Vec<Value> {
    vec![namespace.name(), namespace.text("/status/phase").into(), namespace.age()]
}

pub(super) fn service(service: Subject<'_>) -> Vec<Value> {
    let ports = service.list("/spec/ports").iter().map(|port| {
        let number = port["port"].as_i64().unwrap_or_default();
        match port["nodePort"].as_i64() {
            Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{}", field(port, "protocol")),
            _ => format!("{number}/{}", field(port, "protocol")),
        }
    });
    vec![
        service.name(),
        service.text("/spec/type").into(),
        service.text_or("/spec/clusterIPs/0", "<none>").into(),
        external_addresses(service).into(),
        or_none(ports.collect::<Vec<_>>().join(",")).into(),
        service.age(),
        service.labels("/spec/selector"),
    ]
}

fn external_addresses(service: Subject<'_>) -> String {
    let fixed = service.list("/spec/externalIPs").iter().filter_map(Value::as_str);
    match service.text("/spec/type") {
        "ClusterIP" | "NodePort" => or_none(fixed.collect::<Vec<_>>().join(",")),
        "LoadBalancer" => {
            let balanced: BTreeSet<&str> = service
                .list("/status/loadBalancer/ingress")
                .iter()
                .map(|point| if field(point, "ip").is_empty() { field(point, "hostname") } else { field(point, "ip") })
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = balanced.into_iter().chain(fixed).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => service.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

pub(super) fn config_map(map: Subject<'_>) -> Vec<Value> {
    vec![map.name(), (map.size("/data") + map.size("/binaryData")).into(), map.age()]
}

pub(super) fn secret(secret: Subject<'_>) -> Vec<Value> {
    vec![secret.name(), secret.text("/type").into(), secret.size("/data").into(), secret.age()]
}

/// Where the two event APIs keep the same facts.
struct EventFields {
    object: &'static str,
    message: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    source: &'static str,
}

pub(super) fn core_event(event: Subject<'_>) -> Vec<Value> {
    let fields = EventFields {
        object: "/involvedObject",
        message: "/message",
        first: "/firstTimestamp",
        last: "/lastTimestamp",
        count: "/count",
        source: "/source",
    };
    event_row(event, &fields, "/reportingComponent")
}

pub(super) fn new_event(event: Subject<'_>) -> Vec<Value> {
    let fields = EventFields {
        object: "/regarding",
        message: "/note",
        first: "/deprecatedFirstTimestamp",
        last: "/deprecatedLastTimestamp",
        count: "/deprecatedCount",
        source: "/deprecatedSource",
    };
    event_row(event, &fields, "/reportingController")
}

fn event_row(event: Subject<'_>, fields: &EventFields, controller: &str) -> Vec<Value> {
    let first = event.time(fields.first).or_else(|| event.time("/eventTime"));
    let last = event.time(fields.last).or(first);
    let series = event.get("/series").is_some();
    let (last, count) = if series {
        (event.time("/series/lastObservedTime"), event.number("/series/count"))
    } else {
        (last, event.number(fields.count).max(1))
    };
    let kind = event.text(&format!("{}/kind", fields.object)).to_lowercase();
    let name = event.text(&format!("{}/name", fields.object));
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let part = |pointer: String, other: &str| match event.text(&pointer) {
        "" => event.text(other).to_owned(),
        text => text.to_owned(),
    };
    let component = part(format!("{}/component", fields.source), controller);
    let instance = part(format!("{}/host", fields.source), "/reportingInstance");
    let source = if instance.is_empty() { component } else { format!("{component}, {instance}") };
    vec![
        duration::since(last, event.now).into(),
        event.text("/type").into(),
        event.text("/reason").into(),
        target.into(),
        event.text(&format!("{}/fieldPath", fields.object)).into(),
        source.into(),
        event.text(fields.message).trim().into(),
        duration::since(first, event.now).into(),
        count.into(),
        event.name(),
    ]
}

pub(super) fn pod_template(template: Subject<'_>) -> Vec<Value> {
    let [names, images] = template.containers("/template");
    vec![template.name(), names, images, template.labels("/template/metadata/labels")]
}

pub(super) fn deployment(deployment: Subject<'_>) -> Vec<Value> {
    let [names, images] = deployment.containers("/spec/template");
    vec![
        deployment.name(),
        format!("{}/{}", deployment.number("/status/readyReplicas"), deployment.number("/spec/replicas")).into(),
        deployment.number("/status/updatedReplicas").into(),
        deployment.number("/status/availableReplicas").into(),
        deployment.age(),
        names,
        images,
        deployment.selector("/spec/selector").into(),
    ]
}

pub(super) fn replica_set(set: Subject<'_>) -> Vec<Value> {
    replicas(set, or_none(set.selector("/spec/selector")).into())
}

pub(super) fn replication_controller(controller: Subject<'_>) -> Vec<Value> {
    replicas(controller, controller.labels("/spec/selector"))
}

fn replicas(set: Subject<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = set.containers("/spec/template");
    vec![
        set.name(),
        set.number("/spec/replicas").into(),
        set.number("/status/replicas").into(),
        set.number("/status/readyReplicas").into(),
        set.age(),
        names,
        images,
        selector,
    ]
}

pub(super) fn daemon_set(set: Subject<'_>) -> Vec<Value> {
    let [names, images] = set.containers("/spec/template");
    vec![
        set.name(),
        set.number("/status/desiredNumberScheduled").into(),
        set.number("/status/currentNumberScheduled").into(),
        set.number("/status/numberReady").into(),
        set.number("/status/updatedNumberScheduled").into(),
        set.number("/status/numberAvailable").into(),
        set.labels("/spec/template/spec/nodeSelector"),
        set.age(),
        names,
        images,
        or_none(set.selector("/spec/selector")).into(),
    ]
}

pub(super) fn stateful_set(set: Subject<'_>) -> Vec<Value> {
    let [names, images] = set.containers("/spec/template");
    let ready = format!("{}/{}", set.number("/status/readyReplicas"), set.number("/spec/replicas"));
    vec![set.name(), ready.into(), set.age(), names, images]
}

pub(super) fn controller_revision(revision: Subject<'_>) -> Vec<Value> {
    let controller = revision
        .list("/metadata/ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == Value::Bool(true))
        .map_or_else(|| "<none>".to_owned(), owner_name);
    vec![revision.name(), controller.into(), revision.number("/revision").into(), revision.age()]
}

/// An owner as `kind.group/name`.
fn owner_name(owner: &Value) -> String {
    let kind = field(owner, "kind").to_lowercase();
    match field(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", field(owner, "name")),
        None => format!("{kind}/{}", field(owner, "name")),
    }
}

pub(super) fn job(job: Subject<'_>) -> Vec<Value> {
    let [names, images] = job.containers("/spec/template");
    let succeeded = job.number("/status/succeeded");
    let completions = match (job.get("/spec/completions"), job.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let took = job
        .time("/status/startTime")
        .map(|start| duration::between(start, job.time("/status/completionTime").unwrap_or(job.now)));
    let deleted = if job.is_deleted() { Some("Terminating") } else { None };
    let holds = |kind, word| job.condition_holds(kind).then_some(word);
    let status = holds("Complete", "Complete")
        .or(holds("Failed", "Failed"))
        .or(deleted)
        .or(holds("Suspended", "Suspended"))
        .or(holds("FailureTarget", "FailureTarget"))
        .or(holds("SuccessCriteriaMet", "SuccessCriteriaMet"))
        .unwrap_or("Running");
    vec![
        job.name(),
        status.into(),
        completions.into(),
        took.unwrap_or_default().into(),
        job.age(),
        names,
        images,
        or_none(job.selector("/spec/selector")).into(),
    ]
}

pub(super) fn cron_job(job: Subject<'_>) -> Vec<Value> {
    let [names, images] = job.containers("/spec/jobTemplate/spec/template");
    let suspended = match job.flag("/spec/suspend") {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = job.time("/status/lastScheduleTime");
    vec![
        job.name(),
        job.text("/spec/schedule").into(),
        job.text_or("/spec/timeZone", "<none>").into(),
        suspended.into(),
        job.list("/status/active").len().into(),
        last.map_or_else(|| "<none>".to_owned(), |last| duration::between(last, job.now)).into(),
        job.age(),
        names,
        images,
        or_none(job.selector("/spec/jobTemplate/spec/selector")).into(),
    ]
}

pub(super) fn pod_disruption_budget(budget: Subject<'_>) -> Vec<Value> {
    let bound = |pointer| match budget.get(pointer) {
        Some(Value::String(percent)) => percent.clone(),
        Some(number) => number.to_string(),
        None => "N/A".to_owned(),
    };
    vec![
        budget.name(),
        bound("/spec/minAvailable").into(),
        bound("/spec/maxUnavailable").into(),
        budget.number("/status/disruptionsAllowed").into(),
        budget.age(),
    ]
}

pub(super) fn lease(lease: Subject<'_>) -> Vec<Value> {
    vec![lease.name(), lease.text("/spec/holderIdentity").into(), lease.age()]
}

/// How many ports or addresses a row shows before it only counts.
const SHOWN_MAX: usize = 3;

pub(super) fn endpoint_slice(slice: Subject<'_>) -> Vec<Value> {
    let ports = slice.list("/ports").iter().map(|port| match port["port"].as_i64() {
        Some(number) => number.to_string(),
        None => port["name"].as_str().unwrap_or("*").to_owned(),
    });
    let addresses = slice.list("/endpoints").iter().flat_map(|endpoint| {
        let addresses = endpoint["addresses"].as_array().into_iter().flatten();
        addresses.filter_map(Value::as_str).map(str::to_owned)
    });
    vec![
        slice.name(),
        slice.text("/addressType").into(),
        first_few(&ports.collect::<Vec<_>>()).into(),
        first_few(&addresses.collect::<Vec<_>>()).into(),
        slice.age(),
    ]
}

fn first_few(all: &[String]) -> String {
    let shown = all[..all.len().min(SHOWN_MAX)].join(",");
    if all.len() > SHOWN_MAX {
        format!("{shown} + {} more...", all.len() - SHOWN_MAX)
    } else if shown.is_empty() {
        "<unset>".to_owned()
    } else {
        shown
    }
}

pub(super) fn priority_class(class: Subject<'_>) -> Vec<Value> {
    vec![
        class.name(),
        class.number("/value").into(),
        class.flag("/globalDefault").unwrap_or_default().into(),
        class.age(),
        class.text("/preemptionPolicy").into(),
    ]
}

pub(super) fn runtime_class(class: Subject<'_>) -> Vec<Value> {
    vec![class.name(), class.text("/handler").into(), class.age()]
}

pub(super) fn role_binding(binding: Subject<'_>) -> Vec<Value> {
    let role = format!("{}/{}", binding.text("/roleRef/kind"), binding.text("/roleRef/name"));
    let subjects = |kind: &str| {
        let named = binding.list("/subjects").iter().filter(|subject| field(subject, "kind") == kind);
        let names = named.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", field(subject, "namespace"), field(subject, "name")),
            _ => field(subject, "name").to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    vec![
        binding.name(),
        role.into(),
        binding.age(),
        subjects("User").into(),
        subjects("Group").into(),
        subjects("ServiceAccount").into(),
    ]
}

pub(super) fn scale(scale: Subject<'_>) -> Vec<Value> {
    vec![scale.name(), scale.number("/spec/replicas").into(), scale.number("/status/replicas").into(), scale.age()]
}
