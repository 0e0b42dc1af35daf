//! DaemonSets: what comes with every node.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;
use model::{Daemon, Text, Vocabulary};

use super::pod::{PodFault, class};
use super::pod_requests::MissingRequests;

/// The daemon of a DaemonSet, from its template; missing requests are taken from limits as the API server will do.
///
/// Daemons with dynamic resource claims are left out: we could not say on which nodes they run.
pub fn daemon(set: &DaemonSet, vocabulary: &Vocabulary) -> Option<Daemon> {
    let spec = set.spec.as_ref()?.template.spec.as_ref()?;
    if spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()) {
        return None;
    }
    let (namespace, name) = (set.metadata.namespace.as_deref()?, set.metadata.name.as_deref()?);
    // Daemons may select anything they like, our own labels included: those faults only matter for pods we make nodes
    // for. A daemon that no node can satisfy never takes room.
    let mut faults = BTreeSet::new();
    let class = class(spec, None, MissingRequests::AreLimits, vocabulary, &mut faults);
    if faults.iter().any(|fault| matches!(fault, PodFault::EmptyAffinity | PodFault::Contradiction { .. })) {
        return None;
    }
    Some(Daemon { name: Text::from(format!("{namespace}/{name}")), class: Arc::new(class) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(template_spec: serde_json::Value) -> DaemonSet {
        serde_json::from_value(serde_json::json!({
            "metadata": {"namespace": "kube-system", "name": "agent"},
            "spec": {"selector": {}, "template": {"spec": template_spec}},
        }))
        .unwrap()
    }

    /// PROV-36
    #[test]
    fn limits_stand_in_for_missing_requests() {
        let spec = serde_json::json!({"containers": [{"name": "c",
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]});
        let daemon = daemon(&set(spec), &Vocabulary::core()).unwrap();
        assert_eq!(daemon.class.requests.to_string(), "cpu=1 memory=1Gi pods=1");
    }

    /// The selector and the affinity exclude each other: the daemon takes no room anywhere.
    #[test]
    fn daemons_that_run_nowhere_are_left_out() {
        let term = serde_json::json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["db"]}]});
        let required = serde_json::json!({"nodeSelectorTerms": [term]});
        let spec = serde_json::json!({"containers": [{"name": "c"}], "nodeSelector": {"team": "web"}, "affinity":
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}});
        assert_eq!(daemon(&set(spec), &Vocabulary::core()), None);
    }

    /// DRA-02
    #[test]
    fn daemons_with_resource_claims_are_left_out() {
        let spec = serde_json::json!({"containers": [{"name": "c"}], "resourceClaims": [{"name": "gpu"}]});
        assert_eq!(daemon(&set(spec), &Vocabulary::core()), None);
    }
}
