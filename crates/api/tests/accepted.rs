//! Whatever the API server accepts, the types can read: an object that passed must not be lost on the way in.

use std::fs;
use std::path::Path;

use api::{CapacityBuffer, EC2NodeClass, KWOKNodeClass, NodeClaim, NodeOverlay, NodePool};
use serde::Deserialize;
use serde_json::{Value, json};

/// The parts of a case that matter here; the end-to-end tests use the others.
#[derive(Deserialize)]
struct Case {
    name: String,
    expect: Value,
    object: Value,
}

fn decode(mut object: Value) -> Result<(), serde_json::Error> {
    // The API server adds an absent spec before anybody reads the object.
    if object.get("spec").is_none() {
        object["spec"] = json!({});
    }
    match object["kind"].as_str().unwrap_or_default() {
        "NodePool" => serde_json::from_value::<NodePool>(object).map(drop),
        "NodeClaim" => serde_json::from_value::<NodeClaim>(object).map(drop),
        "NodeOverlay" => serde_json::from_value::<NodeOverlay>(object).map(drop),
        "CapacityBuffer" => serde_json::from_value::<CapacityBuffer>(object).map(drop),
        "EC2NodeClass" => serde_json::from_value::<EC2NodeClass>(object).map(drop),
        "KWOKNodeClass" => serde_json::from_value::<KWOKNodeClass>(object).map(drop),
        "Scale" => Ok(()),
        other => panic!("no kind {other}"),
    }
}

#[test]
fn accepted_objects_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/fixtures/resources");
    let mut accepted = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let case = Case::deserialize(document).unwrap();
            if case.expect == "accepted" {
                accepted += 1;
                decode(case.object).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            }
        }
    }
    assert!(accepted > 100, "only {accepted} cases found");
}
