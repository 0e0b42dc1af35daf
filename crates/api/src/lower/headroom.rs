//! Room that a capacity buffer keeps free: what its pods look like, where that is written, and the pods themselves,
//! which nobody made.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{BufferKey, Labels, PendingPod, PodClass, PodKey, PodVolumes, Purpose, Resources, Text, Vocabulary};

use super::pod_class::{Written, class};
use super::pod_fault::PodFault;
use super::pod_requests::MissingRequests;
use super::selector::labels;

/// What the pods of a template look like to whoever keeps room for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFacts {
    labels: Arc<Labels>,
    class: Arc<PodClass>,
    /// Why nothing can be planned for such pods, if so.
    pub faults: BTreeSet<PodFault>,
}

impl TemplateFacts {
    /// Lowers the template of pods in a namespace; one that says nothing is of pods that ask for nothing.
    ///
    /// Room comes after every real pod, so that its priority is the lowest there is.
    pub fn lower(namespace: &Text, template: Option<&core::PodTemplateSpec>, vocabulary: &Vocabulary) -> Self {
        let nothing = core::PodSpec::default();
        let spec = template.and_then(|template| template.spec.as_ref()).unwrap_or(&nothing);
        let metadata = template.and_then(|template| template.metadata.as_ref());
        let labels = labels(metadata.and_then(|metadata| metadata.labels.as_ref()));
        let missing = MissingRequests::AreLimits;
        let written = Written { namespace, labels: &labels, spec, status: None, missing };
        let mut faults = BTreeSet::new();
        let class = PodClass { priority: i32::MIN, ..class(&written, vocabulary, &mut faults) };
        Self { labels: Arc::new(labels), class: Arc::new(class), faults }
    }

    /// What one pod asks for, with `pods` = 1.
    pub fn requests(&self) -> &Resources {
        &self.class.requests
    }
}

/// What we keep of a PodTemplate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTemplateFacts {
    /// Namespace.
    pub namespace: Text,
    /// Name.
    pub name: Text,
    /// Counts its changes.
    pub generation: i64,
    /// Its pods.
    pub template: Arc<TemplateFacts>,
}

impl PodTemplateFacts {
    /// Lowers a PodTemplate; `None` without a name.
    pub fn lower(found: &core::PodTemplate, vocabulary: &Vocabulary) -> Option<Self> {
        let (namespace, name) = named(&found.metadata)?;
        let template = TemplateFacts::lower(&namespace, found.template.as_ref(), vocabulary);
        let generation = found.metadata.generation.unwrap_or(0);
        Some(Self { namespace, name, generation, template: Arc::new(template) })
    }
}

/// Kinds of workloads that a buffer may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// A Deployment.
    Deployment,
    /// A ReplicaSet.
    ReplicaSet,
    /// A StatefulSet.
    StatefulSet,
}

impl WorkloadKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::ReplicaSet, Self::StatefulSet];

    /// The name of the kind; the group of all is `apps`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
        }
    }

    /// The kind of this name.
    pub fn parse(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == kind)
    }
}

/// What we keep of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadFacts {
    /// Kind.
    pub kind: WorkloadKind,
    /// Namespace.
    pub namespace: Text,
    /// Name.
    pub name: Text,
    /// How many pods it is to have; one where it does not say.
    pub replicas: i32,
    /// Its pods.
    pub template: Arc<TemplateFacts>,
}

impl WorkloadFacts {
    /// Lowers a Deployment; `None` without a name.
    pub fn deployment(found: &Deployment, vocabulary: &Vocabulary) -> Option<Self> {
        let spec = found.spec.as_ref();
        let (replicas, template) = (spec.and_then(|spec| spec.replicas), spec.map(|spec| &spec.template));
        Self::of(WorkloadKind::Deployment, &found.metadata, replicas, template, vocabulary)
    }

    /// Lowers a ReplicaSet; `None` without a name.
    pub fn replica_set(found: &ReplicaSet, vocabulary: &Vocabulary) -> Option<Self> {
        let spec = found.spec.as_ref();
        let (replicas, template) = (spec.and_then(|spec| spec.replicas), spec.and_then(|spec| spec.template.as_ref()));
        Self::of(WorkloadKind::ReplicaSet, &found.metadata, replicas, template, vocabulary)
    }

    /// Lowers a StatefulSet; `None` without a name.
    pub fn stateful_set(found: &StatefulSet, vocabulary: &Vocabulary) -> Option<Self> {
        let spec = found.spec.as_ref();
        let (replicas, template) = (spec.and_then(|spec| spec.replicas), spec.map(|spec| &spec.template));
        Self::of(WorkloadKind::StatefulSet, &found.metadata, replicas, template, vocabulary)
    }

    fn of(
        kind: WorkloadKind,
        metadata: &ObjectMeta,
        replicas: Option<i32>,
        template: Option<&core::PodTemplateSpec>,
        vocabulary: &Vocabulary,
    ) -> Option<Self> {
        let (namespace, name) = named(metadata)?;
        let template = Arc::new(TemplateFacts::lower(&namespace, template, vocabulary));
        Some(Self { kind, namespace, name, replicas: replicas.unwrap_or(1), template })
    }
}

fn named(metadata: &ObjectMeta) -> Option<(Text, Text)> {
    let namespace = metadata.namespace.as_deref().unwrap_or("default");
    Some((Text::from(namespace), Text::from(metadata.name.as_deref()?)))
}

/// What a buffer keeps room for, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// The buffer.
    pub buffer: BufferKey,
    /// What a pod looks like.
    pub template: Arc<TemplateFacts>,
    /// For how many pods.
    pub count: u32,
}

/// Room that is planned for one buffer at most: a slip of the pen must not fill the memory.
const PLANNED_MAX: usize = 10_000;
/// What the names of pods that stand for room begin with.
const NAME_PREFIX: &str = "capacity-buffer-";

impl Headroom {
    /// Whether pods like these can be planned at all.
    pub fn can_be_planned(&self) -> bool {
        self.template.faults.is_empty()
    }

    /// The pods that stand for the room, no more than can reasonably be meant. `is_taken` are names that pods have which do exist.
    ///
    /// They mount nothing: a claim or a disk belongs to a pod that exists, and must not decide where room for others is.
    pub fn pods<'a>(&'a self, is_taken: impl Fn(&PodKey) -> bool + 'a) -> impl Iterator<Item = PendingPod> + 'a {
        let volumes = Arc::new(PodVolumes::none());
        let BufferKey { namespace, name } = &self.buffer;
        let keys = (1_u64..).map(move |number| PodKey::new(namespace.clone(), format!("{NAME_PREFIX}{name}-{number}")));
        let count = usize::try_from(self.count).unwrap_or(usize::MAX).min(PLANNED_MAX);
        keys.filter(move |key| !is_taken(key)).take(count).map(move |key| PendingPod {
            key,
            created: 0,
            class: Arc::clone(&self.template.class),
            labels: Arc::clone(&self.template.labels),
            volumes: Arc::clone(&volumes),
            purpose: Purpose::Headroom,
        })
    }

    /// The buffer that a pod stands for room of. Only asked about pods that do.
    pub fn buffer_of(pod: &PodKey) -> Option<BufferKey> {
        let (name, _) = pod.name.strip_prefix(NAME_PREFIX)?.rsplit_once('-')?;
        Some(BufferKey::new(Text::clone(&pod.namespace), name))
    }
}

#[cfg(test)]
mod tests {
    use model::{NamespaceScope, PodTerm};
    use serde_json::json;

    use super::*;
    use crate::lower::PodFacts;

    fn headroom(buffer: &str, count: u32) -> Headroom {
        let template = serde_json::from_value(json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "priority": 1000, "nodeSelector": {"team": "web"}, "nodeName": "here",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
            },
        }));
        let buffer = BufferKey::new("shop", buffer);
        let template = TemplateFacts::lower(&buffer.namespace, Some(&template.unwrap()), &Vocabulary::core());
        Headroom { buffer, template: Arc::new(template), count }
    }

    fn names(headroom: &Headroom, taken: &str) -> Vec<String> {
        headroom.pods(|key| &*key.name == taken).map(|pod| pod.key.to_string()).collect()
    }

    /// BUF-05: as many pods as there is to be room for, with names and labels of their own and the lowest priority.
    #[test]
    fn headroom_is_made_of_pods_that_do_not_exist() {
        let spare = headroom("spare", 2);
        assert_eq!(names(&spare, ""), ["shop/capacity-buffer-spare-1", "shop/capacity-buffer-spare-2"]);
        let pods: Vec<PendingPod> = spare.pods(|_| false).collect();
        assert!(pods.iter().all(|pod| pod.purpose == Purpose::Headroom && pod.class.priority == i32::MIN));
        let PodClass { requests, alternatives, .. } = &*pods[0].class;
        assert_eq!(requests.to_string(), "cpu=1 pods=1");
        assert_eq!(alternatives.iter().map(ToString::to_string).collect::<Vec<_>>(), ["team In [web]"]);
        assert_eq!(pods[0].labels.get("app").map(|app| &**app), Some("web"));
        assert!(spare.can_be_planned());
        assert_eq!(headroom("spare", 0).pods(|_| false).count(), 0);
    }

    /// BUF-16: what a template says about where its pods may be goes for the room that is kept for them.
    #[test]
    fn headroom_goes_where_its_pods_may_go() {
        let term = |key: &str, app: &str| json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}});
        let arm = json!({"matchExpressions": [{"key": "arch", "operator": "In", "values": ["arm64"]}]});
        let template = serde_json::from_value(json!({"spec": {
            "containers": [], "nodeSelector": {"team": "web"},
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [arm]}},
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term("zone", "db")]},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term("host", "web")]},
            },
        }}));
        let buffer = BufferKey::new("shop", "spare");
        let template = TemplateFacts::lower(&buffer.namespace, Some(&template.unwrap()), &Vocabulary::core());
        let spare = Headroom { buffer, template: Arc::new(template), count: 1 };
        let pod = spare.pods(|_| false).next().unwrap();
        let PodClass { alternatives, affinity, anti_affinity, .. } = &*pod.class;
        let alternatives: Vec<String> = alternatives.iter().map(ToString::to_string).collect();
        assert_eq!(alternatives, ["arch In [arm64], team In [web]"]);
        let keys = |terms: &[PodTerm]| terms.iter().map(|term| term.topology_key.to_string()).collect::<Vec<_>>();
        assert_eq!((keys(affinity), keys(anti_affinity)), (vec!["zone".to_owned()], vec!["host".to_owned()]));
    }

    /// BUF-16: affinity that names no namespace speaks of pods beside the template, wherever that is written.
    #[test]
    fn headroom_looks_for_pods_of_its_own_namespace() {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}});
        let rules = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        let template =
            json!({"spec": {"containers": [], "affinity": {"podAffinity": rules, "podAntiAffinity": rules}}});
        let metadata = json!({"name": "web", "namespace": "shop"});
        let alone = serde_json::from_value(json!({"metadata": metadata, "template": template})).unwrap();
        let owned = json!({"metadata": metadata, "spec": {"selector": {}, "template": template}});
        let owned = serde_json::from_value(owned).unwrap();
        let core = Vocabulary::core();
        let found = [
            PodTemplateFacts::lower(&alone, &core).unwrap().template,
            WorkloadFacts::deployment(&owned, &core).unwrap().template,
        ];
        for template in found {
            let PodClass { affinity, anti_affinity, .. } = &*template.class;
            let spoken_of: Vec<&NamespaceScope> =
                affinity.iter().chain(anti_affinity).map(|term| &term.namespaces).collect();
            assert_eq!(spoken_of, [&NamespaceScope::only("shop"); 2]);
        }
    }

    /// BUF-16: room is kept by the rules that pods of the template have, those that speak of their labels among them.
    #[test]
    fn headroom_has_the_rules_of_its_pods() {
        let term = json!({"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["revision"]});
        let rules = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        let template = json!({
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "revision": "2"}},
            "spec": {
                "containers": [], "affinity": {"podAffinity": rules, "podAntiAffinity": rules},
                "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "matchLabelKeys": ["revision"],
                    "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}],
            },
        });
        let core = Vocabulary::core();
        let pod = PodFacts::lower(&serde_json::from_value(template.clone()).unwrap(), &core).unwrap();
        let written = serde_json::from_value(template).unwrap();
        let found = TemplateFacts::lower(&Text::from("shop"), Some(&written), &core);
        let rules = |class: &PodClass| PodClass { priority: 0, requests: Resources::none(), ..class.clone() };
        assert_eq!(rules(&found.class), rules(&pod.class));
    }

    /// BUF-17: claims that are not there, and that nobody will make, do not keep room from being planned.
    #[test]
    fn headroom_mounts_nothing() {
        assert!(headroom("spare", 1).pods(|_| false).all(|pod| *pod.volumes == PodVolumes::none()));
    }

    #[test]
    fn a_pod_that_exists_keeps_its_name() {
        let taken = "capacity-buffer-spare-1";
        assert_eq!(names(&headroom("spare", 1), taken), ["shop/capacity-buffer-spare-2"]);
    }

    /// BUF-19: the name of a buffer may end like the number of a pod; its namespace tells it from its namesakes.
    #[test]
    fn pods_know_their_buffer() {
        for buffer in ["spare", "spare-1", "1"] {
            let found: Vec<_> = headroom(buffer, 2).pods(|_| false).map(|pod| Headroom::buffer_of(&pod.key)).collect();
            assert_eq!(found, vec![Some(BufferKey::new("shop", buffer)); 2]);
        }
    }

    /// BUF-10: each kind of workload says how many pods it is to have.
    #[test]
    fn workloads_say_how_many_pods_they_have() {
        let found = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 3,
            "selector": {}, "serviceName": "web", "template": {"spec": {"containers": []}}}});
        let core = Vocabulary::core();
        let lowered = [
            WorkloadFacts::deployment(&serde_json::from_value(found.clone()).unwrap(), &core),
            WorkloadFacts::replica_set(&serde_json::from_value(found.clone()).unwrap(), &core),
            WorkloadFacts::stateful_set(&serde_json::from_value(found).unwrap(), &core),
        ];
        let counted = lowered.map(|workload| workload.map(|workload| (workload.kind, workload.replicas)).unwrap());
        assert_eq!(counted, WorkloadKind::ALL.map(|kind| (kind, 3)));
    }

    #[test]
    fn workloads_without_a_number_have_one_replica() {
        let deployment = |spec: serde_json::Value| {
            let found = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
            WorkloadFacts::deployment(&serde_json::from_value(found).unwrap(), &Vocabulary::core()).unwrap()
        };
        let template = json!({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}});
        let found = deployment(json!({"selector": {}, "template": template}));
        assert_eq!((found.replicas, found.template.requests().to_string()), (1, "cpu=2 pods=1".to_owned()));
        assert_eq!(deployment(json!({"selector": {}, "replicas": 0, "template": template})).replicas, 0);
    }
}
