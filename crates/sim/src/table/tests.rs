//! Tables as text: headers and cells, wide columns in brackets.

#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::duration::words;
use super::json_path::Path;
use super::{CustomColumn, Printer};

const NOW: &str = "2026-05-01T12:00:00Z";

fn render(printer: &Printer, object: &Value) -> String {
    let cells = printer.cells(object, NOW.parse().unwrap());
    let columns = printer.columns();
    assert_eq!(columns.len(), cells.len());
    let pairs = columns.iter().zip(&cells).map(|(column, cell)| {
        let cell = match cell {
            Value::String(text) => text.clone(),
            other => format!("#{other}"),
        };
        if column.priority == 0 { format!("{}={cell}", column.name) } else { format!("[{}={cell}]", column.name) }
    });
    pairs.collect::<Vec<_>>().join(" | ")
}

fn check(group: &str, resource: &str, mut object: Value, expected: Expect) {
    if object.get("metadata").is_none() {
        object["metadata"] = json!({"name": "x", "creationTimestamp": "2026-05-01T11:55:00Z"});
    }
    expected.assert_eq(&render(&Printer::builtin(group, resource), &object));
}

/// Only ready, status and restarts of a pod.
fn check_pod(spec: Value, status: Value, deleted: bool, expected: Expect) {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
    if deleted {
        pod["metadata"]["deletionTimestamp"] = NOW.into();
    }
    let cells = Printer::builtin("", "pods").cells(&pod, NOW.parse().unwrap());
    let text = |index: usize| cells[index].as_str().unwrap().to_owned();
    expected.assert_eq(&format!("{} {} {}", text(1), text(2), text(3)));
}

#[test]
fn ages() {
    let table = [-5, -1, 0, 59, 119, 120, 123, 599, 600, 10_799, 10_800, 11_040, 28_799, 28_800, 172_799, 172_800]
        .into_iter()
        .chain([190_800, 691_199, 691_200, 63_071_999, 63_072_000, 63_158_400, 252_288_000])
        .map(|seconds| format!("{seconds} {}", words(seconds)))
        .collect::<Vec<_>>()
        .join("\n");
    expect![[r#"
        -5 <invalid>
        -1 0s
        0 0s
        59 59s
        119 119s
        120 2m
        123 2m3s
        599 9m59s
        600 10m
        10799 179m
        10800 3h
        11040 3h4m
        28799 7h59m
        28800 8h
        172799 47h
        172800 2d
        190800 2d5h
        691199 7d23h
        691200 8d
        63071999 729d
        63072000 2y
        63158400 2y1d
        252288000 8y"#]]
    .assert_eq(&table);
}

#[test]
fn pod_status() {
    let one = || json!({"containers": [{"name": "a"}]});
    let running = || json!({"name": "a", "ready": true, "restartCount": 0, "state": {"running": {}}});
    check_pod(one(), json!({"phase": "Pending"}), false, expect!["0/1 Pending 0"]);
    check_pod(
        one(),
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
        false,
        expect!["0/1 SchedulingGated 0"],
    );
    check_pod(
        one(),
        json!({"phase": "Pending", "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
        false,
        expect!["0/1 ContainerCreating 0"],
    );
    check_pod(one(), json!({"phase": "Running", "containerStatuses": [running()]}), false, expect!["1/1 Running 0"]);
    check_pod(one(), json!({"phase": "Running", "containerStatuses": [running()]}), true, expect!["1/1 Terminating 0"]);
    check_pod(one(), json!({"phase": "Running", "reason": "NodeLost"}), true, expect!["0/1 Unknown 0"]);
    check_pod(
        one(),
        json!({"phase": "Running", "containerStatuses": [{"name": "a", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-05-01T11:55:00Z"}}}]}),
        false,
        expect!["0/1 CrashLoopBackOff 3 (5m ago)"],
    );
    check_pod(
        one(),
        json!({"phase": "Succeeded", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}),
        false,
        expect!["0/1 Completed 0"],
    );
    check_pod(
        one(),
        json!({"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 137, "signal": 9}}}]}),
        true,
        expect!["0/1 Signal:9 0"],
    );
    check_pod(one(), json!({"phase": "Failed", "reason": "Evicted"}), false, expect!["0/1 Evicted 0"]);
}

#[test]
fn pod_status_of_several_containers() {
    let two = || json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let done = json!({"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
    let running = json!({"name": "b", "ready": true, "state": {"running": {}}});
    let statuses = json!([done, running]);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    check_pod(two(), json!({"phase": "Running", "containerStatuses": statuses}), false, expect!["1/2 NotReady 0"]);
    check_pod(
        two(),
        json!({"phase": "Running", "containerStatuses": statuses, "conditions": ready}),
        false,
        expect!["1/2 Running 0"],
    );
    let spec = || json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]});
    let waiting = json!({"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}});
    check_pod(
        spec(),
        json!({"phase": "Pending", "initContainerStatuses": [waiting]}),
        false,
        expect!["0/2 Init:0/2 0"],
    );
    let failed = json!({"name": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 2}}});
    check_pod(
        spec(),
        json!({"phase": "Pending", "initContainerStatuses": [failed]}),
        false,
        expect!["0/2 Init:ExitCode:2 2"],
    );
    let over = json!({"name": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 0}}});
    let side_car = json!({"name": "s", "restartCount": 1, "started": true, "ready": true, "state": {"running": {}}});
    check_pod(
        spec(),
        json!({"phase": "Running", "initContainerStatuses": [over, side_car], "containerStatuses": [{"name": "a", "ready": true, "state": {"running": {}}}]}),
        false,
        expect!["2/2 Running 1"],
    );
}

#[test]
fn pods_and_nodes() {
    check(
        "",
        "pods",
        json!({"spec": {"nodeName": "n", "containers": [{}], "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
            "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "b", "status": "True"}]}}),
        expect![
            "Name=x | Ready=0/1 | Status=Running | Restarts=0 | Age=5m | [IP=10.0.0.1] | [Node=n] | [Nominated Node=<none>] | [Readiness Gates=1/2]"
        ],
    );
    check(
        "",
        "nodes",
        json!({}),
        expect![
            "Name=x | Status=Unknown | Roles=<none> | Age=5m | Version= | [Internal-IP=<none>] | [External-IP=<none>] | [OS-Image=<unknown>] | [Kernel-Version=<unknown>] | [Container-Runtime=<unknown>]"
        ],
    );
    check(
        "",
        "nodes",
        json!({"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "b"}},
            "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Linux", "kernelVersion": "6", "architecture": "arm64", "containerRuntimeVersion": "c://1"}}}),
        expect![
            "Name=n | Status=NotReady,SchedulingDisabled | Roles=b,worker | Age=<unknown> | Version=v1.36.3 | [Internal-IP=10.0.0.1] | [External-IP=<none>] | [OS-Image=Linux] | [Kernel-Version=6 (arm64)] | [Container-Runtime=c://1]"
        ],
    );
}

#[test]
fn workloads() {
    let template = json!({"spec": {"nodeSelector": {"b": "2", "a": "1"}, "containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j"}]}});
    let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]});
    let spec = json!({"replicas": 3, "template": template, "selector": selector});
    let status = json!({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1,
        "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 2, "numberAvailable": 1});
    let object = || json!({"spec": spec, "status": status});
    check(
        "apps",
        "deployments",
        object(),
        expect![
            "Name=x | Ready=1/3 | Up-to-date=#2 | Available=#1 | Age=5m | [Containers=c,d] | [Images=i:1,j] | [Selector=a in (x,y),app=web]"
        ],
    );
    check(
        "apps",
        "replicasets",
        object(),
        expect![
            "Name=x | Desired=#3 | Current=#2 | Ready=#1 | Age=5m | [Containers=c,d] | [Images=i:1,j] | [Selector=a in (x,y),app=web]"
        ],
    );
    check(
        "apps",
        "daemonsets",
        object(),
        expect![
            "Name=x | Desired=#5 | Current=#4 | Ready=#3 | Up-to-date=#2 | Available=#1 | Node Selector=a=1,b=2 | Age=5m | [Containers=c,d] | [Images=i:1,j] | [Selector=a in (x,y),app=web]"
        ],
    );
    check("apps", "statefulsets", object(), expect!["Name=x | Ready=1/3 | Age=5m | [Containers=c,d] | [Images=i:1,j]"]);
    check(
        "apps",
        "controllerrevisions",
        json!({"metadata": {"name": "r", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true}]}, "revision": 4}),
        expect!["Name=r | Controller=daemonset.apps/d | Revision=#4 | Age=<unknown>"],
    );
}

#[test]
fn jobs_and_budgets() {
    check(
        "batch",
        "jobs",
        json!({"spec": {"parallelism": 2}}),
        expect![
            "Name=x | Status=Running | Completions=0/1 of 2 | Duration= | Age=5m | [Containers=] | [Images=] | [Selector=<none>]"
        ],
    );
    check(
        "batch",
        "jobs",
        json!({"spec": {"completions": 3}, "status": {"succeeded": 3, "startTime": "2026-05-01T11:55:00Z", "completionTime": "2026-05-01T11:56:00Z",
            "conditions": [{"type": "Complete", "status": "True"}]}}),
        expect![
            "Name=x | Status=Complete | Completions=3/3 | Duration=60s | Age=5m | [Containers=] | [Images=] | [Selector=<none>]"
        ],
    );
    check(
        "batch",
        "cronjobs",
        json!({"spec": {"schedule": "* * * * *", "suspend": false}}),
        expect![
            "Name=x | Schedule=* * * * * | Timezone=<none> | Suspend=False | Active=#0 | Last Schedule=<none> | Age=5m | [Containers=] | [Images=] | [Selector=<none>]"
        ],
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}),
        expect!["Name=x | Min Available=50% | Max Unavailable=N/A | Allowed Disruptions=#1 | Age=5m"],
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({"spec": {"maxUnavailable": 0}}),
        expect!["Name=x | Min Available=N/A | Max Unavailable=0 | Allowed Disruptions=#0 | Age=5m"],
    );
}

#[test]
fn events() {
    check(
        "",
        "events",
        json!({"type": "Normal", "reason": "Scheduled", "message": " text\n", "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
            "source": {"component": "scheduler"}, "firstTimestamp": "2026-05-01T11:00:00Z", "lastTimestamp": "2026-05-01T11:59:00Z", "count": 2}),
        expect![
            "Last Seen=60s | Type=Normal | Reason=Scheduled | Object=pod/p | [Subobject=spec] | [Source=scheduler] | Message=text | [First Seen=60m] | [Count=#2] | [Name=x]"
        ],
    );
    check(
        "events.k8s.io",
        "events",
        json!({"type": "Normal", "reason": "Scheduled", "note": "text", "regarding": {"kind": "Pod"}, "eventTime": "2026-05-01T11:00:00.123456Z",
            "reportingController": "scheduler", "reportingInstance": "s-0", "series": {"count": 7, "lastObservedTime": "2026-05-01T11:59:50.0Z"}}),
        expect![
            "Last Seen=10s | Type=Normal | Reason=Scheduled | Object=pod | [Subobject=] | [Source=scheduler, s-0] | Message=text | [First Seen=59m] | [Count=#7] | [Name=x]"
        ],
    );
}

#[test]
fn others() {
    check("", "namespaces", json!({"status": {"phase": "Active"}}), expect!["Name=x | Status=Active | Age=5m"]);
    check(
        "",
        "services",
        json!({"spec": {"type": "ClusterIP", "clusterIPs": ["None"], "ports": [{"port": 80, "protocol": "TCP"}, {"port": 443, "nodePort": 30000, "protocol": "TCP"}]}}),
        expect![
            "Name=x | Type=ClusterIP | Cluster-IP=None | External-IP=<none> | Port(s)=80/TCP,443:30000/TCP | Age=5m | [Selector=<none>]"
        ],
    );
    check(
        "",
        "services",
        json!({"spec": {"type": "LoadBalancer"}}),
        expect![
            "Name=x | Type=LoadBalancer | Cluster-IP=<none> | External-IP=<pending> | Port(s)=<none> | Age=5m | [Selector=<none>]"
        ],
    );
    check(
        "",
        "configmaps",
        json!({"data": {"a": "1"}, "binaryData": {"b": "MQ=="}}),
        expect!["Name=x | Data=#2 | Age=5m"],
    );
    check("", "secrets", json!({"type": "Opaque"}), expect!["Name=x | Type=Opaque | Data=#0 | Age=5m"]);
    check("", "serviceaccounts", json!({}), expect!["Name=x | Age=5m"]);
    check(
        "coordination.k8s.io",
        "leases",
        json!({"spec": {"holderIdentity": "me"}}),
        expect!["Name=x | Holder=me | Age=5m"],
    );
    check(
        "discovery.k8s.io",
        "endpointslices",
        json!({"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["1", "2"]}, {"addresses": ["3", "4"]}]}),
        expect!["Name=x | AddressType=IPv4 | Ports=80 | Endpoints=1,2,3 + 1 more... | Age=5m"],
    );
    check(
        "scheduling.k8s.io",
        "priorityclasses",
        json!({"value": 5}),
        expect!["Name=x | Value=#5 | Global-Default=#false | Age=5m | PreemptionPolicy="],
    );
    check("node.k8s.io", "runtimeclasses", json!({"handler": "h"}), expect!["Name=x | Handler=h | Age=5m"]);
    check(
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        json!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "namespace": "n", "name": "s"}, {"kind": "User", "name": "u"}]}),
        expect!["Name=x | Role=ClusterRole/r | Age=5m | [Users=u] | [Groups=] | [ServiceAccounts=n/s]"],
    );
    check("rbac.authorization.k8s.io", "roles", json!({}), expect!["Name=x | Created At=2026-05-01T11:55:00Z"]);
    check(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        json!({}),
        expect!["Name=x | Created At=2026-05-01T11:55:00Z"],
    );
}

#[test]
fn storage() {
    check(
        "storage.k8s.io",
        "storageclasses",
        json!({"metadata": {"name": "s", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"}),
        expect![
            "Name=s (default) | Provisioner=p | ReclaimPolicy=Delete | VolumeBindingMode=Immediate | AllowVolumeExpansion=#false | Age=<unknown>"
        ],
    );
    check(
        "storage.k8s.io",
        "csinodes",
        json!({"spec": {"drivers": [{}, {}]}}),
        expect!["Name=x | Drivers=#2 | Age=5m"],
    );
    check(
        "storage.k8s.io",
        "volumeattachments",
        json!({"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}, "status": {"attached": true}}),
        expect!["Name=x | Attacher=a | PV=v | Node=n | Attached=#true | Age=5m"],
    );
    check(
        "",
        "persistentvolumes",
        json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "claimRef": {"namespace": "n", "name": "c"},
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "fast"}, "status": {"phase": "Bound"}}),
        expect![
            "Name=x | Capacity=1Gi | Access Modes=RWO,RWX | Reclaim Policy=Retain | Status=Bound | Claim=n/c | StorageClass=fast | VolumeAttributesClass=<unset> | Reason= | Age=5m | [VolumeMode=<unset>]"
        ],
    );
    check(
        "",
        "persistentvolumeclaims",
        json!({"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}),
        expect![
            "Name=x | Status=Pending | Volume= | Capacity= | Access Modes= | StorageClass= | VolumeAttributesClass=<unset> | Age=5m | [VolumeMode=Filesystem]"
        ],
    );
}

fn column(name: &str, kind: &str, json_path: &str) -> CustomColumn {
    CustomColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: json_path.to_owned(),
    }
}

#[test]
fn custom_resources() {
    let printer = Printer::custom(&[
        column("Type", "string", r".metadata.labels.node\.kubernetes\.io/instance-type"),
        column("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
        column("First", "string", ".status.conditions[*].type"),
        column("Last", "string", ".status.conditions[-1:].type"),
        column("Weight", "integer", ".spec.weight"),
        column("Share", "number", ".spec.share"),
        column("On", "boolean", ".spec.on"),
        column("List", "string", ".spec.list"),
        column("Gone", "string", ".spec.gone"),
        column("Wrong", "integer", ".spec.on"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ]);
    let object = json!({
        "metadata": {"name": "x", "creationTimestamp": "2026-05-01T11:00:00Z", "labels": {"node.kubernetes.io/instance-type": "m.large"}},
        "spec": {"weight": 10, "share": 1.5, "on": true, "list": ["a", 1]},
        "status": {"conditions": [{"type": "Launched", "status": "True"}, {"type": "Ready", "status": "Unknown"}]},
    });
    expect![[r#"Name=x | Type=m.large | Ready=Unknown | First=Launched | Last=Ready | Weight=#10 | Share=#1.5 | On=#true | List=["a",1] | Gone=#null | Wrong=#null | Age=60m"#]].assert_eq(&render(&printer, &object));
    expect!["Name=x | Age=60m"].assert_eq(&render(&Printer::custom(&[]), &object));
}

#[test]
fn paths() {
    let object = json!({"a": {"b.c": [{"n": 1, "s": "x"}, {"n": 2}, {"n": 3, "s": "y]"}]}, "d": {"e": 1, "f": 2}});
    let table = [
        ".a",
        r".a.b\.c[0].n",
        "['d']['e']",
        ".d.*",
        r".a.b\.c[1:].n",
        r".a.b\.c[0:2].n",
        r".a.b\.c[5].n",
        r".a.b\.c[?(@.s)].n",
        r".a.b\.c[?(@.n>=2)].n",
        r".a.b\.c[?(@.n<2)].n",
        r".a.b\.c[?(@.s=='y]')].n",
        r".a.b\.c[?(@.s!='x')].n",
        ".d.e.g",
        "a[",
        "..a",
        ".a[?(n==1)]",
    ]
    .map(|path| {
        let found =
            Path::parse(path).map_or_else(|| "no path".to_owned(), |path| json!(path.find(&object)).to_string());
        format!("{path} -> {found}")
    })
    .join("\n");
    expect![[r#"
        .a -> [{"b.c":[{"n":1,"s":"x"},{"n":2},{"n":3,"s":"y]"}]}]
        .a.b\.c[0].n -> [1]
        ['d']['e'] -> [1]
        .d.* -> [1,2]
        .a.b\.c[1:].n -> [2,3]
        .a.b\.c[0:2].n -> [1,2]
        .a.b\.c[5].n -> []
        .a.b\.c[?(@.s)].n -> [1,3]
        .a.b\.c[?(@.n>=2)].n -> [2,3]
        .a.b\.c[?(@.n<2)].n -> [1]
        .a.b\.c[?(@.s=='y]')].n -> [3]
        .a.b\.c[?(@.s!='x')].n -> [3]
        .d.e.g -> []
        a[ -> no path
        ..a -> no path
        .a[?(n==1)] -> no path"#]]
    .assert_eq(&table);
}
