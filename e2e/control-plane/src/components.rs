//! How each program of the control plane is started: flags and configuration, as pure functions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Ports;

/// A part that a control plane may run beside etcd and the API server, which always run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// Deployments, service accounts, garbage collection, node taints and the rest of Kubernetes' own controllers.
    ControllerManager,
    /// Binds pods to nodes.
    Scheduler,
    /// Plays the nodes annotated `kwok.x-k8s.io/node=fake` and the pods on them.
    Kwok,
}

/// Whether the API server answers lists and watches from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchCache {
    /// As in a cluster.
    #[default]
    On,
    /// Every read goes to etcd, so that a compacted resource version is answered with `410 Gone`.
    Off,
}

/// Whether KWOK's nodes have leases, as those of a kubelet do.
///
/// With them, KWOK plays the pods of a node only if it sees in its own watch that it holds the lease, and asks once: where
/// that watch is late, as it is for many seconds after an API server came back, pods that were bound meanwhile never run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeLeases {
    /// None: nodes are taken for alive.
    #[default]
    None,
    /// Made and renewed by KWOK: for load like that in a cluster.
    Kept,
}

/// How often the API server makes etcd forget old resource versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compaction {
    /// Every five minutes, as in a cluster.
    #[default]
    Usual,
    /// At this interval: short, for tests of expired watches.
    Every(Duration),
    /// Never.
    Off,
}

/// What a control plane runs, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The parts that run beside etcd and the API server.
    pub components: BTreeSet<Component>,
    /// More flags for kube-apiserver; they come last, so they win.
    pub api_server_flags: Vec<String>,
    /// Whether the API server answers from memory.
    pub watch_cache: WatchCache,
    /// How often old resource versions go.
    pub compaction: Compaction,
    /// Whether nodes have leases.
    pub node_leases: NodeLeases,
}

impl Default for Options {
    /// Everything runs, set up as in a cluster, but for leases of nodes.
    fn default() -> Self {
        Self {
            components: BTreeSet::from([Component::ControllerManager, Component::Scheduler, Component::Kwok]),
            api_server_flags: Vec::new(),
            watch_cache: WatchCache::On,
            compaction: Compaction::Usual,
            node_leases: NodeLeases::None,
        }
    }
}

impl Options {
    /// Only etcd and the API server: enough to try resources on, and ready sooner.
    ///
    /// Nobody makes service accounts there, so pods are admitted without one.
    pub fn api_only() -> Self {
        Self { components: BTreeSet::new(), ..Self::default() }
    }
}

/// The files every component may need.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) authority: PathBuf,
    pub(crate) authority_key: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) server_key: PathBuf,
    pub(crate) service_account: PathBuf,
    pub(crate) service_account_key: PathBuf,
    pub(crate) etcd_data: PathBuf,
}

/// The address under which a port is known.
pub(crate) fn loopback(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}

pub(crate) fn etcd(ports: &Ports, files: &Files) -> Vec<String> {
    let client = loopback("http", ports.etcd_client);
    let peer = loopback("http", ports.etcd_peer);
    vec![
        "--name=test".to_owned(),
        flag("data-dir", &files.etcd_data),
        // The data does not outlive the process, so it need not survive a power cut either.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=test={peer}"),
    ]
}

pub(crate) fn api_server(ports: &Ports, files: &Files, options: &Options) -> Vec<String> {
    let mut flags = vec![
        format!("--etcd-servers={}", loopback("http", ports.etcd_client)),
        format!("--secure-port={}", ports.api_server),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        // There is one API server, and its loopback address may not be an endpoint.
        "--endpoint-reconciler-type=none".to_owned(),
        flag("client-ca-file", &files.authority),
        flag("tls-cert-file", &files.server),
        flag("tls-private-key-file", &files.server_key),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        flag("service-account-signing-key-file", &files.service_account_key),
        flag("service-account-key-file", &files.service_account),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        // A scheduler that may send hundreds of requests at once is not to be turned away at the door.
        "--max-requests-inflight=4000".to_owned(),
        "--max-mutating-requests-inflight=2000".to_owned(),
        "--profiling=false".to_owned(),
    ];
    if !options.components.contains(&Component::ControllerManager) {
        flags.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    if options.watch_cache == WatchCache::Off {
        flags.push("--watch-cache=false".to_owned());
    }
    match options.compaction {
        Compaction::Usual => {}
        Compaction::Every(interval) => flags.push(format!("--etcd-compaction-interval={}ms", interval.as_millis())),
        Compaction::Off => flags.push("--etcd-compaction-interval=0".to_owned()),
    }
    flags.extend(options.api_server_flags.iter().cloned());
    flags
}

pub(crate) fn controller_manager(ports: &Ports, files: &Files, kubeconfig: &Path) -> Vec<String> {
    vec![
        flag("kubeconfig", kubeconfig),
        "--controllers=*".to_owned(),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        flag("service-account-private-key-file", &files.service_account_key),
        flag("root-ca-file", &files.authority),
        flag("cluster-signing-cert-file", &files.authority),
        flag("cluster-signing-key-file", &files.authority_key),
        format!("--kube-api-qps={CLIENT_QPS}"),
        format!("--kube-api-burst={CLIENT_BURST}"),
        // KWOK's nodes may have no leases, and their heartbeat comes every twenty minutes.
        "--node-monitor-grace-period=24h".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.controller_manager),
        flag("tls-cert-file", &files.server),
        flag("tls-private-key-file", &files.server_key),
        "--profiling=false".to_owned(),
    ]
}

pub(crate) fn scheduler(ports: &Ports, files: &Files, configuration: &Path) -> Vec<String> {
    vec![
        flag("config", configuration),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.scheduler),
        flag("tls-cert-file", &files.server),
        flag("tls-private-key-file", &files.server_key),
    ]
}

/// The scheduler takes its client's limits from a file only.
pub(crate) fn scheduler_configuration(kubeconfig: &Path) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: '{}'
  qps: {CLIENT_QPS}
  burst: {CLIENT_BURST}
leaderElection:
  leaderElect: false
enableProfiling: false
",
        kubeconfig.display()
    )
}

pub(crate) fn kwok(kubeconfig: &Path, configuration: &Path) -> Vec<String> {
    vec![flag("kubeconfig", kubeconfig), flag("config", configuration)]
}

/// Only nodes that ask for it are played, so that a test may bring nodes that nobody plays.
///
/// Pod addresses lie outside the range of services.
pub(crate) fn kwok_configuration(ports: &Ports, leases: NodeLeases) -> String {
    let lease_seconds = match leases {
        NodeLeases::None => 0,
        NodeLeases::Kept => 40,
    };
    format!(
        "apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageAllNodes: false
  manageNodesWithAnnotationSelector: kwok.x-k8s.io/node=fake
  nodeLeaseDurationSeconds: {lease_seconds}
  nodeLeaseParallelism: {KWOK_PARALLELISM}
  nodePlayStageParallelism: {KWOK_PARALLELISM}
  podPlayStageParallelism: {KWOK_PARALLELISM}
  nodeIP: 127.0.0.1
  cidr: 10.128.0.0/9
  serverAddress: 127.0.0.1:{}
  enableCRDs:
  - Stage
",
        ports.kwok
    )
}

/// Requests per second of Kubernetes' own controllers: ten times their default, or they would be the slowest part of
/// a test with a thousand pods.
const CLIENT_QPS: u32 = 300;
const CLIENT_BURST: u32 = 600;
/// Nodes and pods played at once: four times the default, for the same reason.
const KWOK_PARALLELISM: u32 = 16;

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::{Compaction, Files, Options, WatchCache, api_server};
    use crate::Ports;

    fn flags(options: &Options) -> Vec<String> {
        let ports = Ports { etcd_client: 1, etcd_peer: 2, api_server: 3, controller_manager: 4, scheduler: 5, kwok: 6 };
        let file = PathBuf::from("/file");
        let files = Files {
            authority: file.clone(),
            authority_key: file.clone(),
            server: file.clone(),
            server_key: file.clone(),
            service_account: file.clone(),
            service_account_key: file.clone(),
            etcd_data: file,
        };
        api_server(&ports, &files, options)
    }

    #[test]
    fn service_accounts_are_enforced_where_somebody_makes_them() {
        let without = "--disable-admission-plugins=ServiceAccount".to_owned();
        assert!(!flags(&Options::default()).contains(&without));
        assert!(flags(&Options::api_only()).contains(&without));
    }

    #[test]
    fn options_become_flags_and_the_callers_come_last() {
        let options = Options {
            api_server_flags: vec!["--v=4".to_owned()],
            watch_cache: WatchCache::Off,
            compaction: Compaction::Every(Duration::from_secs(2)),
            ..Options::default()
        };
        let flags = flags(&options);
        assert!(flags.contains(&"--watch-cache=false".to_owned()));
        assert!(flags.contains(&"--etcd-compaction-interval=2000ms".to_owned()));
        assert_eq!(flags.last().map(String::as_str), Some("--v=4"));
    }
}
