//! PodDisruptionBudgets.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::{Labels, Selector};

use super::selector::label_selector;

/// What we keep of a PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetFacts {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Which pods it protects.
    selector: Selector,
    /// How many of them may go now.
    pub allowed: i32,
    /// It can never allow an eviction, whatever happens.
    pub allows_none_ever: bool,
    /// It wants at least as many healthy pods as there are.
    wants_all: bool,
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
            selector: label_selector(spec.selector.as_ref()),
            allowed: budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or(0),
            allows_none_ever: never,
            wants_all: budget.status.as_ref().is_some_and(wants_all),
            spares_only_healthy: spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
        })
    }

    /// Whether it would allow no eviction even if every pod it protects were healthy. Only other pods or another budget
    /// could change that.
    pub fn can_never_allow(&self) -> bool {
        self.allows_none_ever || self.wants_all
    }

    /// Whether the budget protects a pod with these labels. No selector protects nothing, an empty one everything.
    pub fn protects(&self, namespace: &str, labels: &Labels) -> bool {
        namespace == self.namespace && self.selector.matches(labels)
    }
}

fn wants_all(status: &PodDisruptionBudgetStatus) -> bool {
    let PodDisruptionBudgetStatus { desired_healthy, expected_pods, .. } = status;
    expected_pods.is_some_and(|expected| expected > 0 && desired_healthy.is_some_and(|desired| desired >= expected))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn budget(spec: Value) -> BudgetFacts {
        let budget = json!({"metadata": {"namespace": "shop", "name": "b"}, "spec": spec});
        BudgetFacts::lower(&serde_json::from_value(budget).unwrap()).unwrap()
    }

    #[test]
    fn selectors() {
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
        // Selector; whether it selects a pod of `app: web`, of `app: db`, and one without labels.
        let table = [
            (Value::Null, [false, false, false]),
            (json!({}), [true, true, true]),
            (json!({"matchLabels": {"app": "web"}}), [true, false, false]),
            (json!({"matchLabels": {"app": "web", "tier": "front"}}), [false, false, false]),
            (expression("In", &["web", "api"]), [true, false, false]),
            (expression("NotIn", &["web"]), [false, true, true]),
            (expression("Exists", &[]), [true, true, false]),
            (expression("DoesNotExist", &[]), [false, false, true]),
            (expression("Near", &["web"]), [false, false, false]),
            (
                json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
                [false, false, false],
            ),
        ];
        let pods = [Some("web"), Some("db"), None];
        for (selector, expected) in table {
            let budget = budget(json!({"selector": selector}));
            let labels = |app: Option<&str>| app.map(|app| ("app".into(), app.into())).into_iter().collect();
            assert_eq!(pods.map(|app| budget.protects("shop", &labels(app))), expected, "{selector}");
            assert!(pods.iter().all(|app| !budget.protects("elsewhere", &labels(*app))), "{selector}");
        }
    }

    /// A budget that is used up may allow again when pods recover; one that wants every pod there is never will.
    #[test]
    fn budgets_that_wait_and_budgets_that_never_allow() {
        let status = |desired: i32, expected: i32| {
            let status = json!({"currentHealthy": 0, "desiredHealthy": desired, "disruptionsAllowed": 0,
                "expectedPods": expected});
            let spec = json!({"minAvailable": desired});
            let budget = json!({"metadata": {"namespace": "shop", "name": "b"}, "spec": spec, "status": status});
            BudgetFacts::lower(&serde_json::from_value(budget).unwrap()).unwrap().can_never_allow()
        };
        let found = [(2, 3), (3, 3), (4, 3), (2, 0)].map(|(desired, expected)| status(desired, expected));
        assert_eq!(found, [false, true, true, false]);
        assert!(budget(json!({"maxUnavailable": 0})).can_never_allow(), "nobody has counted yet, and need not");
    }

    #[test]
    fn budgets_that_never_allow_an_eviction() {
        let table = [
            (json!({"maxUnavailable": 0}), true),
            (json!({"maxUnavailable": "0%"}), true),
            (json!({"minAvailable": "100%"}), true),
            (json!({"maxUnavailable": 1}), false),
            (json!({"maxUnavailable": "10%"}), false),
            (json!({"minAvailable": 100}), false),
            (json!({"minAvailable": "99%"}), false),
            (json!({}), false),
        ];
        for (spec, expected) in table {
            assert_eq!(budget(spec.clone()).allows_none_ever, expected, "{spec}");
        }
        assert!(budget(json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"})).spares_only_healthy);
        assert!(!budget(json!({"unhealthyPodEvictionPolicy": "IfHealthyBudget"})).spares_only_healthy);
        // Before its controller has counted, a budget allows nothing.
        assert_eq!(budget(json!({})).allowed, 0);
    }
}
