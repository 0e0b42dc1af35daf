//! From a buffer and what it refers to, to room and status.

use api::lower::{PodTemplateFacts, WorkloadFacts};
use model::Vocabulary;
use serde_json::{Value, json};
use state::{ManagedKind, Object};

use super::*;

fn buffer(spec: &Value) -> CapacityBuffer {
    serde_json::from_value(json!({"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "shop", "generation": 3}, "spec": spec}))
    .unwrap()
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}})
}

/// PodTemplate `small` of generation 7, and in the same namespace Deployment, StatefulSet and ReplicaSet `web`.
fn cluster(replicas: i32) -> Cluster {
    let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
    let vocabulary = Vocabulary::core();
    let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed).with_buffers();
    let metadata = |name: &str| json!({"name": name, "namespace": "shop", "generation": 7});
    let small = serde_json::from_value(json!({"metadata": metadata("small"), "template": template()})).unwrap();
    let small = PodTemplateFacts::lower(&small, &vocabulary).unwrap();
    cluster.apply(Object::PodTemplate(Arc::new(small)));
    let web = json!({"metadata": metadata("web"),
        "spec": {"replicas": replicas, "selector": {}, "serviceName": "web", "template": template()}});
    let web = [
        WorkloadFacts::deployment(&serde_json::from_value(web.clone()).unwrap(), &vocabulary),
        WorkloadFacts::stateful_set(&serde_json::from_value(web.clone()).unwrap(), &vocabulary),
        WorkloadFacts::replica_set(&serde_json::from_value(web).unwrap(), &vocabulary),
    ];
    web.into_iter().flatten().for_each(|one| drop(cluster.apply(Object::Workload(Arc::new(one)))));
    cluster
}

/// Replicas and what is said of readiness, and the template that is recorded.
fn check(spec: &Value, replicas: i32) -> String {
    let (buffer, cluster) = (buffer(spec), cluster(replicas));
    let found = status(&buffer, &resolve(&buffer, &cluster), Timestamp::UNIX_EPOCH);
    let [condition] = &found.conditions.unwrap()[..] else { panic!("one condition") };
    assert_eq!((condition.type_.as_str(), condition.observed_generation), ("ReadyForProvisioning", Some(3)));
    let template = found.pod_template_ref.zip(found.pod_template_generation);
    let template = template.map_or(String::new(), |(found, generation)| format!(" {}@{generation}", found.name));
    let replicas = found.replicas.map_or(String::new(), |replicas| format!("{replicas}{template} "));
    format!("{replicas}{} {}: {}", condition.status.as_str(), condition.reason, condition.message)
}

fn scaled(more: &Value) -> Value {
    let mut spec = json!({"scalableRef": {"kind": "Deployment", "name": "web"}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// BUF-01, BUF-09: the reasons of readiness; of a PodTemplate the name and generation are recorded.
#[test]
fn buffers_say_whether_they_were_understood() {
    let resolved = "True Resolved: Pod template resolved successfully";
    let table = [
        (json!({"podTemplateRef": {"name": "small"}, "replicas": 2}), format!("2 small@7 {resolved}")),
        (scaled(&json!({"replicas": 2})), format!("2 {resolved}")),
        (
            json!({"scalableRef": {"apiGroup": "", "kind": "StatefulSet", "name": "web"}, "replicas": 2}),
            format!("2 {resolved}"),
        ),
        (
            json!({"scalableRef": {"apiGroup": "apps", "kind": "ReplicaSet", "name": "web"}, "replicas": 2}),
            format!("2 {resolved}"),
        ),
        (json!({"replicas": 2}), "False ResolutionFailed: Neither podTemplateRef nor scalableRef is set".to_owned()),
        (
            json!({"podTemplateRef": {"name": "lost"}, "replicas": 2}),
            "False PodTemplateNotFound: PodTemplate \"lost\" not found".to_owned(),
        ),
        (
            json!({"scalableRef": {"kind": "Deployment", "name": "lost"}}),
            "False ScalableRefNotFound: Deployment.apps \"lost\" not found".to_owned(),
        ),
        (
            json!({"scalableRef": {"kind": "DaemonSet", "name": "web"}}),
            "False ResolutionFailed: unsupported kind \"DaemonSet\"".to_owned(),
        ),
        (
            json!({"scalableRef": {"apiGroup": "batch", "kind": "Job", "name": "web"}}),
            "False ResolutionFailed: unsupported scalableRef API group \"batch\"".to_owned(),
        ),
    ];
    for (spec, expected) in table {
        assert_eq!(check(&spec, 4), expected, "{spec}");
    }
}

/// BUF-02, BUF-03, BUF-04: the larger of number and share, shares rounded up, never beyond the limits, which alone say
/// how many pods of half a CPU and a gibibyte fit.
#[test]
fn replicas_are_counted() {
    let table = [
        (scaled(&json!({})), 4, 0),
        (scaled(&json!({"replicas": 3})), 4, 3),
        (scaled(&json!({"percentage": 50})), 4, 2),
        (scaled(&json!({"percentage": 1})), 4, 1),
        (scaled(&json!({"percentage": 26})), 4, 2),
        (scaled(&json!({"percentage": 0})), 4, 0),
        (scaled(&json!({"percentage": 200})), 4, 8),
        (scaled(&json!({"percentage": 50})), 0, 0),
        (scaled(&json!({"percentage": 50, "replicas": 1})), 4, 2),
        (scaled(&json!({"percentage": 50, "replicas": 5})), 4, 5),
        (scaled(&json!({"percentage": 50, "replicas": 5})), 0, 5),
        (scaled(&json!({"percentage": 100, "limits": {"cpu": "1600m"}})), 4, 3),
        (scaled(&json!({"replicas": 2, "limits": {"cpu": "10"}})), 4, 2),
        (scaled(&json!({"limits": {"cpu": "10", "memory": "2500Mi"}})), 4, 2),
        (scaled(&json!({"limits": {"cpu": "400m"}})), 4, 0),
        (scaled(&json!({"limits": {"cpu": "-1"}})), 4, 0),
        (scaled(&json!({"limits": {"nvidia.com/gpu": "1", "pods": "1"}})), 4, 0),
        (scaled(&json!({"replicas": 2, "limits": {"nvidia.com/gpu": "1", "pods": "1"}})), 4, 2),
        (scaled(&json!({"percentage": 2_147_483_647})), 2_147_483_647, i32::MAX),
        (json!({"podTemplateRef": {"name": "small"}, "limits": {"cpu": "2"}}), 4, 4),
        (json!({"podTemplateRef": {"name": "small"}, "replicas": 1, "percentage": 900}), 4, 1),
    ];
    for (spec, workload, expected) in table {
        let found = resolve(&buffer(&spec), &cluster(workload)).map(|found| found.replicas);
        assert_eq!(found, Ok(expected), "{spec} of {workload}");
    }
}

/// What was found before stays written when it is lost; a buffer that refers to a workload now forgets its template.
#[test]
fn statuses_follow_the_reference() {
    let (cluster, time) = (cluster(4), Timestamp::from_second(9).unwrap());
    let judge = |buffer: &CapacityBuffer| status(buffer, &resolve(buffer, &cluster), time);
    let mut changed = buffer(&json!({"podTemplateRef": {"name": "small"}, "replicas": 2, "provisioningStrategy": "s"}));
    changed.status = Some(judge(&changed));
    assert_eq!(changed.status.as_ref().unwrap().provisioning_strategy.as_deref(), Some("s"));
    assert_eq!(Some(judge(&changed)), changed.status, "nothing changes by itself");
    changed.spec.pod_template_ref = Some(LocalReference { name: "lost".to_owned() });
    changed.status = Some(judge(&changed));
    let found = changed.status.clone().unwrap();
    assert_eq!((found.replicas, found.pod_template_generation), (Some(2), Some(7)));
    changed.spec = buffer(&scaled(&json!({"replicas": 1}))).spec;
    let found = judge(&changed);
    assert_eq!((found.replicas, found.pod_template_generation, found.pod_template_ref), (Some(1), None, None));
}
