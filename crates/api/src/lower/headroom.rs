//! Room that a capacity buffer keeps free, as pods that nobody made.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use model::{Labels, PendingPod, PodClass, PodKey, PodVolumes, Purpose, Text, Vocabulary};

use super::pod_class::{Written, class};
use super::pod_fault::PodFault;
use super::pod_requests::MissingRequests;
use super::selector::labels;

/// What a buffer keeps room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomFacts {
    namespace: Text,
    buffer: Text,
    labels: Arc<Labels>,
    class: Arc<PodClass>,
    /// Why nothing can be planned for it, if so.
    pub faults: BTreeSet<PodFault>,
}

impl HeadroomFacts {
    /// Lowers the template of a buffer's pods; `None` for a template without a spec.
    ///
    /// Room comes after every real pod, so that its priority is the lowest there is.
    pub fn lower(buffer: &PodKey, template: &core::PodTemplateSpec, vocabulary: &Vocabulary) -> Option<Self> {
        let spec = template.spec.as_ref()?;
        let labels = labels(template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref()));
        let PodKey { namespace, name } = buffer.clone();
        let missing = MissingRequests::AreLimits;
        let written = Written { namespace: &namespace, labels: &labels, spec, status: None, missing };
        let mut faults = BTreeSet::new();
        let class = PodClass { priority: i32::MIN, ..class(&written, vocabulary, &mut faults) };
        Some(Self { buffer: name, labels: Arc::new(labels), class: Arc::new(class), faults, namespace })
    }

    /// Room for so many pods. They mount nothing: a claim or a disk belongs to a pod that exists, and must not decide
    /// where room for others is.
    pub fn pods(&self, count: u32) -> impl Iterator<Item = PendingPod> + '_ {
        let volumes = Arc::new(PodVolumes::none());
        (1..=count).map(move |number| PendingPod {
            key: PodKey::new(Text::clone(&self.namespace), format!("capacity-buffer-{}-{number}", self.buffer)),
            created: 0,
            class: Arc::clone(&self.class),
            labels: Arc::clone(&self.labels),
            volumes: Arc::clone(&volumes),
            purpose: Purpose::Headroom,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts() -> HeadroomFacts {
        let template = serde_json::from_value(json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "priority": 1000, "nodeSelector": {"team": "web"},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
            },
        }));
        let buffer = PodKey::new("shop", "spare");
        HeadroomFacts::lower(&buffer, &template.unwrap(), &Vocabulary::core()).unwrap()
    }

    /// BUF-05: as many pods as there is to be room for, with names and labels of their own and the lowest priority.
    #[test]
    fn headroom_is_made_of_pods_that_do_not_exist() {
        let facts = facts();
        let pods: Vec<PendingPod> = facts.pods(2).collect();
        let names: Vec<String> = pods.iter().map(|pod| pod.key.to_string()).collect();
        assert_eq!(names, ["shop/capacity-buffer-spare-1", "shop/capacity-buffer-spare-2"]);
        assert!(pods.iter().all(|pod| pod.purpose == Purpose::Headroom && pod.class.priority == i32::MIN));
        let PodClass { requests, alternatives, .. } = &*pods[0].class;
        assert_eq!(requests.to_string(), "cpu=1 pods=1");
        assert_eq!(alternatives.iter().map(ToString::to_string).collect::<Vec<_>>(), ["team In [web]"]);
        assert_eq!(pods[0].labels.get("app").map(|app| &**app), Some("web"));
        assert!(facts.faults.is_empty());
        assert_eq!(facts.pods(0).count(), 0);
    }

    /// BUF-17: claims that are not there, and that nobody will make, do not keep room from being planned.
    #[test]
    fn headroom_mounts_nothing() {
        assert!(facts().pods(1).all(|pod| *pod.volumes == PodVolumes::none()));
    }
}
