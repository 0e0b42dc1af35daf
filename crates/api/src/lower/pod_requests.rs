//! What a pod asks for in all, reckoned as the kube-scheduler does.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::{ResourceName, Resources};

use super::selector::resources;

/// Whether limits stand in for requests that are missing; the API server does that for pods, but not for templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingRequests {
    AreZero,
    AreLimits,
}

/// Effective requests: containers and sidecars together or the hungriest init step, whichever is more, pod-level
/// resources over both, plus the runtime's overhead and one of `pods`.
pub(super) fn effective(spec: &core::PodSpec, status: Option<&core::PodStatus>, missing: MissingRequests) -> Resources {
    let allocated = allocated_by_container(status);
    let of_container = |container: &core::Container| {
        let mut requests = container_requests(container.resources.as_ref(), missing);
        allocated.get(container.name.as_str()).iter().for_each(|amounts| requests.raise_to(amounts));
        requests
    };
    largest_moment(spec, of_container, &container_requests(spec.resources.as_ref(), MissingRequests::AreLimits))
}

/// Effective limits, reckoned like requests.
pub(super) fn limits(spec: &core::PodSpec) -> Resources {
    let of = |written: Option<&core::ResourceRequirements>| {
        written.and_then(|written| written.limits.as_ref()).map(resources).unwrap_or_default()
    };
    largest_moment(spec, |container| of(container.resources.as_ref()), &of(spec.resources.as_ref()))
}

/// The most that a pod holds at once.
fn largest_moment(
    spec: &core::PodSpec,
    of_container: impl Fn(&core::Container) -> Resources,
    pod_level: &Resources,
) -> Resources {
    let mut sidecars = Resources::none();
    let mut init_peak = Resources::none();
    for container in spec.init_containers.iter().flatten() {
        let requests = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&requests);
            init_peak.raise_to(&sidecars);
        } else {
            init_peak.raise_to(&sidecars.plus(&requests));
        }
    }
    let mut total = sidecars;
    spec.containers.iter().for_each(|container| total.add(&of_container(container)));
    total.raise_to(&init_peak);
    pod_level.iter().for_each(|(name, amount)| total.set(name.clone(), amount));
    total.add(&spec.overhead.as_ref().map(resources).unwrap_or_default());
    total.with(ResourceName::pods(), 1)
}

/// During a resize in place the kubelet may still hold more than the spec says.
fn allocated_by_container(status: Option<&core::PodStatus>) -> BTreeMap<&str, Resources> {
    let statuses = status.into_iter().flat_map(|status| status.container_statuses.iter().flatten());
    let allocated = |container: &'_ core::ContainerStatus| container.allocated_resources.as_ref().map(resources);
    statuses.filter_map(|container| Some((container.name.as_str(), allocated(container)?))).collect()
}

fn container_requests(written: Option<&core::ResourceRequirements>, missing: MissingRequests) -> Resources {
    let Some(written) = written else { return Resources::none() };
    let quantities = |amounts: &Option<BTreeMap<String, Quantity>>| amounts.as_ref().map(resources).unwrap_or_default();
    let mut requests = quantities(&written.requests);
    if missing == MissingRequests::AreLimits {
        let limits = quantities(&written.limits);
        for (name, amount) in limits.iter().filter(|(name, _)| !quantities(&written.requests).names(name)) {
            requests.set(name.clone(), amount);
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(yaml: serde_json::Value) -> core::PodSpec {
        serde_json::from_value(yaml).unwrap()
    }

    fn container(cpu: &str) -> serde_json::Value {
        serde_json::json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    /// PROV-30, PROV-60: init containers, sidecars, overhead and pod-level resources.
    #[test]
    fn the_largest_moment_of_a_pod_counts() {
        let sidecar = serde_json::json!(
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}});
        let table = [
            (serde_json::json!({"containers": [container("1"), container("2")]}), "cpu=3 pods=1"),
            (serde_json::json!({"containers": [container("1")], "initContainers": [container("2")]}), "cpu=2 pods=1"),
            (
                serde_json::json!({"containers": [container("1")], "initContainers": [sidecar, container("2")]}),
                "cpu=2500m pods=1",
            ),
            (
                serde_json::json!({"containers": [container("1")], "initContainers": [container("1200m"), sidecar]}),
                "cpu=1500m pods=1",
            ),
            (serde_json::json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), "cpu=1250m pods=1"),
            (
                serde_json::json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}),
                "cpu=4 pods=1",
            ),
        ];
        for (pod, expected) in table {
            assert_eq!(effective(&spec(pod), None, MissingRequests::AreZero).to_string(), expected);
        }
    }

    /// PROV-31: while a pod shrinks in place the node still holds the larger amount.
    #[test]
    fn a_resize_counts_the_larger_amount() {
        let status: core::PodStatus = serde_json::from_value(serde_json::json!(
            {"containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "allocatedResources": {"cpu": "3"}}]}))
        .unwrap();
        let pod = spec(serde_json::json!({"containers": [container("1")]}));
        assert_eq!(effective(&pod, Some(&status), MissingRequests::AreZero).to_string(), "cpu=3 pods=1");
    }
}
