//! The documents that clients ask for.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use schema::{FieldValidation, Schemas};
use serde_json::Value;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

fn schemas() -> Schemas {
    let mut schemas = Schemas::bundled();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/karpenter-kwok/crds");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        schemas.add_definition(&serde_yaml_ng::from_str(&text).unwrap()).unwrap();
    }
    schemas
}

fn document(schemas: &Schemas, path: &str, accept: &str) -> Value {
    let document = schemas.document(path, accept).unwrap_or_else(|| panic!("{path}"));
    assert!(document.content_type.starts_with("application/json"));
    serde_json::from_slice(&document.body).unwrap()
}

#[test]
fn every_built_in_kind_has_a_schema() {
    let schemas = Schemas::bundled();
    for resource in schemas.resources() {
        let found = resource.schema().decode(br#"{"metadata": {"nonsense": 1}}"#, FieldValidation::Warn).unwrap();
        assert_eq!(found.warnings, ["unknown field \"metadata.nonsense\""], "{}", resource.kind);
        assert!(resource.schema().shape().field("metadata").is_some(), "{}", resource.kind);
    }
    assert!(schemas.resources().count() > 30);
    for (group, version, kind) in [
        ("", "v1", "Binding"),
        ("", "v1", "DeleteOptions"),
        ("autoscaling", "v1", "Scale"),
        ("policy", "v1", "Eviction"),
    ] {
        assert!(schemas.body(group, version, kind).unwrap().shape().field("kind").is_some(), "{kind}");
    }
}

#[test]
fn every_listed_document_is_there() {
    let schemas = schemas();
    let groups = document(&schemas, "/apis", "");
    for group in groups["groups"].as_array().unwrap() {
        let name = group["name"].as_str().unwrap();
        assert_eq!(document(&schemas, &format!("/apis/{name}"), "")["kind"], "APIGroup");
        for version in group["versions"].as_array().unwrap() {
            let path = format!("/apis/{}", version["groupVersion"].as_str().unwrap());
            assert!(!document(&schemas, &path, "")["resources"].as_array().unwrap().is_empty(), "{path}");
            assert!(document(&schemas, &format!("/openapi/v3{path}"), "")["paths"].is_object(), "{path}");
        }
    }
    let index = document(&schemas, "/openapi/v3", "");
    let url = index["paths"]["apis/karpenter.sh/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(url.starts_with("/openapi/v3/apis/karpenter.sh/v1?hash="), "{url}");
    assert_eq!(document(&schemas, "/version", "")["major"], "1");
    for path in ["/", "/apis/nothing", "/api/v2", "/openapi", "/openapi/v3/apis/nothing/v1", "/api/v1/pods"] {
        assert!(schemas.document(path, "").is_none(), "{path}");
    }
}

#[test]
fn aggregated_discovery_knows_custom_kinds() {
    let schemas = schemas();
    let core = document(&schemas, "/api", AGGREGATED);
    assert_eq!(core["kind"], "APIGroupDiscoveryList");
    let groups = document(&schemas, "/apis", AGGREGATED);
    let group = groups["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == "karpenter.sh");
    let resources = group.unwrap()["versions"][0]["resources"].as_array().unwrap();
    let pools = resources.iter().find(|resource| resource["resource"] == "nodepools").unwrap();
    assert_eq!(pools["subresources"][1]["responseKind"]["kind"], "Scale");
    assert_eq!(pools["scope"], "Cluster");
}

/// kubectl looks here for whether the server validates fields.
#[test]
fn patches_of_custom_kinds_name_their_parameters() {
    let schemas = schemas();
    let openapi = document(&schemas, "/openapi/v3/apis/karpenter.sh/v1", "");
    let patch = &openapi["paths"]["/apis/karpenter.sh/v1/nodepools/{name}"]["patch"];
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "NodePool");
    let kinds: Vec<_> = patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(kinds, ["application/json-patch+json", "application/merge-patch+json"]);
    let pool = &openapi["components"]["schemas"]["sh.karpenter.v1.NodePool"];
    assert!(pool["properties"]["spec"]["properties"]["weight"]["description"].is_string());
}

#[test]
fn a_removed_definition_is_forgotten() {
    let mut schemas = schemas();
    assert!(schemas.resource("karpenter.sh", "v1", "nodepools").is_some());
    schemas.remove_definition("nodepools.karpenter.sh");
    assert!(schemas.resource("karpenter.sh", "v1", "nodepools").is_none());
    assert!(schemas.resource("karpenter.sh", "v1", "nodeclaims").is_some());
}

#[test]
fn the_shape_tells_how_lists_merge() {
    let schemas = Schemas::bundled();
    let pod = schemas.resource("", "v1", "pods").unwrap().schema().shape();
    let spec = pod.field("spec").unwrap();
    let containers = spec.field("containers").unwrap();
    assert_eq!((containers.rule().merge, containers.rule().merge_key), (true, Some("name")));
    let ports = containers.items().unwrap().field("ports").unwrap();
    assert_eq!(ports.rule().merge_key, Some("containerPort"));
    assert!(spec.field("volumes").unwrap().rule().retain_keys);
    assert!(!spec.field("tolerations").unwrap().rule().merge);
    assert!(pod.field("metadata").unwrap().field("finalizers").unwrap().rule().merge);
    assert!(spec.field("nodeSelector").unwrap().field("anything").is_some());
    assert!(spec.field("nonsense").is_none());
    let deployment = schemas.resource("apps", "v1", "deployments").unwrap().schema().shape();
    assert!(deployment.field("spec").unwrap().field("strategy").unwrap().rule().retain_keys);
}
