//! Overlays: lowered when they make sense, faults when they do not.

use jiff::Timestamp;
use model::{Overlay, PriceChange, Requirements, Text, Vocabulary};

use super::claim::requirement;
use super::selector::{nothing, resources};
use crate::node_overlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus, OverlayRequirement};
use crate::requirement::{Operator, Requirement};
use crate::validation::{RequirementFault, requirement_faults};

/// Resources that only the provider can know.
const RESTRICTED_RESOURCES: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];

/// What is wrong with a NodeOverlay beyond what its schema can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverlayFault {
    /// A requirement cannot be met as it is written.
    #[error("invalid value: {0} in requirements, restricted")]
    Requirement(RequirementFault),
    /// `NotIn` without a value excludes nothing.
    #[error("key {key} with operator NotIn must have a value defined")]
    NoValues {
        /// The key.
        key: String,
    },
    /// A resource that only the provider can know.
    #[error("invalid capacity: {resource} in resource, restricted")]
    RestrictedResource {
        /// The resource.
        resource: String,
    },
    /// A price or a change of one that is no number.
    #[error("invalid price: {text:?} is neither a number nor a signed number or percentage")]
    Price {
        /// The text as found.
        text: String,
    },
}

/// What we know of a NodeOverlay.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlayFacts {
    /// Name.
    pub name: Text,
    /// Its identity; one of the same name made later has another.
    pub uid: Text,
    /// The version of the object that this was read from.
    pub resource_version: String,
    /// The generation of its spec.
    pub generation: i64,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it is being deleted.
    pub is_going: bool,
    /// Its status as it is stored.
    pub status: Option<NodeOverlayStatus>,
    /// What it changes, or what is wrong with it.
    pub overlay: Result<Overlay, Vec<OverlayFault>>,
}

impl OverlayFacts {
    /// Lowers an overlay; `None` for one without a name.
    pub fn lower(written: &NodeOverlay, vocabulary: &Vocabulary) -> Option<Self> {
        let name = Text::from(written.metadata.name.as_deref()?);
        let overlay = overlay(Text::clone(&name), &written.spec, vocabulary);
        let metadata = &written.metadata;
        Some(Self {
            name,
            uid: Text::from(metadata.uid.as_deref().unwrap_or_default()),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or(0),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            is_going: metadata.deletion_timestamp.is_some(),
            status: written.status.clone(),
            overlay,
        })
    }
}

fn overlay(name: Text, spec: &NodeOverlaySpec, vocabulary: &Vocabulary) -> Result<Overlay, Vec<OverlayFault>> {
    let NodeOverlaySpec { requirements: written, price, price_adjustment, capacity, weight } = spec;
    let mut faults = Vec::new();
    let mut requirements = Requirements::none();
    for one in written {
        let one = as_requirement(one);
        let found = requirement_faults(&one, vocabulary, &mut Vec::new());
        faults.extend(found.into_iter().map(OverlayFault::Requirement));
        if one.operator == Operator::NotIn && one.values().is_empty() {
            faults.push(OverlayFault::NoValues { key: one.key.clone() });
        }
        requirements.add(&one.key, vocabulary.meant(&one.key, requirement(&one).unwrap_or_else(nothing)));
    }
    let restricted = |name: &&String| RESTRICTED_RESOURCES.contains(&name.as_str());
    let named = capacity.iter().flat_map(|capacity| capacity.keys());
    faults.extend(named.filter(restricted).map(|name| OverlayFault::RestrictedResource { resource: name.clone() }));
    let text = price.as_ref().or(price_adjustment.as_ref());
    let price = text.and_then(|text| PriceChange::parse(text));
    if let Some(text) = text.filter(|_| price.is_none()) {
        faults.push(OverlayFault::Price { text: text.clone() });
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let capacity = capacity.as_ref().map(resources).unwrap_or_default();
    Ok(Overlay { name, weight: weight.unwrap_or(0), requirements, price, capacity })
}

fn as_requirement(written: &OverlayRequirement) -> Requirement {
    let OverlayRequirement { key, operator, values } = written.clone();
    Requirement { key, operator, values, min_values: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lower(spec: &Value) -> Result<Overlay, Vec<OverlayFault>> {
        let written = json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"},
            "spec": spec});
        OverlayFacts::lower(&serde_json::from_value(written).unwrap(), &Vocabulary::core()).unwrap().overlay
    }

    /// What a complete overlay says, in our words; without a weight it weighs nothing.
    #[test]
    fn overlays_are_lowered() {
        let zone = json!({"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["a"]});
        let full = lower(&json!({"requirements": [zone], "priceAdjustment": "-10%", "weight": 7,
            "capacity": {"example.com/fpga": "2"}}));
        let Overlay { name, weight, requirements, price, capacity } = full.unwrap();
        assert_eq!((&*name, weight, price), ("o", 7, Some(PriceChange::ByPercent(-10.0))));
        assert_eq!(requirements.to_string(), "topology.kubernetes.io/zone In [a]");
        assert_eq!(capacity.to_string(), "example.com/fpga=2");
        let bare = lower(&json!({"requirements": [], "price": "1.5"})).unwrap();
        assert_eq!((bare.weight, bare.price), (0, Some(PriceChange::To(model::Price::from_dollars(1.5)))));
    }

    /// OVL-03: what the schema cannot check is told, every fault of an overlay at once.
    #[test]
    fn overlays_that_make_no_sense_say_why() {
        let one =
            |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        let table = [
            (
                json!({"requirements": [one("karpenter.sh/registered", "Exists", &[])]}),
                &["invalid value: label karpenter.sh/registered is restricted"][..],
            ),
            (
                json!({"requirements": [one("team", "In", &[])]}),
                &["invalid value: key team with operator In must have a value defined in requirements, restricted"],
            ),
            (
                json!({"requirements": [one("team", "NotIn", &[])]}),
                &["key team with operator NotIn must have a value defined"],
            ),
            (
                json!({"requirements": [one("size", "Gt", &["many"])]}),
                &["invalid value: key size with operator Gt must have a single positive integer value"],
            ),
            (
                json!({"requirements": [one(crate::labels::CAPACITY_TYPE, "In", &["leased"])]}),
                &["invalid value: no valid values found"],
            ),
            (
                json!({"requirements": [], "capacity": {"cpu": "1", "pods": "3", "example.com/fpga": "1"}}),
                &["invalid capacity: cpu in resource, restricted", "invalid capacity: pods in resource, restricted"],
            ),
            (json!({"requirements": [], "priceAdjustment": "10%"}), &["invalid price: \"10%\" is neither"]),
            // Unlike a pool's requirements, those of an overlay may name a pool.
            (json!({"requirements": [one("karpenter.sh/nodepool", "In", &["a"])]}), &[]),
        ];
        for (spec, expected) in table {
            let faults: Vec<String> = lower(&spec).err().unwrap_or_default().iter().map(ToString::to_string).collect();
            assert_eq!(faults.len(), expected.len(), "{spec}: {faults:?}");
            for (fault, expected) in faults.iter().zip(expected) {
                assert!(fault.starts_with(expected), "want {expected}\ngot  {fault}");
            }
        }
    }
}
