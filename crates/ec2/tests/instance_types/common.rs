//! Classes from text, and instance types as text.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use api::ec2_node_class::EC2NodeClass;
use catalogue::Catalogue;
use ec2::{ClassView, RegionTypes, Settings};
use model::{InstanceType, Resources};

pub(crate) const REGION: &str = "us-west-2";

/// The types of the region that the tests are about.
pub(crate) fn region_types() -> &'static RegionTypes<'static> {
    static TYPES: OnceLock<RegionTypes<'static>> = OnceLock::new();
    TYPES.get_or_init(|| RegionTypes::new(Catalogue::bundled(), REGION).unwrap())
}

/// A class from lines of its spec, as if of a file, and perhaps of its status.
pub(crate) fn class(spec: &str, status: &str) -> ClassView {
    let indent = |lines: &str| -> String { lines.lines().map(|line| format!("  {line}\n")).collect() };
    let status = if status.is_empty() { String::new() } else { format!("status:\n{}", indent(status)) };
    let text = format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: test}}\nspec:\n  role: node\n  \
         subnetSelectorTerms: [{{id: subnet-1}}]\n  securityGroupSelectorTerms: [{{id: sg-1}}]\n{}{status}",
        indent(spec)
    );
    let class: EC2NodeClass = serde_yaml_ng::from_str(&text).unwrap();
    ClassView::new(&class, region_types().region())
}

/// A class of a family with more lines of spec.
pub(crate) fn of_family(family: &str, spec: &str) -> ClassView {
    class(&format!("amiFamily: {family}\namiSelectorTerms: [{{id: ami-1}}]\n{spec}"), "")
}

/// All types of a class with default settings and everything to be had.
pub(crate) fn types(class: &ClassView) -> Vec<Arc<InstanceType>> {
    region_types().instance_types(class, &Settings::default(), &|_, _, _| false)
}

/// One type of a class with default settings and everything to be had.
pub(crate) fn one(class: &ClassView, name: &str) -> Arc<InstanceType> {
    one_with(class, &Settings::default(), name)
}

pub(crate) fn one_with(class: &ClassView, settings: &Settings, name: &str) -> Arc<InstanceType> {
    region_types().instance_type(name, class, settings, &|_, _, _| false).unwrap()
}

pub(crate) fn named(types: &[Arc<InstanceType>], name: &str) -> Arc<InstanceType> {
    Arc::clone(types.iter().find(|kind| kind.name.as_str() == name).unwrap())
}

/// The amount of one resource as Kubernetes prints it, `-` if it is not there.
pub(crate) fn amount(resources: &Resources, name: &str) -> String {
    let found = resources.iter().find(|(resource, _)| resource.as_str() == name);
    found.map_or_else(|| "-".to_owned(), |(resource, amount)| model::format_quantity(resource, amount))
}

/// The value of one label: its values, or `absent`.
pub(crate) fn label(kind: &InstanceType, key: &str) -> String {
    let Some(requirement) = kind.requirements.get(key) else { return "undefined".to_owned() };
    if requirement.operator() == model::Operator::DoesNotExist {
        return "absent".to_owned();
    }
    let values: Vec<&str> = requirement.values().map(|value| &**value).collect();
    values.join("|")
}

/// How many offerings are for sale, by capacity type.
pub(crate) fn for_sale(kind: &InstanceType) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for offering in kind.offerings.iter().filter(|offering| offering.available) {
        *counts.entry(offering.capacity_type().as_str()).or_default() += 1;
    }
    counts
}
