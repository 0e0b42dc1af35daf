//! What a pod asks for in all.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::{ResourceName, Resources, parse_quantity};

/// Reads a list of quantities; one that cannot be read, which the API does not let in, counts as nothing.
pub(crate) fn resources(quantities: Option<&BTreeMap<String, Quantity>>) -> Resources {
    let read = |(name, quantity): (&String, &Quantity)| {
        let name = ResourceName::new(name.as_str());
        let amount = parse_quantity(&name, &quantity.0).ok()?;
        Some((name, amount))
    };
    quantities.into_iter().flatten().filter_map(read).collect()
}

/// The requests of a pod as the scheduler counts them: containers together with sidecars, or the largest moment of
/// initialisation, whichever is more, raised to what the pod asks for as a whole, plus overhead.
pub(crate) fn requests(pod: &Pod) -> Resources {
    let Some(spec) = &pod.spec else { return Resources::none() };
    let mut sum = of_containers(spec);
    let whole = spec.resources.as_ref().map(|whole| resources(whole.requests.as_ref()));
    for (name, amount) in whole.iter().flat_map(Resources::iter) {
        sum.set(name.clone(), amount);
    }
    sum.add(&resources(spec.overhead.as_ref()));
    sum
}

fn of_containers(spec: &PodSpec) -> Resources {
    let of =
        |container: &Container| resources(container.resources.as_ref().and_then(|wanted| wanted.requests.as_ref()));
    let mut running = Resources::none();
    spec.containers.iter().for_each(|container| running.add(&of(container)));
    let mut sidecars = Resources::none();
    let mut largest_start = Resources::none();
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&of(container));
            largest_start.raise_to(&sidecars);
        } else {
            largest_start.raise_to(&sidecars.plus(&of(container)));
        }
    }
    running.add(&sidecars);
    running.raise_to(&largest_start);
    running
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_count_the_hardest_moment() {
        let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
        let sidecar =
            |cpu: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        let table = [
            (json!({"containers": [container("100m"), container("1")]}), "cpu=1100m"),
            (json!({"containers": [container("100m")], "initContainers": [container("2")]}), "cpu=2"),
            (json!({"containers": [container("1")], "initContainers": [sidecar("1"), container("500m")]}), "cpu=2"),
            (json!({"containers": [container("1")], "initContainers": [container("500m"), sidecar("1")]}), "cpu=2"),
            (json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), "cpu=1250m"),
            (json!({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}), "cpu=3"),
            (json!({"containers": [{"name": "c"}]}), ""),
        ];
        for (spec, expected) in table {
            let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            assert_eq!(requests(&pod).to_string(), expected);
        }
    }
}
