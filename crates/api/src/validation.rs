//! The checks on a NodePool that its schema cannot make.
//!
//! Every fault is collected, so that the user sees all of them at once in the condition `ValidationSucceeded`.

use std::collections::BTreeSet;

use model::Vocabulary;

use crate::label_syntax::{LabelSyntaxError, check_label_value, check_qualified_name};
use crate::labels;
use crate::node_pool::{NodeClaimTemplate, NodeClaimTemplateSpec};
use crate::requirement::{Operator, Requirement};
use crate::taint::Taint;

/// Reason of the condition `ValidationSucceeded` when there are faults.
pub const VALIDATION_FAILED: &str = "NodePoolValidationFailed";

/// Why nobody may ask for this label, if so.
fn restriction(vocabulary: &Vocabulary, key: &str) -> Option<LabelRestriction> {
    vocabulary.is_restricted(key).then(|| LabelRestriction {
        key: key.to_owned(),
        well_known: vocabulary.well_known().map(ToString::to_string).collect(),
        restricted_domains: vocabulary.restricted_domains().map(ToString::to_string).collect(),
    })
}

/// Why a label may not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "label {key} is restricted; specify a well known label: [{}], or a custom label that does not use a restricted domain: [{}]",
    well_known.join(" "),
    restricted_domains.join(" ")
)]
pub struct LabelRestriction {
    /// The label.
    pub key: String,
    /// The labels that may be used instead, sorted.
    pub well_known: Vec<String>,
    /// The domains that may not be used, sorted.
    pub restricted_domains: Vec<String>,
}

/// What is wrong with a NodePool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodePoolFault {
    /// A template label names the pool, which is done for the user.
    #[error("invalid key name {key:?} in labels, restricted")]
    LabelNamesPool {
        /// The label.
        key: String,
    },
    /// The key of a template label is malformed.
    #[error("invalid key name {key:?} in labels, {why}")]
    LabelKeyMalformed {
        /// The label.
        key: String,
        /// What is wrong with it.
        why: LabelSyntaxError,
    },
    /// The value of a template label is malformed.
    #[error("invalid value {value:?} for label {key:?} in labels, {why}")]
    LabelValueMalformed {
        /// The label.
        key: String,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: LabelSyntaxError,
    },
    /// A template label belongs to a controller.
    #[error("invalid key name {key:?} in labels, {0}", key = .0.key)]
    LabelRestricted(LabelRestriction),
    /// Two taints or startup taints have the same key and effect.
    #[error("duplicate taint Key/Effect pair {key}={effect}")]
    DuplicateTaint {
        /// The key of both.
        key: String,
        /// The effect of both.
        effect: &'static str,
    },
    /// The key of a taint is malformed.
    #[error("invalid key {key:?} in {list}, {why}")]
    TaintKeyMalformed {
        /// The list that the taint is in.
        list: &'static str,
        /// The key.
        key: String,
        /// What is wrong with it.
        why: LabelSyntaxError,
    },
    /// The value of a taint is malformed.
    #[error("invalid value {value:?} in {list}, {why}")]
    TaintValueMalformed {
        /// The list that the taint is in.
        list: &'static str,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: LabelSyntaxError,
    },
    /// A requirement cannot be met as it is written.
    #[error("invalid value: {0} in requirements, restricted")]
    Requirement(RequirementFault),
    /// A requirement names the pool, which is done for the user.
    #[error("invalid key: \"karpenter.sh/nodepool\" in requirements, restricted")]
    RequirementNamesPool,
}

/// What is wrong with a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementFault {
    /// The label belongs to a controller.
    #[error(transparent)]
    Restricted(LabelRestriction),
    /// None of the capacity types exists.
    #[error(
        "no valid values found in {values:?} for {}, expected one of: {:?}",
        labels::CAPACITY_TYPE,
        labels::CAPACITY_TYPES
    )]
    NoKnownCapacityType {
        /// The values that were given.
        values: Vec<String>,
    },
    /// Fewer capacity types exist than are asked for.
    #[error("{} has {known} valid values, minValues needs {min_values}", labels::CAPACITY_TYPE)]
    TooFewKnownCapacityTypes {
        /// How many of the values exist.
        known: usize,
        /// How many have to.
        min_values: i32,
    },
    /// The key is malformed.
    #[error("key {key} is not a qualified name, {why}")]
    KeyMalformed {
        /// The key.
        key: String,
        /// What is wrong with it.
        why: LabelSyntaxError,
    },
    /// A value is malformed.
    #[error("invalid value {value} for key {key}, {why}")]
    ValueMalformed {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: LabelSyntaxError,
    },
    /// `In` without a value can never be met.
    #[error("key {key} with operator In must have a value defined")]
    NoValues {
        /// The key.
        key: String,
    },
    /// There are fewer values than `minValues` wants.
    #[error("key {key} with operator In must have at least minimum count of values defined in 'values' field")]
    TooFewValues {
        /// The key.
        key: String,
    },
    /// An operator on numbers has not exactly one, or a negative one.
    #[error("key {key} with operator {operator} must have a single positive integer value")]
    NotOneNumber {
        /// The key.
        key: String,
        /// The operator.
        operator: &'static str,
    },
}

/// What came out of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePoolValidation {
    /// What is wrong; a pool without faults may be used.
    pub faults: Vec<NodePoolFault>,
    /// Capacity types that do not exist but stand beside ones that do: worth a word in the log, no more.
    pub unknown_capacity_types: Vec<String>,
}

impl NodePoolValidation {
    /// All faults in one text, for the condition's message; nothing if there are none.
    pub fn message(&self) -> Option<String> {
        let texts: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// Checks the template of a pool. Equal inputs give equal faults, in the order labels, taints, requirements.
pub fn validate_node_pool(template: &NodeClaimTemplate, vocabulary: &Vocabulary) -> NodePoolValidation {
    let NodeClaimTemplateSpec { taints, startup_taints, requirements, .. } = &template.spec;
    let mut found = NodePoolValidation::default();
    let template_labels = template.metadata.iter().filter_map(|metadata| metadata.labels.as_ref()).flatten();
    for (key, value) in template_labels {
        check_label(key, value, vocabulary, &mut found.faults);
    }
    let mut seen = BTreeSet::new();
    for (list, taints) in [("taints", taints), ("startupTaints", startup_taints)] {
        for taint in taints.iter().flatten() {
            check_taint(list, taint, &mut seen, &mut found.faults);
        }
    }
    for requirement in requirements {
        check_requirement(requirement, vocabulary, &mut found);
    }
    if requirements.iter().any(|requirement| requirement.key == labels::NODE_POOL) {
        found.faults.push(NodePoolFault::RequirementNamesPool);
    }
    found
}

fn check_label(key: &str, value: &str, vocabulary: &Vocabulary, faults: &mut Vec<NodePoolFault>) {
    if key == labels::NODE_POOL {
        faults.push(NodePoolFault::LabelNamesPool { key: key.to_owned() });
    }
    if let Err(why) = check_qualified_name(key) {
        faults.push(NodePoolFault::LabelKeyMalformed { key: key.to_owned(), why });
    }
    if let Err(why) = check_label_value(value) {
        faults.push(NodePoolFault::LabelValueMalformed { key: key.to_owned(), value: value.to_owned(), why });
    }
    if let Some(restriction) = restriction(vocabulary, key) {
        faults.push(NodePoolFault::LabelRestricted(restriction));
    }
}

fn check_taint<'a>(
    list: &'static str,
    taint: &'a Taint,
    seen: &mut BTreeSet<(&'a str, &'static str)>,
    faults: &mut Vec<NodePoolFault>,
) {
    let Taint { key, value, effect, time_added: _ } = taint;
    if let Err(why) = check_qualified_name(key) {
        faults.push(NodePoolFault::TaintKeyMalformed { list, key: key.clone(), why });
    }
    // Stricter than Kubernetes, which takes any label value: what the schema accepts is what nodes can be given.
    if let Some(value) = value.as_ref().filter(|value| !value.is_empty())
        && let Err(why) = check_qualified_name(value)
    {
        faults.push(NodePoolFault::TaintValueMalformed { list, value: value.clone(), why });
    }
    if !seen.insert((key, effect.as_str())) {
        faults.push(NodePoolFault::DuplicateTaint { key: key.clone(), effect: effect.as_str() });
    }
}

fn check_requirement(requirement: &Requirement, vocabulary: &Vocabulary, found: &mut NodePoolValidation) {
    let faults = requirement_faults(requirement, vocabulary, &mut found.unknown_capacity_types);
    found.faults.extend(faults.into_iter().map(NodePoolFault::Requirement));
}

/// What is wrong with a requirement of a pool or overlay. Capacity types that do not exist but stand beside ones that do
/// are no fault and added to `unknown_capacity_types`.
pub(crate) fn requirement_faults(
    requirement: &Requirement,
    vocabulary: &Vocabulary,
    unknown_capacity_types: &mut Vec<String>,
) -> Vec<RequirementFault> {
    let key = labels::current_spelling(&requirement.key);
    let mut faults = Vec::new();
    if let Some(restriction) = restriction(vocabulary, key) {
        faults.push(RequirementFault::Restricted(restriction));
    }
    if key == labels::CAPACITY_TYPE && requirement.operator == Operator::In {
        check_capacity_types(requirement, &mut faults, unknown_capacity_types);
    }
    check_requirement_shape(key, requirement, &mut faults);
    faults
}

fn check_capacity_types(requirement: &Requirement, faults: &mut Vec<RequirementFault>, unknown: &mut Vec<String>) {
    let (known, other): (Vec<&String>, Vec<&String>) =
        requirement.values().iter().partition(|value| labels::CAPACITY_TYPES.contains(&value.as_str()));
    let known: BTreeSet<&String> = known.into_iter().collect();
    if known.is_empty() {
        faults.push(RequirementFault::NoKnownCapacityType { values: requirement.values().to_vec() });
        return;
    }
    if let Some(min_values) = requirement.min_values
        && usize::try_from(min_values).is_ok_and(|min_values| known.len() < min_values)
    {
        faults.push(RequirementFault::TooFewKnownCapacityTypes { known: known.len(), min_values });
    }
    unknown.extend(other.into_iter().cloned());
}

fn check_requirement_shape(key: &str, requirement: &Requirement, faults: &mut Vec<RequirementFault>) {
    let values = requirement.values();
    let operator = requirement.operator;
    if let Err(why) = check_qualified_name(key) {
        faults.push(RequirementFault::KeyMalformed { key: key.to_owned(), why });
    }
    for value in values {
        if let Err(why) = check_label_value(value) {
            faults.push(RequirementFault::ValueMalformed { key: key.to_owned(), value: value.clone(), why });
        }
    }
    if operator == Operator::In && values.is_empty() {
        faults.push(RequirementFault::NoValues { key: key.to_owned() });
    }
    let wanted = requirement.min_values.and_then(|min_values| usize::try_from(min_values).ok());
    if operator == Operator::In && wanted.is_some_and(|wanted| values.len() < wanted) {
        faults.push(RequirementFault::TooFewValues { key: key.to_owned() });
    }
    if operator.is_numeric() && !matches!(values, [value] if value.parse::<i64>().is_ok_and(|number| number >= 0)) {
        faults.push(RequirementFault::NotOneNumber { key: key.to_owned(), operator: operator.as_str() });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use model::Vocabulary;

    use super::{NodePoolValidation, validate_node_pool};

    fn validate(metadata: Value, mut spec: Value) -> NodePoolValidation {
        spec["nodeClassRef"] = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" });
        if spec.get("requirements").is_none() {
            spec["requirements"] = json!([]);
        }
        let template = Value::from_iter([("metadata", metadata), ("spec", spec)]);
        let template = serde_json::from_value(template).unwrap();
        let vocabulary = Vocabulary::core()
            .with_restricted_domain("karpenter.kwok.sh")
            .with_well_known(["karpenter.kwok.sh/instance-cpu"]);
        validate_node_pool(&template, &vocabulary)
    }

    fn check(metadata: Value, spec: Value, expected: &[&str]) {
        let faults: Vec<String> = validate(metadata, spec).faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), expected.len(), "{faults:?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.starts_with(expected), "want {expected}\ngot  {fault}");
        }
    }

    fn check_requirement(requirement: Value, expected: &[&str]) {
        check(json!({}), Value::from_iter([("requirements", Value::from(vec![requirement]))]), expected);
    }

    #[test]
    fn template_labels() {
        let cases: [(&str, &str, &[&str]); 9] = [
            ("example.com/team", "a", &[]),
            ("kubernetes.io/arch", "amd64", &[]),
            ("karpenter.kwok.sh/instance-cpu", "4", &[]),
            ("karpenter.sh/nodepool", "a", &["invalid key name \"karpenter.sh/nodepool\" in labels, restricted"]),
            ("-team", "a", &["invalid key name \"-team\" in labels, must consist of"]),
            ("team", "a/b", &["invalid value \"a/b\" for label \"team\" in labels, must consist of"]),
            (
                "kubernetes.io/hostname",
                "a",
                &["invalid key name \"kubernetes.io/hostname\" in labels, label kubernetes.io/hostname is restricted"],
            ),
            (
                "karpenter.kwok.sh/instance-zpu",
                "a",
                &[
                    "invalid key name \"karpenter.kwok.sh/instance-zpu\" in labels, label karpenter.kwok.sh/instance-zpu",
                ],
            ),
            (
                "sub.karpenter.sh/x",
                "a",
                &["invalid key name \"sub.karpenter.sh/x\" in labels, label sub.karpenter.sh/x"],
            ),
        ];
        for (key, value, expected) in cases {
            check(json!({ "labels": { key: value } }), json!({}), expected);
        }
    }

    #[test]
    fn a_restriction_names_what_is_allowed() {
        let restriction = super::restriction(&Vocabulary::core(), "karpenter.sh/registered").unwrap().to_string();
        assert_eq!(
            restriction,
            "label karpenter.sh/registered is restricted; specify a well known label: [karpenter.sh/capacity-type \
             karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type \
             node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a \
             custom label that does not use a restricted domain: [karpenter.sh]"
        );
        assert_eq!(super::restriction(&Vocabulary::core(), "notkarpenter.sh/x"), None);
    }

    /// API-41: a value that no label can have is a fault, with the reason the condition carries.
    #[test]
    fn bad_values_in_requirements_are_faults() {
        assert_eq!(super::VALIDATION_FAILED, "NodePoolValidationFailed");
        let bad = json!({ "key": "team", "operator": "In", "values": ["a b"] });
        check_requirement(bad, &["invalid value: invalid value a b for key team, must consist of"]);
    }

    #[test]
    fn requirements_that_cannot_be_met_are_faults() {
        let cases = [
            (json!({ "key": "team", "operator": "Exists" }), vec![]),
            (
                json!({ "key": "team", "operator": "In" }),
                vec!["invalid value: key team with operator In must have a value"],
            ),
            (
                json!({ "key": "team", "operator": "In", "values": ["a"], "minValues": 2 }),
                vec!["invalid value: key team with operator In must have at least minimum count"],
            ),
            (
                json!({ "key": "team", "operator": "Gte", "values": ["-1"] }),
                vec![
                    "invalid value: invalid value -1 for key team",
                    "invalid value: key team with operator Gte must have a single positive integer value",
                ],
            ),
            (json!({ "key": "a/b/c", "operator": "Exists" }), vec!["invalid value: key a/b/c is not a qualified name"]),
            (
                json!({ "key": "karpenter.sh/registered", "operator": "Exists" }),
                vec!["invalid value: label karpenter.sh/registered is restricted"],
            ),
            (
                json!({ "key": "karpenter.sh/nodepool", "operator": "Exists" }),
                vec!["invalid key: \"karpenter.sh/nodepool\" in requirements, restricted"],
            ),
            (json!({ "key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists" }), vec![]),
        ];
        for (requirement, expected) in cases {
            check_requirement(requirement, &expected);
        }
    }

    /// API-42: one key and effect may appear once in both lists together.
    #[test]
    fn duplicate_taints_are_faults_across_both_lists() {
        let taint = json!({ "key": "example.com/t", "effect": "NoSchedule" });
        let other = json!({ "key": "example.com/t", "effect": "NoExecute" });
        let duplicate = "duplicate taint Key/Effect pair example.com/t=NoSchedule";
        check(json!({}), json!({ "taints": [taint, other] }), &[]);
        check(json!({}), json!({ "taints": [taint], "startupTaints": [taint] }), &[duplicate]);
        check(json!({}), json!({ "taints": [taint, other, taint] }), &[duplicate]);
    }

    #[test]
    fn malformed_taints_are_faults() {
        let bad = json!({ "key": "", "value": "a b", "effect": "NoSchedule" });
        check(
            json!({}),
            json!({ "startupTaints": [bad] }),
            &[
                "invalid key \"\" in startupTaints, name part must be non-empty",
                "invalid value \"a b\" in startupTaints, must consist of",
            ],
        );
    }

    /// API-43: at least one capacity type must exist; others are only worth a word.
    #[test]
    fn capacity_types_must_exist() {
        let only_unknown = json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["sport"] });
        check_requirement(only_unknown, &["invalid value: no valid values found in [\"sport\"]"]);
        let mixed = json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["sport", "spot"] });
        let found = validate(json!({}), json!({ "requirements": [mixed] }));
        assert_eq!((found.faults.len(), found.unknown_capacity_types), (0, vec!["sport".to_owned()]));
    }

    /// API-44: only capacity types that exist count towards `minValues`.
    #[test]
    fn unknown_capacity_types_do_not_count() {
        for (values, expected) in [
            (
                json!(["spot", "sport"]),
                vec!["invalid value: karpenter.sh/capacity-type has 1 valid values, minValues needs 2"],
            ),
            (json!(["spot", "reserved"]), vec![]),
        ] {
            let requirement =
                json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": values, "minValues": 2 });
            check_requirement(requirement, &expected);
        }
    }

    #[test]
    fn the_message_joins_all_faults() {
        let found = validate(json!({ "labels": { "-a": "b", "c": "d e" } }), json!({}));
        assert_eq!(found.message().unwrap().matches("in labels").count(), 2);
        assert_eq!(validate(json!({}), json!({})).message(), None);
    }
}
