//! The committed definitions are what the types say. `UPDATE_EXPECT=1 cargo test -p api` rewrites them.

use api::{Flavour, custom_resource_definitions};
use expect_test::expect_file;

const HEADER: &str = "# Generated from crates/api; rewrite with `UPDATE_EXPECT=1 cargo test -p api`.\n";

fn check(flavour: Flavour, chart: &str) {
    for definition in custom_resource_definitions(flavour) {
        let file = format!(
            "{}/../../charts/{chart}/crds/{}_{}.yaml",
            env!("CARGO_MANIFEST_DIR"),
            definition.spec.group,
            definition.spec.names.plural
        );
        let yaml = serde_yaml_ng::to_string(&definition).expect("definitions are plain data");
        expect_file![file].assert_eq(&format!("{HEADER}{yaml}"));
    }
}

#[test]
fn the_chart_for_eks_is_up_to_date() {
    check(Flavour::Eks, "karpenter");
}

#[test]
fn the_chart_for_kwok_is_up_to_date() {
    check(Flavour::Kwok, "karpenter-kwok");
}
