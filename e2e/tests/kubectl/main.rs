//! Stock kubectl against `kubectl-karpenter demo --serve`: every command that people use prints what they expect.

mod cluster;

use std::io::{BufRead, BufReader};

use anyhow::{Context, Result, ensure};
use e2e::{inflate, kwok_node_class, node_pool};

use crate::cluster::Cluster;

/// A node that a kubelet of the cluster takes care of.
const NODE: &str = "apiVersion: v1
kind: Node
metadata:
  name: machine
  annotations:
    kwok.x-k8s.io/node: fake
  labels:
    kubernetes.io/hostname: machine
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    zone: a
status:
  capacity: {cpu: \"8\", memory: 16Gi, pods: \"110\"}
  allocatable: {cpu: \"8\", memory: 16Gi, pods: \"110\"}
";

/// Fails with the whole text if it does not have each of the parts, in order.
fn has(text: &str, parts: &[&str]) -> Result<()> {
    let mut rest = text;
    for part in parts {
        let found =
            rest.find(part).with_context(|| format!("`{part}` is missing, or not in its place, in:\n{text}"))?;
        rest = &rest[found + part.len()..];
    }
    Ok(())
}

/// The words of a line that begins with this one.
fn row<'a>(table: &'a str, first: &str) -> Result<Vec<&'a str>> {
    let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.find(|row| row.first() == Some(&first)).with_context(|| format!("no row of `{first}` in:\n{table}"))
}

/// A cluster with a ready node and the usual deployment on it.
fn with_workload(replicas: u32) -> Result<Cluster> {
    let cluster = Cluster::start()?;
    cluster.run_with("create -f -", NODE)?;
    cluster.run("wait node/machine --for=condition=Ready --timeout=60s")?;
    cluster.run_with("create -f -", &inflate(replicas))?;
    cluster.run("rollout status deployment/inflate --timeout=60s")?;
    Ok(cluster)
}

#[test]
fn apply_creates_leaves_alone_and_configures() -> Result<()> {
    let cluster = Cluster::start()?;
    let apply = |manifest: &str| cluster.run_with("apply -f -", manifest);
    assert_eq!(apply(&inflate(1))?, "deployment.apps/inflate created\n");
    assert_eq!(apply(&inflate(1))?, "deployment.apps/inflate unchanged\n");
    assert_eq!(apply(&inflate(2))?, "deployment.apps/inflate configured\n");
    assert_eq!(apply(&kwok_node_class("default"))?, "kwoknodeclass.karpenter.kwok.sh/default created\n");
    assert_eq!(apply(&node_pool("default", ""))?, "nodepool.karpenter.sh/default created\n");
    assert_eq!(apply(&node_pool("default", ""))?, "nodepool.karpenter.sh/default unchanged\n");
    assert_eq!(apply(&node_pool("default", "  weight: 7\n"))?, "nodepool.karpenter.sh/default configured\n");
    assert_eq!(cluster.run("get nodepool default -o jsonpath={.spec.weight}")?, "7");
    Ok(())
}

#[test]
fn create_makes_objects_and_refuses_wrong_ones() -> Result<()> {
    let cluster = Cluster::start()?;
    assert_eq!(cluster.run("create namespace team")?, "namespace/team created\n");
    assert_eq!(cluster.run("create configmap settings -n team --from-literal=a=1")?, "configmap/settings created\n");
    assert_eq!(
        cluster.run("create deployment web --image=pause -n team --replicas=2")?,
        "deployment.apps/web created\n"
    );
    has(&cluster.complaint("create namespace team")?, &["AlreadyExists", "namespaces \"team\" already exists"])?;
    let misspelt = node_pool("default", "  wieght: 7\n");
    let complaint = cluster.run_with("create -f -", &misspelt).unwrap_or_else(|error| error.to_string());
    has(&complaint, &["strict decoding error: unknown field \"spec.wieght\""])
}

#[test]
fn get_shows_tables_labels_and_documents() -> Result<()> {
    let cluster = with_workload(2)?;
    let table = cluster.run("get nodes -L zone")?;
    has(&table, &["NAME", "STATUS", "ROLES", "AGE", "VERSION", "ZONE"])?;
    let machine = row(&table, "machine")?;
    assert_eq!((machine[1], machine.last()), ("Ready", Some(&"a")));
    let table = cluster.run("get pods -l app=inflate -o wide")?;
    has(&table, &["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"])?;
    assert_eq!(table.matches("1/1").count(), 2, "{table}");
    assert_eq!(table.matches("machine").count(), 2, "{table}");
    assert_eq!(cluster.run("get pods -l app=other -o name")?, "");
    assert_eq!(cluster.run("get pods -l app=inflate -o name")?.matches("pod/inflate-").count(), 2);
    has(
        &cluster.run("get deployment inflate -o yaml")?,
        &["apiVersion: apps/v1\n", "kind: Deployment\n", "replicas: 2\n"],
    )?;
    assert_eq!(row(&cluster.run("get deployments")?, "inflate")?[1..4], ["2/2", "2", "2"]);
    cluster.run_with("create -f -", &node_pool("default", ""))?;
    has(&cluster.run("get nodepools")?, &["NAME", "NODECLASS", "NODES", "READY", "AGE", "default"])?;
    has(&cluster.run("get all")?, &["pod/inflate-", "deployment.apps/inflate", "replicaset.apps/inflate-"])
}

#[test]
fn get_watches() -> Result<()> {
    let cluster = Cluster::start()?;
    cluster.run("create configmap first")?;
    let mut watching = cluster.spawn("get configmaps -w")?;
    let mut lines = BufReader::new(watching.stdout.take().context("kubectl has an output")?).lines();
    let mut next = || lines.next().context("the watch goes on")?.context("read the watch");
    has(&next()?, &["NAME", "DATA", "AGE"])?;
    has(&next()?, &["first", "0"])?;
    cluster.run("create configmap second --from-literal=a=1")?;
    has(&next()?, &["second", "1"])?;
    watching.kill()?;
    watching.wait()?;
    Ok(())
}

#[test]
fn describe_tells_about_pods_nodes_and_pools() -> Result<()> {
    let cluster = with_workload(1)?;
    let pod = cluster.run("get pods -l app=inflate -o name")?;
    let text = cluster.run(&format!("describe {}", pod.trim()))?;
    has(
        &text,
        &["Name:", "inflate-", "Node:", "machine", "Status:", "Running", "Containers:", "Conditions:", "Events:"],
    )?;
    has(&text, &["Scheduled", "default-scheduler", "Successfully assigned default/inflate-"])?;
    let text = cluster.run("describe node machine")?;
    has(&text, &["Name:", "machine", "Conditions:", "Ready", "Capacity:", "Non-terminated Pods:", "(1 in total)"])?;
    has(&text, &["Allocated resources:", "cpu", "1 (12%)"])?;
    cluster.run_with("create -f -", &node_pool("default", ""))?;
    has(&cluster.run("describe nodepool default")?, &["Name:", "default", "Kind:", "NodePool", "Node Class Ref:"])
}

#[test]
fn scale_and_rollout() -> Result<()> {
    let cluster = with_workload(1)?;
    assert_eq!(cluster.run("scale deployment inflate --replicas=3")?, "deployment.apps/inflate scaled\n");
    let text = cluster.run("rollout status deployment/inflate --timeout=60s")?;
    has(&text, &["deployment \"inflate\" successfully rolled out"])?;
    assert_eq!(row(&cluster.run("get deployments")?, "inflate")?[1], "3/3");
    assert_eq!(cluster.run("rollout restart deployment/inflate")?, "deployment.apps/inflate restarted\n");
    has(&cluster.run("rollout status deployment/inflate --timeout=60s")?, &["successfully rolled out"])?;
    assert_eq!(cluster.run("get replicasets -l app=inflate -o name")?.lines().count(), 2);
    Ok(())
}

#[test]
fn label_annotate_taint_and_cordon() -> Result<()> {
    let cluster = Cluster::start()?;
    cluster.run_with("create -f -", NODE)?;
    cluster.run("wait node/machine --for=condition=Ready --timeout=60s")?;
    assert_eq!(cluster.run("label node machine team=a")?, "node/machine labeled\n");
    assert_eq!(cluster.run("label node machine team-")?, "node/machine unlabeled\n");
    assert_eq!(cluster.run("annotate node machine note=yes")?, "node/machine annotated\n");
    assert_eq!(cluster.run("taint node machine dedicated=x:NoSchedule")?, "node/machine tainted\n");
    assert_eq!(cluster.run("get node machine -o jsonpath={.spec.taints[*].key}")?, "dedicated");
    assert_eq!(cluster.run("taint node machine dedicated-")?, "node/machine untainted\n");
    assert_eq!(cluster.run("cordon machine")?, "node/machine cordoned\n");
    assert_eq!(row(&cluster.run("get nodes")?, "machine")?[1], "Ready,SchedulingDisabled");
    assert_eq!(cluster.run("uncordon machine")?, "node/machine uncordoned\n");
    assert_eq!(row(&cluster.run("get nodes")?, "machine")?[1], "Ready");
    Ok(())
}

#[test]
fn delete_waits_until_it_is_gone() -> Result<()> {
    let cluster = with_workload(2)?;
    let text = cluster.run("delete deployment inflate --timeout=60s --cascade=foreground")?;
    has(&text, &["deployment.apps \"inflate\" deleted"])?;
    assert_eq!(cluster.run("get pods,replicasets -o name")?, "");
    cluster.run("create namespace team")?;
    cluster.run("create configmap settings -n team")?;
    has(&cluster.run("delete namespace team --timeout=60s")?, &["namespace \"team\" deleted"])?;
    has(&cluster.complaint("get namespace team")?, &["NotFound"])
}

#[test]
fn logs_follow_a_container_to_its_end() -> Result<()> {
    let cluster = with_workload(1)?;
    let pod = cluster.run("get pods -l app=inflate -o jsonpath={.items[0].metadata.name}")?;
    let so_far = cluster.run(&format!("logs {pod}"))?;
    let first = so_far.lines().next().context("a container that starts says so")?;
    let mut following = cluster.spawn(&format!("logs -f {pod}"))?;
    let mut lines = BufReader::new(following.stdout.take().context("kubectl has an output")?).lines();
    assert_eq!(lines.next().context("the log has a line")??, first);
    cluster.run("scale deployment inflate --replicas=0")?;
    // The container ends, and with it the log, and with the log kubectl.
    lines.try_for_each(|line| line.map(drop))?;
    ensure!(following.wait()?.success(), "kubectl failed");
    Ok(())
}

#[test]
fn wait_and_explain() -> Result<()> {
    let cluster = with_workload(1)?;
    let text = cluster.run("wait deployment/inflate --for=condition=Available --timeout=60s")?;
    assert_eq!(text, "deployment.apps/inflate condition met\n");
    let text = cluster.run("wait pod -l app=inflate --for=jsonpath={.status.phase}=Running --timeout=60s")?;
    has(&text, &["pod/inflate-", "condition met"])?;
    has(&cluster.run("explain pod.spec.nodeName")?, &["KIND:", "Pod", "FIELD: nodeName <string>", "DESCRIPTION:"])?;
    let text = cluster.run("explain nodepool.spec.weight")?;
    has(&text, &["GROUP:", "karpenter.sh", "KIND:", "NodePool", "FIELD: weight <integer>"])?;
    has(&cluster.run("api-resources")?, &["pods", "po", "true", "Pod", "nodepools", "karpenter.sh/v1", "NodePool"])?;
    has(&cluster.run("version")?, &["Server Version: v1.36"])
}
