//! Lists: pages, revisions, and forms.

use crate::story::{Story, check};
use expect_test::expect;
use serde_json::Value;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn filled() -> Story {
    let story = Story::new();
    for name in ["a", "b", "c", "d", "e"] {
        story.ok(&format!("POST {MAPS} {{\"metadata\":{{\"name\":\"{name}\"}}}}"));
    }
    story
}

#[test]
fn pages_show_one_moment() {
    let story = filled();
    let first = story.ok(&format!("GET {MAPS}?limit=2"));
    let next = first["metadata"]["continue"].as_str().unwrap().to_owned();
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    story.ok(&format!("DELETE {MAPS}/d"));
    story.ok(&format!("POST {MAPS} {{\"metadata\":{{\"name\":\"cc\"}}}}"));
    story.ok(&format!("PATCH {MAPS}/e {{\"data\":{{\"x\":\"y\"}}}}"));
    let told = story.play(&format!(
        "GET {MAPS}?limit=3&continue={next} => /metadata/continue /items/2/data
         GET {MAPS}?resourceVersion={}&resourceVersionMatch=Exact
         GET {MAPS}
         GET {MAPS}?continue={next}&resourceVersion=5
         GET {MAPS}?continue=zz",
        first["metadata"]["resourceVersion"].as_str().unwrap()
    ));
    expect![[r#"
        200 ConfigMapList [c d e] - -
        200 ConfigMapList [a b c d e]
        200 ConfigMapList [a b c cc e]
        400 BadRequest: specifying resource version is not allowed when using continue
        400 BadRequest: invalid continue token: continue key is not valid: this server did not give it
    "#]]
    .assert_eq(&told);
    story.server.compact();
    expect![[r#"
        410 Expired: The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.
        410 Expired: The resourceVersion for the provided list is too old: 5
        200 ConfigMapList [a b c cc e]
    "#]].assert_eq(&story.play(&format!("GET {MAPS}?continue={next}\nGET {MAPS}?resourceVersion=5&resourceVersionMatch=Exact\nGET {MAPS}?resourceVersion=5")));
}

#[test]
fn revisions_are_checked() {
    check(
        &format!(
            "GET {MAPS}?resourceVersion=0
             GET {MAPS}?resourceVersion=99999
             GET {MAPS}/x?resourceVersion=99999
             GET {MAPS}?resourceVersion=abc
             GET {MAPS}?resourceVersionMatch=Exact
             GET {MAPS}?resourceVersion=0&resourceVersionMatch=Exact
             GET {MAPS}?resourceVersion=1&resourceVersionMatch=Sometimes"
        ),
        expect![[r#"
            200 ConfigMapList []
            504 Timeout: Timeout: Too large resource version: 99999, current: 11 ["ResourceVersionTooLarge Too large resource version"]
            504 Timeout: Timeout: Too large resource version: 99999, current: 11 ["ResourceVersionTooLarge Too large resource version"]
            400 BadRequest: invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax
            422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided ["FieldValueForbidden Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"]
            422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0" ["FieldValueForbidden Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""]
            422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Sometimes": supported values: "Exact", "NotOlderThan", "" ["FieldValueNotSupported Unsupported value: \"Sometimes\": supported values: \"Exact\", \"NotOlderThan\", \"\""]
        "#]],
    );
}

fn accepting(story: &Story, path: &str, accept: &str) -> (u16, Value) {
    let request = http::Request::get(path).header("accept", accept).body(Default::default()).unwrap();
    let sim::Answer::Document(response) = story.server.handle("tester", request) else { panic!() };
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

#[test]
fn forms_are_negotiated() {
    let story = Story::new();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (_, body) = accepting(&story, "/api/v1/namespaces", table);
    assert_eq!(body["kind"], "Table");
    assert_eq!(body["columnDefinitions"][0]["name"], "Name");
    assert_eq!(body["rows"][0]["cells"][0], "default");
    assert_eq!(body["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let (_, body) = accepting(&story, "/api/v1/namespaces?includeObject=None", table);
    assert_eq!(body["rows"][0]["object"], Value::Null);
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let (_, body) = accepting(&story, "/api/v1/namespaces", partial);
    assert_eq!(body["kind"], "PartialObjectMetadataList");
    assert_eq!(body["items"][0]["metadata"]["name"], "default");
    assert_eq!(body["items"][0].get("spec"), None);
    let (code, _) = accepting(&story, "/api/v1/namespaces", "application/vnd.kubernetes.protobuf");
    assert_eq!(code, 406);
    let (code, body) = accepting(&story, "/api/v1/namespaces", "application/vnd.kubernetes.protobuf,application/json");
    assert_eq!((code, &body["kind"]), (200, &Value::from("NamespaceList")));
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let run = || {
        let story = filled();
        story.play(&format!("DELETE {MAPS}/a\nGET {MAPS}\nPOST {MAPS} {{\"metadata\":{{\"generateName\":\"g-\"}}}}"));
        format!("{:?}", story.server.history())
    };
    assert_eq!(run(), run());
}
