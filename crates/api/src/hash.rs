//! The hash by which static drift is noticed.
//!
//! The number is written into annotations and compared with what other tools compute, so it is computed exactly as
//! they do: FNV-1 over the names and values of the template's fields, in a fixed order, leaving out what is not set.
//! Maps and lists are hashed without regard to order. What the template must look like (`requirements`) is left
//! out: nodes are compared with that one by one.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::node_class_reference::NodeClassReference;
use crate::node_pool::{NodeClaimTemplate, NodeClaimTemplateSpec, TemplateMetadata};
use crate::taint::Taint;

/// The version of the computation, kept beside the hash so that a new one does not make every node drift.
pub const HASH_VERSION: &str = "v3";

/// The hash of a pool's template, as it stands in the annotation `karpenter.sh/nodepool-hash`.
pub fn node_pool_hash(template: &NodeClaimTemplate) -> String {
    hash_template(template).to_string()
}

fn hash_template(template: &NodeClaimTemplate) -> u64 {
    let NodeClaimTemplate { metadata, spec } = template;
    StructHash::begin("NodeClaimTemplate")
        .field("ObjectMeta", metadata.as_ref().and_then(hash_metadata))
        .field("Spec", Some(hash_spec(spec)))
        .finish()
}

fn hash_metadata(metadata: &TemplateMetadata) -> Option<u64> {
    let TemplateMetadata { labels, annotations } = metadata;
    if labels.is_none() && annotations.is_none() {
        return None;
    }
    let hash = StructHash::begin("ObjectMeta")
        .field("Labels", labels.as_ref().map(hash_map))
        .field("Annotations", annotations.as_ref().map(hash_map))
        .finish();
    Some(hash)
}

fn hash_spec(spec: &NodeClaimTemplateSpec) -> u64 {
    let NodeClaimTemplateSpec {
        taints,
        startup_taints,
        requirements: _,
        node_class_ref,
        termination_grace_period,
        expire_after,
    } = spec;
    let grace_period = termination_grace_period.as_ref().map(|period| period.as_duration());
    StructHash::begin("NodeClaimTemplateSpec")
        .field("Taints", taints.as_deref().map(hash_taints))
        .field("StartupTaints", startup_taints.as_deref().map(hash_taints))
        .field("NodeClassRef", Some(hash_node_class_reference(node_class_ref)))
        .field("TerminationGracePeriod", grace_period.map(|period| hash_grace_period(period.as_nanos())))
        .field("ExpireAfter", expire_after.as_duration().map(|lifetime| hash_lifetime(lifetime.as_nanos())))
        .finish()
}

/// A grace period of nothing is a struct with a zero field: there, but empty.
fn hash_grace_period(nanoseconds: u128) -> u64 {
    let value = (nanoseconds != 0).then(|| hash_nanoseconds(nanoseconds));
    StructHash::begin("Duration").field("Duration", value).finish()
}

/// A lifetime points at its duration, and a pointer that is set counts even if it points at zero.
fn hash_lifetime(nanoseconds: u128) -> u64 {
    StructHash::begin("NillableDuration").field("Duration", Some(hash_nanoseconds(nanoseconds))).finish()
}

/// Durations are at most 63 bits of nanoseconds; the type that holds them sees to it.
fn hash_nanoseconds(nanoseconds: u128) -> u64 {
    fnv1(&(nanoseconds as u64).to_le_bytes())
}

fn hash_node_class_reference(reference: &NodeClassReference) -> u64 {
    let NodeClassReference { group, kind, name } = reference;
    StructHash::begin("NodeClassReference")
        .field("Kind", hash_text(kind))
        .field("Name", hash_text(name))
        .field("Group", hash_text(group))
        .finish()
}

/// Equal taints cancel each other out, as they do in other implementations of this hash.
fn hash_taints(taints: &[Taint]) -> u64 {
    taints.iter().map(hash_taint).fold(0, |sum, hash| sum ^ hash)
}

fn hash_taint(taint: &Taint) -> u64 {
    let Taint { key, value, effect, time_added } = taint;
    StructHash::begin("Taint")
        .field("Key", hash_text(key))
        .field("Value", value.as_deref().and_then(hash_text))
        .field("Effect", hash_text(effect.as_str()))
        .field("TimeAdded", time_added.as_ref().map(|time| hash_time(time.0)))
        .finish()
}

/// A time is hashed in its binary form: version, seconds since the year 1, nanoseconds, minutes east of UTC.
fn hash_time(time: Timestamp) -> u64 {
    const SECONDS_FROM_YEAR_ONE_TO_EPOCH: i64 = 62_135_596_800;
    let seconds = time.as_second() + SECONDS_FROM_YEAR_ONE_TO_EPOCH;
    let mut bytes = vec![1];
    bytes.extend(seconds.to_be_bytes());
    bytes.extend(time.to_zoned(TimeZone::UTC).subsec_nanosecond().to_be_bytes());
    bytes.extend([0, 0]);
    StructHash::begin("Time").field("Time", Some(fnv1(&bytes))).finish()
}

fn hash_map(map: &std::collections::BTreeMap<String, String>) -> u64 {
    let entries = map.iter().map(|(key, value)| pair(fnv1(key.as_bytes()), fnv1(value.as_bytes())));
    finish(entries.fold(0, |sum, hash| sum ^ hash))
}

/// The hash of a text, or nothing for an empty one, which counts as not set.
fn hash_text(text: &str) -> Option<u64> {
    (!text.is_empty()).then(|| fnv1(text.as_bytes()))
}

/// The hash of a struct while its fields are added, in the order of their declaration.
struct StructHash(u64);

impl StructHash {
    fn begin(name: &str) -> Self {
        Self(fnv1(name.as_bytes()))
    }

    /// Adds a field; one without a hash is not set and leaves no trace.
    fn field(self, name: &str, hash: Option<u64>) -> Self {
        match hash {
            Some(hash) => Self(finish(self.0 ^ pair(fnv1(name.as_bytes()), hash))),
            None => self,
        }
    }

    fn finish(self) -> u64 {
        self.0
    }
}

fn pair(left: u64, right: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&left.to_le_bytes());
    bytes[8..].copy_from_slice(&right.to_le_bytes());
    fnv1(&bytes)
}

fn finish(hash: u64) -> u64 {
    fnv1(&hash.to_le_bytes())
}

/// FNV-1 with 64 bits: multiply, then xor (FNV-1a does it the other way round).
fn fnv1(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{HASH_VERSION, node_pool_hash};
    use crate::node_pool::{NodeClaimTemplate, NodePoolSpec};

    fn bare() -> Value {
        json!({ "spec": {
            "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
            "requirements": [],
            "expireAfter": "720h",
        }})
    }

    fn full() -> Value {
        json!({
            "metadata": { "labels": { "team": "a" }, "annotations": { "note": "x" } },
            "spec": {
                "taints": [{ "key": "example.com/t", "value": "v", "effect": "NoSchedule" }],
                "startupTaints": [{ "key": "example.com/s", "effect": "NoExecute" }],
                "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
                "requirements": [],
                "terminationGracePeriod": "1h",
                "expireAfter": "30h",
            },
        })
    }

    fn with(mut template: Value, pointer: &str, value: Value) -> Value {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        template.pointer_mut(parent).unwrap()[name] = value;
        template
    }

    fn hash(template: Value) -> String {
        node_pool_hash(&serde_json::from_value::<NodeClaimTemplate>(template).unwrap())
    }

    /// API-51: the numbers that the reference computes.
    #[test]
    fn hashes_are_the_published_ones() {
        assert_eq!(hash(bare()), "12745407319442031341");
        assert_eq!(hash(with(bare(), "/spec/expireAfter", json!("Never"))), "7428780003907761376");
        assert_eq!(hash(full()), "7925594901290851657");
    }

    /// API-51: the edges, where set, empty and zero differ.
    #[test]
    fn edges_hash_as_the_reference_does() {
        let cases = [
            ("/spec/terminationGracePeriod", json!("0s"), "17030943635417872473"),
            ("/spec/expireAfter", json!("0s"), "13497234916429253619"),
            ("/spec/taints", json!([]), "8835654805456807585"),
            ("/metadata/labels", json!({}), "17959464278689073568"),
            ("/spec/taints/0/timeAdded", json!("2024-01-01T01:01:01Z"), "10267080001253089562"),
        ];
        for (pointer, value, expected) in cases {
            assert_eq!(hash(with(full(), pointer, value)), expected, "{pointer}");
        }
    }

    /// API-52: the version that goes with these numbers.
    #[test]
    fn the_version_is_the_third() {
        assert_eq!(HASH_VERSION, "v3");
    }

    /// API-53: only the template counts, and of it not the requirements.
    #[test]
    fn what_is_compared_elsewhere_leaves_the_hash_alone() {
        let arm = json!([{ "key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"] }]);
        assert_eq!(hash(with(full(), "/spec/requirements", arm)), hash(full()));
        let pool: NodePoolSpec = serde_json::from_value(json!({
            "template": full(), "weight": 10, "limits": { "cpu": "10" }, "disruption": { "consolidateAfter": "1h" },
        }))
        .unwrap();
        assert_eq!(node_pool_hash(&pool.template), hash(full()));
    }

    /// API-54: every other field of the template counts.
    #[test]
    fn each_field_of_the_template_changes_the_hash() {
        let other_taint = json!([{ "key": "example.com/t", "value": "w", "effect": "NoSchedule" }]);
        let cases = [
            ("/metadata/labels", json!({ "team": "b" })),
            ("/metadata/annotations", json!({ "note": "y" })),
            ("/spec/taints", other_taint.clone()),
            ("/spec/startupTaints", other_taint),
            ("/spec/nodeClassRef/name", json!("other")),
            ("/spec/nodeClassRef/kind", json!("Other")),
            ("/spec/nodeClassRef/group", json!("example.com")),
            ("/spec/terminationGracePeriod", json!("2h")),
            ("/spec/terminationGracePeriod", json!("0s")),
            ("/spec/expireAfter", json!("31h")),
            ("/spec/taints/0/timeAdded", json!("2024-01-01T01:01:01Z")),
        ];
        for (pointer, value) in cases {
            assert_ne!(hash(with(full(), pointer, value.clone())), hash(full()), "{pointer} = {value}");
        }
    }

    /// API-55: the order of taints and of map entries does not count.
    #[test]
    fn order_does_not_count() {
        let (one, two) = (json!({ "key": "a", "effect": "NoSchedule" }), json!({ "key": "b", "effect": "NoExecute" }));
        let forwards = with(full(), "/spec/taints", json!([one, two]));
        let backwards = with(full(), "/spec/taints", json!([two, one]));
        assert_eq!(hash(forwards), hash(backwards));
        let forwards = serde_json::from_str(r#"{"a": "1", "b": "2"}"#).unwrap();
        let backwards = serde_json::from_str(r#"{"b": "2", "a": "1"}"#).unwrap();
        assert_eq!(hash(with(full(), "/metadata/labels", forwards)), hash(with(full(), "/metadata/labels", backwards)));
    }

    /// API-51: an empty map or list is there, an absent one is not.
    #[test]
    fn empty_is_not_absent() {
        assert_ne!(hash(with(bare(), "/spec/taints", json!([]))), hash(bare()));
        assert_ne!(hash(with(bare(), "/metadata", json!({ "labels": {} }))), hash(bare()));
        assert_eq!(hash(with(bare(), "/metadata", json!({}))), hash(bare()));
    }
}
