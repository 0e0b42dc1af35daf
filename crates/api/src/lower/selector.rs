//! Small pieces that several objects share.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::{
    Effect, Operator, Requirement, ResourceName, Resources, Taint, Text, Toleration, TolerationOperator, parse_quantity,
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

/// One expression of a node selector; `None` when the operator or its values make no sense.
pub(super) fn expression(written: &core::NodeSelectorRequirement) -> Option<Requirement> {
    let values = written.values.iter().flatten().map(|value| Text::from(value.as_str()));
    Requirement::new(Operator::parse(&written.operator)?, values)
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
