//! Label selectors, node selector terms and tolerations, on Kubernetes' own types.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

type Labels = BTreeMap<String, String>;

/// Whether labels match a selector. An empty selector matches everything.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let exact = selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted));
    exact
        && selector.match_expressions.iter().flatten().all(|expression| {
            let listed = |found: &String| expression.values.iter().flatten().any(|wanted| wanted == found);
            match (expression.operator.as_str(), value(&expression.key)) {
                ("In", found) => found.is_some_and(listed),
                ("NotIn", found) => !found.is_some_and(listed),
                ("Exists", found) => found.is_some(),
                ("DoesNotExist", found) => found.is_none(),
                _ => false,
            }
        })
}

/// Whether a node is one that a pod's node name, node selector and required node affinity ask for.
pub(crate) fn selects_node(pod: &PodSpec, node: &Node) -> bool {
    let none = Labels::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let name = node.metadata.name.as_deref().unwrap_or("");
    let named = pod.node_name.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == name);
    let selected = pod.node_selector.iter().flatten().all(|(key, wanted)| labels.get(key) == Some(wanted));
    let required = pod
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    named
        && selected
        && required
            .is_none_or(|required| required.node_selector_terms.iter().any(|term| term_matches(term, labels, name)))
}

/// Whether a node selector term matches; a term without any condition matches nothing.
pub(crate) fn term_matches(term: &NodeSelectorTerm, labels: &Labels, name: &str) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let by_label =
        |wanted: &NodeSelectorRequirement| requirement_holds(wanted, labels.get(&wanted.key).map(String::as_str));
    let by_field =
        |wanted: &NodeSelectorRequirement| wanted.key == "metadata.name" && requirement_holds(wanted, Some(name));
    expressions.iter().all(by_label) && fields.iter().all(by_field)
}

fn requirement_holds(wanted: &NodeSelectorRequirement, found: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = |found: &str| values.iter().any(|value| value == found);
    let compared = |found: &str| Some((found.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match wanted.operator.as_str() {
        "In" => found.is_some_and(listed),
        "NotIn" => !found.is_some_and(listed),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => found.and_then(compared).is_some_and(|(found, bound)| found > bound),
        "Lt" => found.and_then(compared).is_some_and(|(found, bound)| found < bound),
        _ => false,
    }
}

/// Whether a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let key = toleration.key.as_deref().unwrap_or("");
    let effect = toleration.effect.as_deref().unwrap_or("");
    let value = |text: &Option<String>| text.clone().unwrap_or_default();
    let covers_key = key.is_empty() || key == taint.key;
    let covers_value = match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        "Equal" | "" => !key.is_empty() && value(&toleration.value) == value(&taint.value),
        _ => false,
    };
    (effect.is_empty() || effect == taint.effect) && covers_key && covers_value
}

/// Whether any of the tolerations covers a taint.
pub(crate) fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_match_as_the_api_says() {
        let labels = Labels::from([("app".to_owned(), "web".to_owned())]);
        let table = [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}), false),
            (json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}), true),
            (json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), true),
        ];
        for (selector, expected) in table {
            let parsed: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(matches(&parsed, Some(&labels)), expected, "{selector}");
        }
    }

    #[test]
    fn tolerations_cover_taints_as_the_api_says() {
        let taint: Taint = serde_json::from_value(json!({"key": "team", "value": "a", "effect": "NoExecute"})).unwrap();
        let table = [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "team", "operator": "Exists"}), true),
            (json!({"key": "team", "value": "a"}), true),
            (json!({"key": "team", "operator": "Equal", "value": "b"}), false),
            (json!({"key": "team", "operator": "Exists", "effect": "NoSchedule"}), false),
            (json!({"key": "other", "operator": "Exists"}), false),
        ];
        for (toleration, expected) in table {
            let parsed: Toleration = serde_json::from_value(toleration.clone()).unwrap();
            assert_eq!(tolerates(&parsed, &taint), expected, "{toleration}");
        }
    }
}
