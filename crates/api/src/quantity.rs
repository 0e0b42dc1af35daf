//! Lists of resources with their quantities, as users write them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// Resource names with their quantities, for instance `cpu: 500m`.
pub type ResourceList = BTreeMap<String, Quantity>;

/// The grammar of a Kubernetes quantity: a signed number with a binary, decimal or exponent suffix.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The schema of a [`ResourceList`]; a bare number is as good as its text.
pub(crate) fn resource_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-int-or-string": true, "pattern": QUANTITY },
    })
}

/// A quantity as it may be stored: people write `cpu: 1000` as well as `cpu: "1000"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Integer(i64),
    Decimal(f64),
}

/// Reads a [`ResourceList`] whose quantities may be bare numbers.
pub(crate) fn read_resource_list<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ResourceList>, D::Error> {
    let stored = Option::<BTreeMap<String, Stored>>::deserialize(from)?;
    let text = |quantity| match quantity {
        Stored::Text(text) => text,
        Stored::Integer(number) => number.to_string(),
        Stored::Decimal(number) => number.to_string(),
    };
    Ok(stored.map(|list| list.into_iter().map(|(name, quantity)| (name, Quantity(text(quantity)))).collect()))
}
