//! The control plane starts, works, and leaves nothing behind. Builds the programs first when they are missing.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use control_plane::{ControlPlane, Options, Toolbox};

const FAKE_NODE: &str = "
apiVersion: v1
kind: Node
metadata:
  name: fake
  annotations:
    kwok.x-k8s.io/node: fake
status:
  allocatable: {cpu: '4', memory: 8Gi, pods: '10'}
  capacity: {cpu: '4', memory: 8Gi, pods: '10'}
";

const SCHEDULED_POD: &str = "
apiVersion: v1
kind: Pod
metadata:
  name: guest
spec:
  containers:
  - name: main
    image: none
    resources: {requests: {cpu: '1'}}
";

fn started(options: &Options) -> ControlPlane {
    ControlPlane::start(&Toolbox::ensure().unwrap(), options).unwrap()
}

fn create(control_plane: &ControlPlane, manifest: &str) {
    let mut child = control_plane.kubectl(["create", "-f", "-"]).unwrap().stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Whether any process of the group is left.
fn lives(group: u32) -> bool {
    Command::new("sh")
        .args(["-c", r#"kill -s 0 -- "-$1""#, "lives", &group.to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

#[test]
fn a_pod_runs_on_a_fake_node_and_nothing_is_left() {
    let control_plane = started(&Options::default());
    assert_eq!(control_plane.run_kubectl(["get", "--raw", "/readyz"]).unwrap(), "ok");

    create(&control_plane, FAKE_NODE);
    control_plane.run_kubectl(["wait", "--for=condition=Ready", "node/fake", "--timeout=60s"]).unwrap();
    create(&control_plane, SCHEDULED_POD);
    let phase = "--for=jsonpath={.status.phase}=Running";
    control_plane.run_kubectl(["wait", phase, "pod/guest", "--timeout=60s"]).unwrap();
    control_plane.run_kubectl(["delete", "pod/guest", "--timeout=30s"]).unwrap();

    let groups = control_plane.process_groups();
    let logs = control_plane.log_dir();
    assert_eq!(groups.len(), 5);
    assert!(groups.iter().all(|(_, group)| lives(*group)));
    control_plane.stop().unwrap();
    for (name, group) in groups {
        assert!(!lives(group), "`{name}` is still running");
    }
    assert!(!logs.exists());
}

#[test]
fn a_user_is_known_by_certificate_and_bound_by_rbac() {
    let control_plane = started(&Options::api_only());
    let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
    let user = "system:serviceaccount:kube-system:karpenter";
    let kubeconfig = control_plane.kubeconfig(user, &groups).unwrap();

    let as_user = |arguments: &[&str]| {
        let output = control_plane.kubectl(arguments).unwrap().env("KUBECONFIG", &kubeconfig).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let identity = as_user(&["auth", "whoami", "-o", "jsonpath={.status.userInfo}"]);
    for expected in groups.into_iter().chain([user]) {
        assert!(identity.contains(&format!("\"{expected}\"")), "{identity}");
    }
    assert!(as_user(&["get", "nodes"]).contains("forbidden"));

    control_plane
        .run_kubectl(["create", "clusterrole", "node-reader", "--verb=list", "--resource=nodes"])
        .and_then(|_| {
            control_plane.run_kubectl([
                "create",
                "clusterrolebinding",
                "node-reader",
                "--clusterrole=node-reader",
                &format!("--user={user}"),
            ])
        })
        .unwrap();
    control_plane.run_kubectl(["auth", "can-i", "list", "nodes", &format!("--as={user}")]).unwrap();
    assert!(as_user(&["get", "nodes"]).contains("No resources found"));
}

#[test]
fn a_panic_leaves_no_process_and_keeps_the_logs() {
    let seen = Mutex::new(None);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let control_plane = started(&Options::api_only());
        *seen.lock().unwrap() = Some((control_plane.process_groups(), control_plane.log_dir()));
        panic!("as a failing test would");
    }));
    assert!(outcome.is_err());
    let (groups, logs) = seen.into_inner().unwrap().unwrap();
    assert_eq!(groups.len(), 2);
    for (name, group) in groups {
        assert!(!lives(group), "`{name}` is still running");
    }
    let workspace = logs.parent().unwrap();
    assert!(!workspace.exists());
    let kept = std::env::temp_dir().join(format!("{}-logs", workspace.file_name().unwrap().display()));
    assert!(kept.join("kube-apiserver.log").is_file());
    std::fs::remove_dir_all(kept).unwrap();
}

#[test]
fn a_component_that_cannot_start_shows_its_log() {
    let options = Options { api_server_flags: vec!["--no-such-flag".to_owned()], ..Options::api_only() };
    let error = ControlPlane::start(&Toolbox::ensure().unwrap(), &options).unwrap_err().to_string();
    assert!(error.contains("`kube-apiserver` ended while starting"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}
