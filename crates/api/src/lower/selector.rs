//! Small pieces that several objects share.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use model::{
    Effect, LabelOperator, LabelRequirement, Labels, Operator, Requirement, ResourceName, Resources, Selector, Taint,
    Text, Toleration, TolerationOperator, parse_quantity,
};

/// Amounts from quantities; a quantity that cannot be read counts as zero, as the API server never stores one.
pub fn resources<'a>(quantities: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> Resources {
    let amount = |(name, quantity): (&'a String, &'a Quantity)| {
        let resource = ResourceName::new(name.as_str());
        let amount = parse_quantity(&resource, &quantity.0).unwrap_or(0);
        (resource, amount)
    };
    quantities.into_iter().map(amount).collect()
}

/// Labels as shared text.
pub(super) fn labels(written: Option<&BTreeMap<String, String>>) -> Labels {
    let shared = |(key, value): (&String, &String)| (Text::from(key.as_str()), Text::from(value.as_str()));
    written.into_iter().flatten().map(shared).collect()
}

/// A selector over labels: none selects nothing, an empty one everything, and one that cannot be read nothing.
pub(super) fn label_selector(written: Option<&LabelSelector>) -> Selector {
    let Some(written) = written else { return Selector::Nothing };
    let equal = written.match_labels.iter().flatten();
    let mut requirements: Vec<LabelRequirement> =
        equal.map(|(key, value)| LabelRequirement::is(key.as_str(), value.as_str())).collect();
    for expression in written.match_expressions.iter().flatten() {
        let Some(requirement) = label_requirement(expression) else { return Selector::Nothing };
        requirements.push(requirement);
    }
    // In whatever order they are written, equal demands are equal.
    requirements.sort();
    Selector::All(requirements)
}

fn label_requirement(written: &LabelSelectorRequirement) -> Option<LabelRequirement> {
    let operator = match written.operator.as_str() {
        "Gt" | "Lt" => return None,
        known => LabelOperator::parse(known)?,
    };
    let mut values: Vec<Text> = written.values.iter().flatten().map(|value| Text::from(value.as_str())).collect();
    values.sort();
    Some(LabelRequirement { key: Text::from(written.key.as_str()), operator, values })
}

/// One expression of a node selector; `None` when the operator or its values make no sense.
pub(super) fn expression(written: &core::NodeSelectorRequirement) -> Option<Requirement> {
    let values = written.values.iter().flatten().map(|value| Text::from(value.as_str()));
    Requirement::new(Operator::parse(&written.operator)?, values)
}

/// A requirement that no value satisfies.
pub(super) fn nothing() -> Requirement {
    Requirement::any_of(std::iter::empty::<Text>())
}

/// Taints with an effect we know; an unknown effect has no meaning for placement.
pub fn lower_taints<'a>(taints: impl IntoIterator<Item = &'a core::Taint>) -> Vec<Taint> {
    let lower = |taint: &core::Taint| {
        let effect = Effect::parse(&taint.effect)?;
        Some(Taint::new(taint.key.as_str(), taint.value.as_deref().unwrap_or_default(), effect))
    };
    taints.into_iter().filter_map(lower).collect()
}

/// Tolerations with an operator and effect we know.
pub(super) fn tolerations<'a>(written: impl IntoIterator<Item = &'a core::Toleration>) -> Vec<Toleration> {
    written.into_iter().filter_map(toleration).collect()
}

fn toleration(written: &core::Toleration) -> Option<Toleration> {
    let operator = match written.operator.as_deref().unwrap_or("Equal") {
        "Exists" => TolerationOperator::Exists,
        "Equal" | "" => TolerationOperator::Equal,
        "Gt" => TolerationOperator::GreaterThan,
        "Lt" => TolerationOperator::LessThan,
        _ => return None,
    };
    let effect = match written.effect.as_deref().unwrap_or_default() {
        "" => None,
        text => Some(Effect::parse(text)?),
    };
    let key = written.key.as_deref().filter(|key| !key.is_empty()).map(Text::from);
    Some(Toleration { key, operator, value: Text::from(written.value.as_deref().unwrap_or_default()), effect })
}
