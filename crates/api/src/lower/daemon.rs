//! DaemonSets: what comes with every node.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;
use model::{PodClass, Text, Vocabulary};

use super::pod_class::{Written, claims_resources, class};
use super::pod_fault::PodFault;
use super::pod_requests::MissingRequests;
use super::selector::labels;

/// What we keep of a DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonFacts {
    /// Namespace and name, as `namespace/name`.
    pub name: Text,
    /// What its template says about its pods; `None` when they take no room that could be planned: no node can satisfy
    /// them, or they want dynamic resource claims and nobody could say on which nodes they run.
    pub template: Option<Arc<PodClass>>,
}

impl DaemonFacts {
    /// Lowers a DaemonSet; `None` without a name. Missing requests are taken from limits as the API server will do.
    pub fn lower(set: &DaemonSet, vocabulary: &Vocabulary) -> Option<Self> {
        let (namespace, name) = (set.metadata.namespace.as_deref()?, set.metadata.name.as_deref()?);
        let template = Self::template(set, namespace, vocabulary).map(Arc::new);
        Some(Self { name: Text::from(format!("{namespace}/{name}")), template })
    }

    fn template(set: &DaemonSet, namespace: &str, vocabulary: &Vocabulary) -> Option<PodClass> {
        let template = &set.spec.as_ref()?.template;
        let spec = template.spec.as_ref().filter(|spec| !claims_resources(spec))?;
        let labels = labels(template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref()));
        let namespace = Text::from(namespace);
        let missing = MissingRequests::AreLimits;
        let written = Written { namespace: &namespace, labels: &labels, spec, status: None, missing };
        // Daemons may select anything they like, our own labels included: those faults only matter for pods we make
        // nodes for. A daemon that no node can satisfy never takes room.
        let mut faults = BTreeSet::new();
        let class = class(&written, vocabulary, &mut faults);
        let is_nowhere = |fault: &PodFault| matches!(fault, PodFault::EmptyAffinity | PodFault::Contradiction { .. });
        (!faults.iter().any(is_nowhere)).then_some(class)
    }

    /// What the next pod of the set will look like, given its newest one: admission may have given it requests that the
    /// template does not name. Where it may run only the template knows; each pod is tied to its own node.
    pub fn next_pod(&self, newest: Option<&Arc<PodClass>>) -> Option<Arc<PodClass>> {
        let template = self.template.as_ref()?;
        let Some(newest) = newest else { return Some(Arc::clone(template)) };
        let next = PodClass {
            alternatives: template.alternatives.clone(),
            preferences: template.preferences.clone(),
            ..PodClass::clone(newest)
        };
        Some(if next == **template { Arc::clone(template) } else { Arc::new(next) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(template_spec: serde_json::Value) -> DaemonFacts {
        let set = serde_json::from_value(serde_json::json!({
            "metadata": {"namespace": "kube-system", "name": "agent"},
            "spec": {"selector": {}, "template": {"spec": template_spec}},
        }))
        .unwrap();
        DaemonFacts::lower(&set, &Vocabulary::core()).unwrap()
    }

    /// PROV-36
    #[test]
    fn limits_stand_in_for_missing_requests() {
        let spec = serde_json::json!({"containers": [{"name": "c",
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]});
        assert_eq!(set(spec).template.unwrap().requests.to_string(), "cpu=1 memory=1Gi pods=1");
    }

    /// The selector and the affinity exclude each other: the daemon takes no room anywhere.
    #[test]
    fn daemons_that_run_nowhere_take_no_room() {
        let term = serde_json::json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["db"]}]});
        let required = serde_json::json!({"nodeSelectorTerms": [term]});
        let spec = serde_json::json!({"containers": [{"name": "c"}], "nodeSelector": {"team": "web"}, "affinity":
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}});
        assert_eq!(set(spec).template, None);
    }

    /// DRA-02: by the pod or by a container.
    #[test]
    fn daemons_with_resource_claims_take_no_room() {
        let claims = serde_json::json!([{"name": "gpu"}]);
        let of_pod = serde_json::json!({"containers": [{"name": "c"}], "resourceClaims": claims});
        let of_container = serde_json::json!({"containers": [{"name": "c", "resources": {"claims": claims}}]});
        for spec in [of_pod, of_container] {
            assert_eq!(set(spec).template, None);
        }
    }

    /// PROV-35: requests come from the newest pod, where it may run from the template.
    #[test]
    fn the_newest_pod_tells_what_the_next_will_ask_for() {
        let term = |key: &str| serde_json::json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
        let spec = |cpu: &str, key: &str| {
            serde_json::json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], "affinity":
                {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term(key)]}}}})
        };
        let facts = set(spec("1", "team"));
        let live = set(spec("2", "other")).template;
        let next = facts.next_pod(live.as_ref()).unwrap();
        assert_eq!(next.requests.to_string(), "cpu=2 pods=1");
        assert_eq!(next.alternatives.iter().map(ToString::to_string).collect::<Vec<_>>(), ["team Exists"]);
        assert_eq!(facts.next_pod(None), facts.template);
    }
}
