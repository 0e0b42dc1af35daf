//! The Node that stands for a machine, and what can be read back from it.

use std::collections::BTreeMap;

use api::{NodeClaim, ResourceList, labels};
use cloud::{LAUNCH_ID, LaunchId, LaunchRequest, Launched};
use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use model::{ClaimName, NodeName, ProviderId, Requirements, Resources, format_quantity};

use crate::choose::Choice;
use crate::{claim, hash};

/// What every provider id begins with; the name of the Node follows.
pub const PROVIDER_PREFIX: &str = "kwok://";

/// Label and annotation by which the KWOK controller knows the nodes that are not real.
const KWOK_NODE: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
/// The label by which KWOK controllers share the nodes; there is one share.
const KWOK_PARTITION: (&str, &str) = ("kwok-partition", "a");
/// Where eks-node-viewer looks for the price.
const PRICE_LABEL: &str = "eks-node-viewer/instance-price";

const NAME_LETTERS: u32 = 5;

/// The name of the Node that a launch makes: the same launch always makes the same Node.
pub fn node_name(claim: &str, launch: &LaunchId) -> NodeName {
    let drawn = hash::hash(&[launch.as_str()]);
    let number = drawn & u64::from(u32::MAX);
    let letter = |place| char::from(b'a' + ((drawn >> 32) / 26_u64.pow(place) % 26) as u8);
    let letters: String = (0..NAME_LETTERS).map(letter).collect();
    NodeName::new(format!("kwok-{claim}-{letters}-{number}"))
}

/// The identity of the machine that a Node stands for.
pub fn provider_id(node: &NodeName) -> ProviderId {
    ProviderId::new(format!("{PROVIDER_PREFIX}{node}"))
}

/// The Node that stands for a machine, if the machine is one of ours.
pub fn node_of(id: &ProviderId) -> Option<NodeName> {
    id.as_str().strip_prefix(PROVIDER_PREFIX).filter(|name| !name.is_empty()).map(NodeName::new)
}

/// The launch a Node came from.
pub fn launch_of(node: &Node) -> Option<LaunchId> {
    node.metadata.annotations.as_ref()?.get(LAUNCH_ID).map(LaunchId::new)
}

/// The claim a Node was made for.
pub fn claim_of(node: &Node) -> Option<ClaimName> {
    // The host is named after the claim, and nobody may rename it.
    node.metadata.labels.as_ref()?.get(labels::HOSTNAME).map(|name| ClaimName::new(name.as_str()))
}

/// The Node for a launch. It belongs to its claim, so that it cannot outlive it even if nobody deletes it.
pub fn build(request: &LaunchRequest, choice: &Choice) -> Node {
    let claim = &*request.claim;
    let name = node_name(claim::name(claim), &request.id);
    let annotations = [KWOK_NODE, (LAUNCH_ID, request.id.as_str())];
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            labels: Some(node_labels(claim, choice)),
            annotations: Some(annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: owner(claim).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(provider_id(&name).to_string()),
            taints: Some(vec![unregistered()]),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            capacity: Some(quantities(&choice.instance_type.capacity)),
            allocatable: Some(quantities(&choice.instance_type.allocatable)),
            phase: Some("Pending".to_owned()),
            ..NodeStatus::default()
        }),
    }
}

/// What the controllers are told about a Node: the same before it exists and long after.
pub fn launched(node: &Node) -> Launched {
    let Node { metadata, spec, status } = node;
    let id = spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default();
    let mut node_labels = metadata.labels.clone().unwrap_or_default();
    // Marks that the controllers set on the Node later say nothing about the machine.
    node_labels.retain(|key, _| ![labels::REGISTERED, labels::INITIALIZED].contains(&key.as_str()));
    let amounts = |of: fn(&NodeStatus) -> &Option<ResourceList>| {
        status.as_ref().and_then(|status| of(status).clone()).unwrap_or_default()
    };
    Launched {
        provider_id: ProviderId::new(id),
        image_id: String::new(),
        labels: node_labels,
        annotations: BTreeMap::new(),
        capacity: amounts(|status| &status.capacity),
        allocatable: amounts(|status| &status.allocatable),
    }
}

fn node_labels(claim: &NodeClaim, choice: &Choice) -> BTreeMap<String, String> {
    let mut found = claim.metadata.labels.clone().unwrap_or_default();
    let machine = choice.instance_type.requirements.and(&choice.offering.requirements);
    let required = claim::requirements(claim);
    found.extend(single_values(&required));
    found.extend(single_values(&machine));
    // A machine that could run several systems runs one: what the claim wants, or else the first.
    for (key, offered) in machine.iter().filter(|(_, offered)| offered.single_value().is_none()) {
        let admitted = required.get(key).map_or_else(|| offered.clone(), |wanted| offered.intersection(wanted));
        found.extend(admitted.values().next().map(|value| (key.to_string(), value.to_string())));
    }
    let price = format!("{:.6}", choice.offering.price.dollars());
    let own = [KWOK_NODE, KWOK_PARTITION, (PRICE_LABEL, &price), (labels::HOSTNAME, claim::name(claim))];
    found.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
    found
}

fn single_values(requirements: &Requirements) -> impl Iterator<Item = (String, String)> {
    let single = requirements.iter().filter_map(|(key, requirement)| requirement.single_value().map(|one| (key, one)));
    single.map(|(key, value)| (key.to_string(), value.to_string()))
}

fn unregistered() -> Taint {
    Taint { key: labels::UNREGISTERED_TAINT.to_owned(), effect: "NoExecute".to_owned(), ..Taint::default() }
}

/// A claim without an identity has not been stored, and what is not stored cannot own anything.
fn owner(claim: &NodeClaim) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodeClaim".to_owned(),
        name: claim.metadata.name.clone()?,
        uid: claim.metadata.uid.clone()?,
        block_owner_deletion: Some(true),
        controller: None,
    })
}

fn quantities(resources: &Resources) -> ResourceList {
    let quantity = |(name, amount)| (format!("{name}"), Quantity(format_quantity(name, amount)));
    resources.iter().map(quantity).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::choose::choose;
    use crate::{instance_types, instance_types_file};

    fn request() -> LaunchRequest {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": "default-x7k2p",
                "uid": "11111111-2222-3333-4444-555555555555",
                "labels": {"karpenter.sh/nodepool": "default", "team": "blue"},
            },
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In",
                     "values": ["s-4x-arm64-linux", "x.large"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-b"]},
                    {"key": "karpenter.kwok.sh/kwoknodeclass", "operator": "In", "values": ["default"]},
                    {"key": "topology.kubernetes.io/region", "operator": "In", "values": ["here"]},
                    {"key": "tier", "operator": "In", "values": ["one", "two"]},
                    {"key": "rack", "operator": "Exists"},
                ],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            },
        });
        LaunchRequest { id: LaunchId::new("launch-1"), claim: Arc::new(serde_json::from_value(claim).unwrap()) }
    }

    fn built() -> Node {
        let request = request();
        build(&request, &choose(&instance_types::built_in(), &request.claim).unwrap())
    }

    /// KWOK-04: the labels of a new node.
    #[test]
    fn labels_come_from_claim_type_and_offering() {
        let expected = [
            ("eks-node-viewer/instance-price", "0.117180"),
            ("karpenter.kwok.sh/instance-cpu", "4"),
            ("karpenter.kwok.sh/instance-family", "s"),
            ("karpenter.kwok.sh/instance-memory", "16Gi"),
            ("karpenter.kwok.sh/instance-size", "4"),
            ("karpenter.kwok.sh/kwoknodeclass", "default"),
            ("karpenter.sh/capacity-type", "on-demand"),
            ("karpenter.sh/nodepool", "default"),
            ("kubernetes.io/arch", "arm64"),
            ("kubernetes.io/hostname", "default-x7k2p"),
            ("kubernetes.io/os", "linux"),
            ("kwok-partition", "a"),
            ("kwok.x-k8s.io/node", "fake"),
            ("node.kubernetes.io/instance-type", "s-4x-arm64-linux"),
            ("team", "blue"),
            ("topology.kubernetes.io/region", "here"),
            ("topology.kubernetes.io/zone", "test-zone-b"),
        ];
        let labels = built().metadata.labels.unwrap();
        let found: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    }

    /// KWOK-04: name, identity, taint, annotations, phase and owner of a new node.
    #[test]
    fn a_node_is_named_after_its_launch_and_owned_by_its_claim() {
        let Node { metadata, spec, status } = built();
        let name = metadata.name.unwrap();
        let tail = name.strip_prefix("kwok-default-x7k2p-").unwrap();
        let (letters, number) = tail.split_once('-').unwrap();
        assert!(letters.len() == 5 && letters.chars().all(|letter| letter.is_ascii_lowercase()), "{letters}");
        assert!(number.parse::<u32>().is_ok(), "{number}");
        let spec = spec.unwrap();
        assert_eq!(spec.provider_id.unwrap(), format!("kwok://{name}"));
        let taints: Vec<(String, String)> = spec.taints.unwrap().into_iter().map(|t| (t.key, t.effect)).collect();
        assert_eq!(taints, [("karpenter.sh/unregistered".to_owned(), "NoExecute".to_owned())]);
        assert_eq!(
            serde_json::to_value(metadata.annotations).unwrap(),
            json!({"karpenter.sh/launch-id": "launch-1", "kwok.x-k8s.io/node": "fake"})
        );
        assert_eq!(status.unwrap().phase.as_deref(), Some("Pending"));
        assert_eq!(
            serde_json::to_value(metadata.owner_references).unwrap(),
            json!([{
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "default-x7k2p",
                "uid": "11111111-2222-3333-4444-555555555555", "blockOwnerDeletion": true,
            }])
        );
    }

    /// KWOK-05. DIFFERS: the node has what its type has; the reference reports requests as capacity, which makes pool
    /// limits overshoot.
    #[test]
    fn capacity_is_that_of_the_type() {
        let status = built().status.unwrap();
        assert_eq!(
            serde_json::to_value(status.capacity).unwrap(),
            json!({"cpu": "4", "ephemeral-storage": "20Gi", "memory": "16Gi", "pods": "64"})
        );
        assert_eq!(
            serde_json::to_value(status.allocatable).unwrap(),
            json!({"cpu": "3900m", "ephemeral-storage": "20Gi", "memory": "16374Mi", "pods": "64"})
        );
    }

    /// A repeated launch makes the same node, another launch of the same claim makes another.
    #[test]
    fn names_follow_the_launch() {
        let name = |claim: &str, id: &str| node_name(claim, &LaunchId::new(id));
        assert_eq!(name("a", "1"), name("a", "1"));
        assert_ne!(name("a", "1"), name("a", "2"));
        assert_eq!(node_of(&provider_id(&name("a", "1"))), Some(name("a", "1")));
        assert_eq!(node_of(&ProviderId::new("aws:///us-west-2a/i-1")), None);
        assert_eq!(node_of(&ProviderId::new("kwok://")), None);
    }

    #[test]
    fn what_is_read_back_is_what_was_launched() {
        let mut node = built();
        let before = launched(&node);
        assert_eq!(before.provider_id.as_str(), node.spec.as_ref().unwrap().provider_id.as_deref().unwrap());
        assert_eq!(launch_of(&node), Some(LaunchId::new("launch-1")));
        let labels = node.metadata.labels.as_mut().unwrap();
        labels.insert("karpenter.sh/registered".into(), "true".into());
        labels.insert("karpenter.sh/initialized".into(), "true".into());
        assert_eq!(launched(&node), before);
    }

    /// A machine for several operating systems still carries one.
    #[test]
    fn an_open_label_is_settled() {
        let file = json!([{
            "name": "x.large", "architecture": "amd64", "operatingSystems": ["windows", "linux"],
            "resources": {"cpu": "4", "memory": "4Gi"},
            "offerings": [{"Price": 1, "Requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-b"]},
            ]}],
        }]);
        let types = instance_types_file::parse(&file.to_string()).unwrap();
        for (wanted, expected) in [(None, "linux"), (Some("windows"), "windows")] {
            let mut request = request();
            if let Some(system) = wanted {
                let requirement = json!({"key": "kubernetes.io/os", "operator": "In", "values": [system]});
                let claim = Arc::make_mut(&mut request.claim);
                claim.spec.requirements.push(serde_json::from_value(requirement).unwrap());
            }
            let node = build(&request, &choose(&types, &request.claim).unwrap());
            assert_eq!(node.metadata.labels.unwrap()["kubernetes.io/os"], expected);
        }
    }
}
