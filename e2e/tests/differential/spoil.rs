//! Requests that are wrong in some way: in the path, the parameters, the types, or the object itself.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::request::{Body, Request, lay_over};

/// Makes an object wrong in one way that any server must notice.
pub(crate) fn object(rng: &mut Rng, kind: &Kind, object: &mut Value) {
    match rng.u8(..14) {
        0 => object["surprise"] = 1.into(),
        1 => object["metadata"]["surprise"] = json!({"a": "b"}),
        2 => object["metadata"]["labels"] = json!({"bad key!": "x"}),
        3 => object["metadata"]["labels"] = json!({"key": "bad value!"}),
        4 => object["metadata"]["name"] = "Not_A_Name".into(),
        5 => object["metadata"]["name"] = 5.into(),
        6 => object["kind"] = "Other".into(),
        7 => object["apiVersion"] = "v9".into(),
        8 => object["metadata"]["resourceVersion"] = "1".into(),
        9 => object["metadata"]["namespace"] = "another".into(),
        10 => object["metadata"]["finalizers"] = json!(["nodots"]),
        11 => object["metadata"]["annotations"] = json!(["no", "map"]),
        12 => object["metadata"] = Value::Null,
        _ => lay_over(object, &(kind.changes)(rng)),
    }
}

/// A JSON patch, right or wrong.
pub(crate) fn operations(rng: &mut Rng) -> Value {
    let choices = [
        json!([{"op": "add", "path": "/metadata/labels/new", "value": "1"}]),
        json!([{"op": "replace", "path": "/metadata/labels/app", "value": "data"}]),
        json!([{"op": "remove", "path": "/metadata/labels/app"}]),
        json!([{"op": "remove", "path": "/metadata/annotations/none"}]),
        json!([{"op": "test", "path": "/metadata/labels/app", "value": "web"}, {"op": "add", "path": "/metadata/annotations", "value": {"tested": "yes"}}]),
        json!([{"op": "remove", "path": "/metadata/finalizers"}]),
        json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/other"]}]),
        json!([{"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/copy"}]),
        json!([{"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/moved"}]),
        json!([{"op": "shuffle", "path": "/metadata"}]),
        json!([{"op": "replace", "path": "/spec", "value": 5}]),
        json!([{"op": "replace", "path": "/metadata/name", "value": "another"}]),
        json!([{"op": "add", "path": "/metadata/labels/new", "value": "not valid!"}]),
        json!({"op": "add"}),
    ];
    choices[rng.usize(..choices.len())].clone()
}

/// A request that is wrong as such.
pub(crate) fn request(rng: &mut Rng, namespace: &str) -> Request {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let map = || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    match rng.u8(..22) {
        0 => Request::new("GET", "/api/v1/unknowns"),
        1 => Request::new("GET", "/apis/unknown.example.com/v1/things"),
        2 => Request::new("GET", "/nothing/here"),
        3 => Request::new("GET", format!("{pods}/a/unknown")),
        4 => Request::new("PUT", pods).json(map()),
        5 => Request::new("GET", pods).query("labelSelector", "a in (b"),
        6 => Request::new("GET", pods).query("fieldSelector", "spec.unknown=a"),
        7 => Request::new("GET", pods).query("limit", "many"),
        8 => Request::new("GET", pods).query("continue", "nonsense"),
        9 => Request::new("GET", pods).query("resourceVersion", "nonsense"),
        10 => Request::new("POST", maps).body("application/json", Body::Text("{\"kind\": \"ConfigMap\",")),
        11 => Request::new("POST", maps).body("application/json", Body::Text("[]")),
        12 => Request::new("POST", maps).body("application/json", Body::Nothing),
        13 => Request::new("POST", maps).body("text/plain", Body::Json(map())),
        14 => Request::new("POST", maps).query("dryRun", "Some").json(map()),
        15 => Request::new("POST", maps).query("fieldValidation", "Maybe").json(map()),
        16 => Request::new("PATCH", format!("{maps}/a")).body("application/json", Body::Json(json!({}))),
        17 => Request::new("PATCH", format!("{maps}/a")).body("application/merge-patch+json", Body::Text("{")),
        18 => Request::new("DELETE", format!("{maps}/a")).query("propagationPolicy", "Sideways"),
        19 => Request::new("GET", format!("{maps}/a")).accept("application/xml"),
        20 => Request::new("POST", "/api/v1/namespaces/absent/configmaps").json(map()),
        _ => Request::new("POST", maps).body(
            "application/json",
            Body::Text(
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"a\":\"1\",\"a\":\"2\"}}",
            ),
        ),
    }
}
