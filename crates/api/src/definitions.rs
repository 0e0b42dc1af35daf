//! The CustomResourceDefinitions, as each flavour of the controller installs them.
//!
//! What a type's own schema can say is said there. Here is the rest: what depends on the flavour, what belongs to
//! the root of an object, and what the derived schema says although Kubernetes' own definitions do not.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::ec2_node_class::labels::{LABELS as EC2_LABELS, LAUNCH_LABELS as EC2_LAUNCH_LABELS};
use crate::kwok_node_class::LABELS as KWOK_LABELS;
use crate::{
    CapacityBuffer, EC2NodeClass, KWOKNodeClass, NodeClaim, NodeOverlay, NodePool, ec2_node_class, kwok_node_class,
};

/// Which controller the definitions are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// The controller for EKS.
    Eks,
    /// The controller that only pretends to make nodes.
    Kwok,
}

/// The requirement keys and template labels of a pool.
const POOL_KEY: &[&str] = &["spec", "template", "spec", "requirements", "[]", "key"];
const POOL_LABELS: &[&str] = &["spec", "template", "metadata", "labels"];
/// The requirement keys of a claim or overlay.
const KEY: &[&str] = &["spec", "requirements", "[]", "key"];

/// Every definition that a flavour installs.
pub fn custom_resource_definitions(flavour: Flavour) -> Vec<CustomResourceDefinition> {
    let mut definitions = match flavour {
        Flavour::Eks => {
            vec![NodePool::crd(), NodeClaim::crd(), NodeOverlay::crd(), CapacityBuffer::crd(), EC2NodeClass::crd()]
        }
        Flavour::Kwok => {
            vec![NodePool::crd(), NodeClaim::crd(), NodeOverlay::crd(), CapacityBuffer::crd(), KWOKNodeClass::crd()]
        }
    };
    for definition in &mut definitions {
        let kind = definition.spec.names.kind.clone();
        definition.spec.names.list_kind = Some(format!("{kind}List"));
        let schemas = definition.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
        for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
            reject_nulls(schema);
            match flavour {
                Flavour::Eks => add_ec2_rules(&kind, schema),
                Flavour::Kwok => add_kwok_rules(&kind, schema),
            }
        }
    }
    definitions
}

/// An optional field is absent or has a value. The derived schema would store a `null` too, which CEL's `has` calls
/// present, so that a rule such as "exactly one of" could be led astray.
fn reject_nulls(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(reject_nulls);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => reject_nulls(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(reject_nulls),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        reject_nulls(values);
    }
}

/// Keys of the AWS domain must be ones the provider knows; a mistyped one would silently match nothing.
fn add_ec2_rules(kind: &str, schema: &mut JSONSchemaProps) {
    const DOMAIN: &str = ec2_node_class::GROUP;
    let all: Vec<&str> = EC2_LABELS.iter().chain(&EC2_LAUNCH_LABELS).copied().collect();
    match kind {
        "NodePool" => {
            add_rule(schema, POOL_KEY, &in_domain("self", DOMAIN, &all), DOMAIN);
            add_rule(schema, POOL_LABELS, &format!("self.all(key, {})", in_domain("key", DOMAIN, &all)), DOMAIN);
        }
        "NodeClaim" => add_rule(schema, KEY, &in_domain("self", DOMAIN, &all), DOMAIN),
        "NodeOverlay" => add_rule(schema, KEY, &in_domain("self", DOMAIN, &EC2_LABELS), DOMAIN),
        _ => {}
    }
}

fn add_kwok_rules(kind: &str, schema: &mut JSONSchemaProps) {
    const DOMAIN: &str = kwok_node_class::GROUP;
    match kind {
        "NodePool" => add_rule(schema, POOL_KEY, &in_domain("self", DOMAIN, &KWOK_LABELS), DOMAIN),
        "NodeClaim" => add_rule(schema, KEY, &in_domain("self", DOMAIN, &KWOK_LABELS), DOMAIN),
        "KWOKNodeClass" => make_ready_from_the_start(schema),
        _ => {}
    }
}

/// Nobody reconciles a KWOKNodeClass, so a bare object comes with the status it would get.
fn make_ready_from_the_start(schema: &mut JSONSchemaProps) {
    schema.required = None;
    at(schema, &["spec"]).default = Some(JSON(json!({})));
    at(schema, &["status"]).default = Some(JSON(json!({
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2024-01-01T01:01:01Z",
        }],
    })));
}

/// The condition that a key is one of those allowed, or of no concern to the domain and its subdomains.
fn in_domain(key: &str, domain: &str, allowed: &[&str]) -> String {
    let allowed = allowed.iter().map(|label| format!("'{label}'")).collect::<Vec<_>>().join(", ");
    format!("{key} in [{allowed}] || !{key}.find('^[^/]+').endsWith('{domain}')")
}

fn add_rule(schema: &mut JSONSchemaProps, path: &[&str], rule: &str, domain: &str) {
    let message = format!("label domain \"{domain}\" is restricted");
    let rule = ValidationRule { rule: rule.to_owned(), message: Some(message), ..ValidationRule::default() };
    at(schema, path).x_kubernetes_validations.get_or_insert_default().push(rule);
}

/// The schema at a path of property names, with `[]` for the items of a list.
///
/// Panics if there is none: paths are constants of this module, and the committed definitions are compared with
/// what comes out, so a wrong one cannot leave the tests.
fn at<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> &'a mut JSONSchemaProps {
    path.iter().fold(schema, |schema, step| {
        let inner = match (*step, &mut schema.items, &mut schema.properties) {
            ("[]", Some(JSONSchemaPropsOrArray::Schema(items)), _) => Some(items.as_mut()),
            (name, _, Some(properties)) => properties.get_mut(name),
            _ => None,
        };
        inner.unwrap_or_else(|| panic!("no schema at `{step}` of {path:?}"))
    })
}
