//! Hashes of templates beside those that the reference computed.
#![allow(clippy::unwrap_used, reason = "tests")]

use api::NodePoolSpec;
use api::hash::node_pool_hash;
use serde_json::json;

/// Lines of a hash and the template it belongs to.
const COMPUTED: &str = include_str!("../fixtures/node_pool_hashes.tsv");

/// API-51: drawn templates hash bit for bit as the reference hashes them: absent, empty and repeated lists and maps,
/// empty values, zero durations and `Never` among them.
#[test]
fn drawn_templates_hash_as_the_reference_hashes_them() {
    let lines: Vec<&str> = COMPUTED.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 48);
    for line in lines {
        let (expected, template) = line.split_once('\t').unwrap();
        let template: serde_json::Value = serde_json::from_str(template).unwrap();
        let spec: NodePoolSpec = serde_json::from_value(json!({"template": template})).unwrap();
        assert_eq!(node_pool_hash(&spec.template), expected, "{template}");
    }
}
