//! PodDisruptionBudgets.

use std::collections::BTreeMap;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What we keep of a PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetFacts {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Which pods it protects.
    selector: Option<LabelSelector>,
    /// How many of them may go now.
    pub allowed: i32,
    /// It can never allow an eviction, whatever happens.
    pub allows_none_ever: bool,
    /// Pods that are not ready may go regardless.
    pub spares_only_healthy: bool,
}

impl BudgetFacts {
    /// Lowers a budget; `None` without a name.
    pub fn lower(budget: &PodDisruptionBudget) -> Option<Self> {
        let spec = budget.spec.as_ref()?;
        let is = |limit: &Option<IntOrString>, number: i32, text: &str| match limit {
            Some(IntOrString::Int(found)) => *found == number,
            Some(IntOrString::String(found)) => found == text,
            None => false,
        };
        let never = is(&spec.max_unavailable, 0, "0%")
            || matches!(&spec.min_available, Some(IntOrString::String(text)) if text == "100%");
        Some(Self {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            name: budget.metadata.name.clone()?,
            selector: spec.selector.clone(),
            allowed: budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or(0),
            allows_none_ever: never,
            spares_only_healthy: spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
        })
    }

    /// Whether the budget protects a pod with these labels. No selector protects nothing, an empty one everything.
    pub fn protects(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        namespace == self.namespace && self.selector.as_ref().is_some_and(|selector| selects(selector, labels))
    }
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    equal
        && selector.match_expressions.iter().flatten().all(|expression| {
            let value = labels.get(&expression.key);
            let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
            match expression.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}
