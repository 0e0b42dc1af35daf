//! Patches as text: the object, the patch, and what comes out.

#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};
use serde_json::Value;

use super::{ListRule, PatchKind, Shape, apply};

/// The patch strategies of a kind that looks like a Deployment, in a few words.
struct Sketch(&'static str);

impl Shape for Sketch {
    fn field(&self, name: &str) -> Option<Box<dyn Shape + '_>> {
        let known = match (self.0, name) {
            ("root", "metadata") => "metadata",
            ("root", "spec") => "spec",
            ("metadata", "labels" | "annotations") => "map",
            ("metadata", "finalizers") => "set",
            ("metadata", "ownerReferences") => "list by uid",
            ("spec", "strategy") => "strategy",
            ("spec", "containers") => "list by name",
            ("spec", "tolerations" | "args") => "list",
            ("spec", "selector") => "atomic",
            ("container", "env" | "volumeMounts") => "list by name",
            ("container", "ports") => "list by containerPort",
            ("strategy", _) | ("map", _) | ("atomic", _) | ("container", _) => "map",
            _ => return None,
        };
        Some(Box::new(Sketch(known)))
    }

    fn item(&self) -> Option<Box<dyn Shape + '_>> {
        self.0.starts_with("list").then(|| Box::new(Sketch("container")) as Box<dyn Shape>)
    }

    fn list_rule(&self) -> ListRule<'_> {
        match self.0.strip_prefix("list by ") {
            Some(key) => ListRule::MergeByKey(key),
            None if self.0 == "set" => ListRule::MergeSet,
            None => ListRule::Replace,
        }
    }

    fn replaces(&self) -> bool {
        self.0 == "atomic"
    }
}

fn check(kind: PatchKind, original: &str, patch: &str, expected: Expect) {
    let original: Value = serde_json::from_str(original).unwrap();
    let patch: Value = serde_json::from_str(patch).unwrap();
    expected.assert_eq(&match apply(kind, &original, &patch, Some(&Sketch("root"))) {
        Ok(value) => value.to_string(),
        Err(error) => {
            let refused = error.refused();
            format!("{} {}: {error}", refused.code(), refused.reason().unwrap_or("-"))
        }
    });
}

fn json(original: &str, patch: &str, expected: Expect) {
    check(PatchKind::Json, original, patch, expected);
}

fn merge(original: &str, patch: &str, expected: Expect) {
    check(PatchKind::Merge, original, patch, expected);
}

fn strategic(original: &str, patch: &str, expected: Expect) {
    check(PatchKind::Strategic, original, patch, expected);
}

#[test]
fn json_operations() {
    json(r#"{"a":{"b":1}}"#, r#"[{"op":"add","path":"/a/c","value":2}]"#, expect![[r#"{"a":{"b":1,"c":2}}"#]]);
    json(
        r#"{"a":[1,2]}"#,
        r#"[{"op":"add","path":"/a/1","value":9},{"op":"add","path":"/a/-","value":8}]"#,
        expect![[r#"{"a":[1,9,2,8]}"#]],
    );
    json(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/-1","value":9}]"#, expect![[r#"{"a":[1,2,9]}"#]]);
    json(r#"{"a":[1,2]}"#, r#"[{"op":"remove","path":"/a/-1"}]"#, expect![[r#"{"a":[1]}"#]]);
    json(
        r#"{"a":{"x/y":1,"~":2}}"#,
        r#"[{"op":"remove","path":"/a/x~1y"},{"op":"replace","path":"/a/~0","value":3}]"#,
        expect![[r#"{"a":{"~":3}}"#]],
    );
    json(r#"{"a":1}"#, r#"[{"op":"replace","path":"/b","value":3}]"#, expect![[r#"{"a":1,"b":3}"#]]);
    json(r#"{"a":{"b":1}}"#, r#"[{"op":"move","from":"/a/b","path":"/c"}]"#, expect![[r#"{"a":{},"c":1}"#]]);
    json(r#"{"a":{"b":1}}"#, r#"[{"op":"copy","from":"/a","path":"/c"}]"#, expect![[r#"{"a":{"b":1},"c":{"b":1}}"#]]);
    json(
        r#"{"a":1}"#,
        r#"[{"op":"test","path":"/a","value":1},{"op":"test","path":"/none","value":null}]"#,
        expect![[r#"{"a":1}"#]],
    );
    json(r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{"b":2}}]"#, expect![[r#"{"b":2}"#]]);
}

#[test]
fn json_operations_that_fail() {
    json(
        r#"{"a":1}"#,
        r#"[{"op":"test","path":"/a","value":2}]"#,
        expect!["422 Invalid: the server rejected our request due to an error in our request"],
    );
    json(
        r#"{"a":1}"#,
        r#"[{"op":"remove","path":"/b"}]"#,
        expect!["422 Invalid: the server rejected our request due to an error in our request"],
    );
    json(
        r#"{"a":1}"#,
        r#"[{"op":"add","path":"/b/c","value":1}]"#,
        expect!["422 Invalid: the server rejected our request due to an error in our request"],
    );
    json(
        r#"{"a":[1]}"#,
        r#"[{"op":"replace","path":"/a/1","value":1}]"#,
        expect!["422 Invalid: the server rejected our request due to an error in our request"],
    );
    json(
        r#"{"a":[1]}"#,
        r#"[{"op":"shift","path":"/a/1"}]"#,
        expect!["422 Invalid: the server rejected our request due to an error in our request"],
    );
    json(
        r#"{"a":[1]}"#,
        r#"[{"op":"remove"}]"#,
        expect!["422 Invalid: the server rejected our request due to an error in our request"],
    );
    json(
        r#"{"a":[1]}"#,
        r#"[{"op":"add","path":"a","value":1}]"#,
        expect!["422 Invalid: the server rejected our request due to an error in our request"],
    );
    json(
        r#"{"a":1}"#,
        r#"{"a":2}"#,
        expect![
            "400 BadRequest: error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        ],
    );
    json(
        r#"{"a":1}"#,
        r#"["add"]"#,
        expect![
            "400 BadRequest: error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp"
        ],
    );
    json(
        r#"{"a":1}"#,
        r#"[{"op":1,"path":"/a"}]"#,
        expect![
            "400 BadRequest: error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"
        ],
    );
}

#[test]
fn merge_patches() {
    merge(
        r#"{"a":{"b":1,"c":2},"d":[1]}"#,
        r#"{"a":{"b":null,"e":{"f":null,"g":1}},"d":[null,2]}"#,
        expect![[r#"{"a":{"c":2,"e":{"g":1}},"d":[null,2]}"#]],
    );
    merge(r#"{"a":{"b":1}}"#, r#"{"a":[{"c":null}]}"#, expect![[r#"{"a":[{"c":null}]}"#]]);
    merge(r#"{"a":1}"#, r#"{"a":[{"c":null}]}"#, expect![[r#"{"a":[{}]}"#]]);
    merge(r#"{"a":1}"#, "null", expect!["400 BadRequest: Invalid JSON Patch"]);
    merge(
        r#"{"a":1}"#,
        "[]",
        expect![
            "400 BadRequest: error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        ],
    );
}

#[test]
fn strategic_maps_and_plain_lists() {
    strategic(
        r#"{"metadata":{"labels":{"a":"1","b":"2"},"finalizers":["x","y"]},"spec":{"args":["p"],"selector":{"a":1}}}"#,
        r#"{"metadata":{"labels":{"a":null,"c":"3","d":null},"finalizers":["z","x"]},"spec":{"args":["q"],"selector":{"b":2}}}"#,
        expect![[
            r#"{"metadata":{"finalizers":["z","x","y"],"labels":{"b":"2","c":"3"}},"spec":{"args":["q"],"selector":{"b":2}}}"#
        ]],
    );
    strategic(
        r#"{"metadata":{"finalizers":["x","y","z"]}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["y"]}}"#,
        expect![[r#"{"metadata":{"finalizers":["x","z"]}}"#]],
    );
    strategic(
        r#"{"metadata":{"finalizers":["x","y","z"]}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["y"],"$setElementOrder/finalizers":["new","z"],"finalizers":["new"]}}"#,
        expect![[r#"{"metadata":{"finalizers":["new","x","z"]}}"#]],
    );
}

#[test]
fn strategic_lists_by_key() {
    let pod = r#"{"spec":{"containers":[{"name":"a","image":"1","env":[{"name":"K","value":"v"}]},{"name":"b","image":"2"}]}}"#;
    strategic(
        pod,
        r#"{"spec":{"containers":[{"name":"b","image":"3"}]}}"#,
        expect![[
            r#"{"spec":{"containers":[{"env":[{"name":"K","value":"v"}],"image":"1","name":"a"},{"image":"3","name":"b"}]}}"#
        ]],
    );
    strategic(
        pod,
        r#"{"spec":{"containers":[{"name":"c","image":"3"}]}}"#,
        expect![[
            r#"{"spec":{"containers":[{"image":"3","name":"c"},{"env":[{"name":"K","value":"v"}],"image":"1","name":"a"},{"image":"2","name":"b"}]}}"#
        ]],
    );
    strategic(
        pod,
        r#"{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}"#,
        expect![[r#"{"spec":{"containers":[{"image":"2","name":"b"}]}}"#]],
    );
    strategic(
        pod,
        r#"{"spec":{"containers":[{"name":"c"},{"$patch":"replace"}]}}"#,
        expect![[r#"{"spec":{"containers":[{"name":"c"}]}}"#]],
    );
    strategic(
        pod,
        r#"{"spec":{"containers":[{"name":"a","env":[{"name":"L","value":"w"}],"image":null}]}}"#,
        expect![[
            r#"{"spec":{"containers":[{"env":[{"name":"L","value":"w"},{"name":"K","value":"v"}],"name":"a"},{"image":"2","name":"b"}]}}"#
        ]],
    );
    strategic(
        pod,
        r#"{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}}"#,
        expect![[
            r#"{"spec":{"containers":[{"image":"2","name":"b"},{"env":[{"name":"K","value":"v"}],"image":"1","name":"a"}]}}"#
        ]],
    );
    strategic(
        pod,
        r#"{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"c"}],"containers":[{"name":"c","image":"9"}]}}"#,
        expect![[
            r#"{"spec":{"containers":[{"env":[{"name":"K","value":"v"}],"image":"1","name":"a"},{"image":"2","name":"b"},{"image":"9","name":"c"}]}}"#
        ]],
    );
}

#[test]
fn strategic_objects() {
    let strategy = r#"{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}"#;
    strategic(
        strategy,
        r#"{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}"#,
        expect![[r#"{"spec":{"strategy":{"type":"Recreate"}}}"#]],
    );
    strategic(
        strategy,
        r#"{"spec":{"strategy":{"$patch":"replace","type":"Recreate"}}}"#,
        expect![[r#"{"spec":{"strategy":{"type":"Recreate"}}}"#]],
    );
    strategic(strategy, r#"{"spec":{"strategy":{"$patch":"delete"}}}"#, expect![[r#"{"spec":{"strategy":{}}}"#]]);
    strategic(
        r#"{"spec":{}}"#,
        r#"{"spec":{"strategy":{"$patch":"replace","type":"Recreate"}}}"#,
        expect![[r#"{"spec":{}}"#]],
    );
    strategic(
        r#"{"spec":{"strategy":{"type":"a"}}}"#,
        r#"{"$patch":"replace","metadata":{}}"#,
        expect![[r#"{"metadata":{}}"#]],
    );
}

/// `kubectl apply` with one image changed, one port removed, and its own annotation brought up to date.
#[test]
fn what_kubectl_apply_sends() {
    strategic(
        r#"{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"old","other":"kept"}},
            "spec":{"containers":[{"name":"web","image":"nginx:1","ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":443,"protocol":"TCP"}]},
                                  {"name":"injected","image":"proxy"}]}}"#,
        r#"{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"new"}},
            "spec":{"$setElementOrder/containers":[{"name":"web"}],
                    "containers":[{"$setElementOrder/ports":[{"containerPort":80}],"image":"nginx:2","name":"web",
                                   "ports":[{"$patch":"delete","containerPort":443}]}]}}"#,
        expect![[
            r#"{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"new","other":"kept"}},"spec":{"containers":[{"image":"nginx:2","name":"web","ports":[{"containerPort":80,"protocol":"TCP"}]},{"image":"proxy","name":"injected"}]}}"#
        ]],
    );
}

#[test]
fn strategic_errors() {
    let pod = r#"{"metadata":{"finalizers":["x"]},"spec":{"containers":[{"name":"a"}],"strategy":{"type":"a"}}}"#;
    strategic(
        pod,
        r#"{"spec":{"containers":[{"image":"3"}]}}"#,
        expect!["500 -: map: map[image:3] does not contain declared merge key: name"],
    );
    strategic(
        pod,
        r#"{"spec":{"containers":[{"name":"a","$patch":"merge"}]}}"#,
        expect!["500 -: merging lists cannot yet be specified in the patch"],
    );
    strategic(
        pod,
        r#"{"spec":{"containers":[{"name":"a","$patch":"drop"}]}}"#,
        expect!["500 -: unknown patch type: drop in map: map[$patch:drop name:a]"],
    );
    strategic(
        pod,
        r#"{"spec":{"containers":["a"]}}"#,
        expect!["500 -: list element types are not identical: [[map[name:a]] [a]]"],
    );
    strategic(
        pod,
        r#"{"spec":{"strategy":{"$patch":"merge"}}}"#,
        expect!["500 -: unknown patch type: merge in map: map[$patch:merge]"],
    );
    strategic(
        pod,
        r#"{"spec":{"strategy":{"$retainKeys":["a"],"type":"b"}}}"#,
        expect!["400 BadRequest: invalid patch format of retainKeys"],
    );
    strategic(
        pod,
        r#"{"spec":{"strategy":{"$retainKeys":"type"}}}"#,
        expect!["400 BadRequest: invalid patch format of retainKeys"],
    );
    strategic(
        pod,
        r#"{"spec":{"$setElementOrder/containers":"a"}}"#,
        expect!["500 -: expected a []interface {}, but received a string"],
    );
    strategic(
        pod,
        r#"{"spec":{"$setElementOrder":[]}}"#,
        expect!["400 BadRequest: invalid patch format of setElementOrder list"],
    );
    strategic(
        pod,
        r#"{"spec":{"$setElementOrder/nothing":[]}}"#,
        expect![[r#"500 -: unable to find api field for the json field "nothing""#]],
    );
    strategic(
        pod,
        r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"c"}]}}"#,
        expect![[r#"
            500 -: The order in patch list:
            [map[name:c]]
             doesn't match $setElementOrder list:
            [map[name:b]]
        "#]],
    );
    strategic(
        pod,
        r#"{"metadata":{"$deleteFromPrimitiveList":["x"]}}"#,
        expect!["400 BadRequest: invalid patch format of primitive list"],
    );
    strategic(
        pod,
        r#"{"metadata":{"$deletefromlist/finalizers":["x"]}}"#,
        expect![[r#"400 BadRequest: unknown patch directive "$deletefromlist/finalizers""#]],
    );
    strategic(
        pod,
        r#"[]"#,
        expect!["400 BadRequest: json: cannot unmarshal array into Go value of type map[string]interface {}"],
    );
    let custom = apply(PatchKind::Strategic, &Value::Null, &Value::Null, None).unwrap_err();
    assert_eq!(custom.refused().code(), 415);
}
