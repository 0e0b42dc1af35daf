//! What users of `kubectl` see of each kind: names, scope, columns and subresources.

use api::{Flavour, custom_resource_definitions};
use expect_test::{Expect, expect};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

fn definition(kind: &str) -> CustomResourceDefinition {
    [Flavour::Kwok, Flavour::Eks]
        .into_iter()
        .flat_map(custom_resource_definitions)
        .find(|definition| definition.spec.names.kind == kind)
        .expect("a definition of this kind")
}

/// One line for the names, one for the version and its subresources, one per column (`+` for those shown by `-o wide`).
fn shown(definition: &CustomResourceDefinition) -> String {
    let names = &definition.spec.names;
    let [version] = definition.spec.versions.as_slice() else { panic!("one version") };
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
    let subresources = version.subresources.as_ref().expect("subresources");
    let scale = subresources.scale.as_ref().map_or(String::new(), |scale| {
        assert_eq!(scale.label_selector_path, None);
        format!(" scale {} {}", scale.spec_replicas_path, scale.status_replicas_path)
    });
    let mut lines = vec![
        format!(
            "{} {} {} {} [{}] [{}] {}",
            definition.metadata.name.as_deref().unwrap_or("?"),
            names.singular.as_deref().unwrap_or("?"),
            names.kind,
            names.list_kind.as_deref().unwrap_or("?"),
            list(&names.short_names),
            list(&names.categories),
            definition.spec.scope,
        ),
        format!(
            "{} served={} storage={}{}{scale}",
            version.name,
            version.served,
            version.storage,
            if subresources.status.is_some() { " status" } else { "" },
        ),
    ];
    lines.extend(version.additional_printer_columns.iter().flatten().map(|column| {
        let wide = match column.priority {
            None | Some(0) => "",
            Some(1) => "+",
            _ => "?",
        };
        format!("{wide}{} {} {}", column.name, column.type_, column.json_path)
    }));
    lines.join("\n") + "\n"
}

fn check(kind: &str, expected: &Expect) {
    expected.assert_eq(&shown(&definition(kind)));
}

/// API-01, API-02, API-20
#[test]
fn node_pool() {
    check(
        "NodePool",
        &expect![[r#"
        nodepools.karpenter.sh nodepool NodePool NodePoolList [] [karpenter] Cluster
        v1 served=true storage=true status scale .spec.replicas .status.nodes
        NodeClass string .spec.template.spec.nodeClassRef.name
        Nodes string .status.nodes
        Ready string .status.conditions[?(@.type=="Ready")].status
        Age date .metadata.creationTimestamp
        +Weight integer .spec.weight
        +CPU string .status.resources.cpu
        +Memory string .status.resources.memory
    "#]],
    );
}

/// API-03
#[test]
fn node_claim() {
    check(
        "NodeClaim",
        &expect![[r#"
        nodeclaims.karpenter.sh nodeclaim NodeClaim NodeClaimList [] [karpenter] Cluster
        v1 served=true storage=true status
        Type string .metadata.labels.node\.kubernetes\.io/instance-type
        Capacity string .metadata.labels.karpenter\.sh/capacity-type
        Zone string .metadata.labels.topology\.kubernetes\.io/zone
        Node string .status.nodeName
        Ready string .status.conditions[?(@.type=="Ready")].status
        Age date .metadata.creationTimestamp
        +ImageID string .status.imageID
        +ID string .status.providerID
        +NodePool string .metadata.labels.karpenter\.sh/nodepool
        +NodeClass string .spec.nodeClassRef.name
        +Drifted string .status.conditions[?(@.type=="Drifted")].status
    "#]],
    );
}

/// API-04
#[test]
fn node_overlay() {
    check(
        "NodeOverlay",
        &expect![[r#"
        nodeoverlays.karpenter.sh nodeoverlay NodeOverlay NodeOverlayList [overlays] [karpenter] Cluster
        v1alpha1 served=true storage=true status
        Ready string .status.conditions[?(@.type=="Ready")].status
        Age date .metadata.creationTimestamp
        +Weight integer .spec.weight
    "#]],
    );
}

/// API-05
#[test]
fn capacity_buffer() {
    check(
        "CapacityBuffer",
        &expect![[r#"
        capacitybuffers.autoscaling.x-k8s.io capacitybuffer CapacityBuffer CapacityBufferList [cb] [autoscaling] Namespaced
        v1beta1 served=true storage=true status
        Strategy string .spec.provisioningStrategy
        PodTemplate string .status.podTemplateRef.name
        Replicas integer .status.replicas
        ConditionsType string .status.conditions[*].type
        ConditionsStatus string .status.conditions[*].status
        ConditionsReason string .status.conditions[*].reason
        Age date .metadata.creationTimestamp
    "#]],
    );
}

/// API-06
#[test]
fn kwok_node_class() {
    check(
        "KWOKNodeClass",
        &expect![[r#"
        kwoknodeclasses.karpenter.kwok.sh kwoknodeclass KWOKNodeClass KWOKNodeClassList [kwoknc,kwokncs] [karpenter] Cluster
        v1alpha1 served=true storage=true status
    "#]],
    );
}

/// AWS-NC-01
#[test]
fn ec2_node_class() {
    check(
        "EC2NodeClass",
        &expect![[r#"
        ec2nodeclasses.karpenter.k8s.aws ec2nodeclass EC2NodeClass EC2NodeClassList [ec2nc,ec2ncs] [karpenter] Cluster
        v1 served=true storage=true status
        Ready string .status.conditions[?(@.type=="Ready")].status
        Age date .metadata.creationTimestamp
        +Role string .spec.role
    "#]],
    );
}
