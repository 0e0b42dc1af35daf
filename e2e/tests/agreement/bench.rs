//! A cluster's objects on the API server, and what they look like to the planner.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use api::lower::{
    CsiNodeFacts, DaemonFacts, NamespaceFacts, NodeFacts, PodFacts, PodFault, StorageClassFacts, VolumeClaimFacts,
    VolumeFacts,
};
use e2e::seen::{is_ready_node, is_unschedulable};
use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use model::{PoolName, Snapshot, Vocabulary};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use state::{Cluster, ManagedKind, Object};

use crate::draw::{CLASS_GROUP, CLASS_KIND, Draft, FENCE, is_going, read};

/// The API server as one cluster uses it.
pub(crate) struct Bench<'a> {
    client: Client,
    draft: &'a Draft,
}

/// A kind of object that is not in a namespace.
pub(crate) trait Global:
    Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}
impl<K> Global for K where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// A kind of object that is.
pub(crate) trait Local:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}
impl<K> Local for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<'a> Bench<'a> {
    /// Makes everything that is there before the waiting pods come, and waits until it is settled.
    pub(crate) async fn set_up(client: &Client, draft: &'a Draft) -> Result<Self> {
        let bench = Self { client: client.clone(), draft };
        bench.create_global(&draft.namespaces).await?;
        bench.create_global(&draft.storage_classes).await?;
        bench.create_global(&draft.volumes).await?;
        bench.create_local(&draft.claims).await?;
        bench.create_local(&draft.daemons).await?;
        bench.add_nodes(&draft.nodes, &draft.csi_nodes).await?;
        bench.create_local(&draft.running).await?;
        bench.delete_going().await?;
        bench.wait_for_volumes().await?;
        Ok(bench)
    }

    /// Asks for the deletion of nodes that are to be on their way out; their finalizer keeps them.
    async fn delete_going(&self) -> Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        for node in self.draft.nodes.iter().filter(|node| is_going(node)) {
            nodes.delete(&node.name_any(), &DeleteParams::default()).await.context("delete a node")?;
        }
        Ok(())
    }

    async fn create_global<K: Global>(&self, objects: &[K]) -> Result<()> {
        let api = Api::<K>::all(self.client.clone());
        let create = |object| {
            let api = &api;
            async move { api.create(&PostParams::default(), object).await }
        };
        try_join_all(objects.iter().map(create)).await.with_context(|| format!("make every {}", K::kind(&())))?;
        Ok(())
    }

    /// Makes objects in their namespaces.
    pub(crate) async fn create_local<K: Local>(&self, objects: &[K]) -> Result<()> {
        let create = |object: &K| {
            let (api, object) = (self.local::<K>(object), object.clone());
            async move { api.create(&PostParams::default(), &object).await }
        };
        try_join_all(objects.iter().map(create)).await.with_context(|| format!("make every {}", K::kind(&())))?;
        Ok(())
    }

    fn local<K: Local>(&self, object: &K) -> Api<K> {
        Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default())
    }

    /// The pods of a namespace.
    pub(crate) fn pods_of(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Makes nodes and waits until they are ready and their daemons are bound. What they can attach is told first:
    /// without it, the kube-scheduler knows no limit.
    pub(crate) async fn add_nodes(&self, nodes: &[Node], csi_nodes: &[CSINode]) -> Result<()> {
        self.create_global(csi_nodes).await?;
        self.create_global(nodes).await?;
        let cordoned = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
        let wanted: BTreeMap<String, usize> =
            nodes.iter().map(|node| (node.name_any(), usize::from(cordoned(node)))).collect();
        let settled = |seen: &e2e::Seen<Node>| {
            let ready = |(name, taints): (&String, &usize)| {
                seen.get(name).is_some_and(|node| is_ready_node(node) && lifecycle_taints(node) == *taints)
            };
            wanted.iter().all(ready)
        };
        e2e::wait_for(Api::all(self.client.clone()), "nodes to be ready", settled).await?;
        self.wait_for_daemons(nodes).await
    }

    /// Waits until every daemon has a pod on every one of these nodes where it may run.
    async fn wait_for_daemons(&self, nodes: &[Node]) -> Result<()> {
        let of_node = |node: &Node| {
            let here = self.draft.daemons.iter().filter(|daemon| daemon_runs_on(daemon, node));
            here.map(ResourceExt::name_any).map(|name| (name, node.name_any())).collect::<Vec<_>>()
        };
        let wanted: Vec<(String, String)> = nodes.iter().flat_map(of_node).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        e2e::wait_until("daemons to be bound", async || {
            let pods: Vec<Pod> = self.list().await.ok()?;
            let is_there = |(daemon, node): &(String, String)| {
                pods.iter().any(|pod| pod.labels().get("app") == Some(daemon) && node_of(pod) == Some(node.as_str()))
            };
            wanted.iter().all(is_there).then_some(())
        })
        .await
    }

    /// Waits until claims that name a volume have it.
    async fn wait_for_volumes(&self) -> Result<()> {
        let named = |claim: &PersistentVolumeClaim| claim.spec.as_ref().is_some_and(|spec| spec.volume_name.is_some());
        if !self.draft.claims.iter().any(named) {
            return Ok(());
        }
        e2e::wait_until("claims to have their volumes", async || {
            let claims: Vec<PersistentVolumeClaim> = self.list().await.ok()?;
            let bound = |claim: &PersistentVolumeClaim| {
                !named(claim) || claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
            };
            claims.iter().all(bound).then_some(())
        })
        .await
    }

    /// Cordons a node, or lifts it, and waits until its taint tells.
    pub(crate) async fn cordon(&self, node: &str, cordoned: bool) -> Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
        nodes.patch(node, &PatchParams::default(), &patch).await.context("cordon a node")?;
        e2e::wait_until("a node's taint", async || {
            let found = nodes.get(node).await.ok()?;
            (lifecycle_taints(&found) == usize::from(cordoned)).then_some(())
        })
        .await
    }

    /// A pod as the API server would make it, with everything that it fills in; nothing is kept.
    pub(crate) async fn filled_in(&self, pod: &Pod) -> Result<Pod> {
        let only_try = PostParams { dry_run: true, ..PostParams::default() };
        self.local(pod).create(&only_try, pod).await.context("try a pod")
    }

    /// The objects of this cluster.
    pub(crate) async fn list<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned>(
        &self,
    ) -> Result<Vec<K>> {
        let mine = ListParams::default().labels(&format!("{FENCE}={}", self.draft.name));
        let api = Api::<K>::all(self.client.clone());
        Ok(api.list(&mine).await.with_context(|| format!("list every {}", K::kind(&())))?.items)
    }

    /// The cluster as the planner sees it, with these pods in it.
    pub(crate) async fn snapshot(&self, pods: &[Pod]) -> Result<Arc<Snapshot>> {
        let vocabulary = Arc::new(Vocabulary::core());
        let managed = ManagedKind { group: CLASS_GROUP.to_owned(), kind: CLASS_KIND.to_owned() };
        let mut cluster = Cluster::new(Arc::clone(&vocabulary), managed);
        for pool in &self.draft.pools {
            cluster.apply(Object::Pool(Arc::new(pool.clone())));
            cluster.set_types(PoolName::new(pool.name_any()), Arc::clone(&self.draft.types));
        }
        let daemon = |it: &DaemonSet| Some(Object::Daemon(Arc::new(DaemonFacts::lower(it, &vocabulary)?)));
        self.fold(&mut cluster, |it| NamespaceFacts::lower(it).map(Object::Namespace)).await?;
        self.fold(&mut cluster, |it| Some(Object::Node(Arc::new(NodeFacts::lower(it)?)))).await?;
        self.fold(&mut cluster, daemon).await?;
        if !self.draft.storage_classes.is_empty() {
            self.fold(&mut cluster, |it| Some(Object::StorageClass(Arc::new(StorageClassFacts::lower(it)?)))).await?;
            self.fold(&mut cluster, |it| Some(Object::Volume(Arc::new(VolumeFacts::lower(it)?)))).await?;
            self.fold(&mut cluster, |it| Some(Object::VolumeClaim(Arc::new(VolumeClaimFacts::lower(it)?)))).await?;
            self.fold(&mut cluster, |it| Some(Object::CsiNode(Arc::new(CsiNodeFacts::lower(it)?)))).await?;
        }
        for pod in pods {
            let facts = PodFacts::lower(&ageless(pod), &vocabulary).context("the API server names its pods")?;
            cluster.apply(Object::Pod(Arc::new(facts)));
        }
        let complained = pods.iter().filter(|pod| node_of(pod).is_none() && is_unschedulable(pod)).count();
        let waiting = cluster.waiting().count();
        ensure!(waiting == complained, "{complained} pods wait, and {waiting} are seen to");
        // A pod that contradicts itself is planned by nobody; any other fault would be a misreading.
        let is_grave = |fault: &PodFault| !matches!(fault, PodFault::Contradiction { .. });
        let faults = |pod: &Arc<PodFacts>| {
            let faults = cluster.faults_of(pod).into_iter().filter(is_grave);
            faults.map(|fault| format!("{}: {fault:?}", pod.key)).collect::<Vec<_>>()
        };
        let faults: Vec<String> = cluster.waiting().flat_map(faults).collect();
        ensure!(faults.is_empty(), "pods are not planned: {}", faults.join("; "));
        Ok(cluster.snapshot(Timestamp::UNIX_EPOCH))
    }

    /// Folds every object of a kind into the cluster, lowered as the controller lowers it.
    async fn fold<K>(&self, cluster: &mut Cluster, lower: impl Fn(&K) -> Option<Object>) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        for object in self.list::<K>().await? {
            cluster.apply(lower(&object).context("the API server names its objects")?);
        }
        Ok(())
    }

    /// Removes what was made.
    pub(crate) async fn clear(self) -> Result<()> {
        let mine = ListParams::default().labels(&format!("{FENCE}={}", self.draft.name));
        let (at_once, usual) = (DeleteParams::default().grace_period(0), DeleteParams::default());
        for namespace in &self.draft.namespaces {
            let (client, namespace) = (self.client.clone(), namespace.name_any());
            Api::<DaemonSet>::namespaced(client.clone(), &namespace).delete_collection(&usual, &mine).await?;
            Api::<Pod>::namespaced(client.clone(), &namespace).delete_collection(&at_once, &mine).await?;
            Api::<PersistentVolumeClaim>::namespaced(client, &namespace).delete_collection(&usual, &mine).await?;
        }
        let nodes = Api::<Node>::all(self.client.clone());
        for node in self.draft.nodes.iter().filter(|node| is_going(node)) {
            let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            nodes.patch(&node.name_any(), &PatchParams::default(), &release).await.context("let a node go")?;
        }
        nodes.delete_collection(&usual, &mine).await?;
        Api::<CSINode>::all(self.client.clone()).delete_collection(&usual, &mine).await?;
        Api::<PersistentVolume>::all(self.client.clone()).delete_collection(&usual, &mine).await?;
        Api::<StorageClass>::all(self.client.clone()).delete_collection(&usual, &mine).await?;
        Ok(())
    }
}

/// Without its age, which is another in every run.
fn ageless(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    pod.metadata.creation_timestamp = None;
    pod
}

/// The pod with the kube-scheduler's word that no node takes it.
pub(crate) fn unschedulable(mut pod: Pod) -> Pod {
    let word = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
    pod.status.get_or_insert_default().conditions = Some(vec![read(word)]);
    pod
}

fn daemon_runs_on(daemon: &DaemonSet, node: &Node) -> bool {
    let spec = daemon.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let mut wanted = spec.iter().flat_map(|spec| spec.node_selector.iter().flatten());
    let tolerant = spec.is_some_and(|spec| spec.tolerations.is_some());
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    wanted.all(|(key, value)| node.labels().get(key) == Some(value))
        && (tolerant || !taints.any(|taint| taint.effect == "NoSchedule"))
}

/// How many taints the control plane itself keeps on a node: not ready yet, or cordoned.
fn lifecycle_taints(node: &Node) -> usize {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.filter(|taint| taint.key.starts_with("node.kubernetes.io/")).count()
}

/// The node that a pod is bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// What the kube-scheduler said when it found no node.
pub(crate) fn complaint(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let is_complaint = |reason: Option<&str>| reason == Some("Unschedulable");
    let found =
        conditions.iter().find(|found| found.type_ == "PodScheduled" && is_complaint(found.reason.as_deref()))?;
    found.message.as_deref()
}

/// The reasons in a complaint, without the number of nodes that each is about.
pub(crate) fn reasons(complaint: &str) -> impl Iterator<Item = &str> {
    let listed = complaint.split_once("nodes are available: ").map_or("", |(_, rest)| rest);
    let listed = listed.split(". ").next().unwrap_or_default().trim_end_matches('.');
    listed.split(", ").map(|reason| reason.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' '))
}

/// Whether a reason speaks of nodes that are cordoned or of other clusters.
pub(crate) fn is_of_others(reason: &str) -> bool {
    let of_others = [
        "node(s) were unschedulable",
        "node(s) had untolerated taint",
        "node(s) didn't match Pod's node affinity/selector",
    ];
    of_others.iter().any(|other| reason.contains(other))
}
