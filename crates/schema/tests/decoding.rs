//! Bodies that are no objects of their kind, in the words of the real API server.
#![allow(clippy::unwrap_used, missing_docs)]

use expect_test::expect;
use schema::{FieldValidation, Schemas};

fn schemas() -> Schemas {
    let definition = serde_json::json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"}, "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "weight": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "port": {"x-kubernetes-int-or-string": true},
                "maybe": {"type": "string", "nullable": true},
                "given": {"type": "string", "default": "x"},
            }}}}},
        }]},
    });
    let mut schemas = Schemas::bundled();
    schemas.add_definition(&definition).unwrap();
    schemas
}

/// What comes of a body, strictly read, at `group/version/plural`.
fn shown(resource: &str, body: &str) -> String {
    let parts: Vec<_> = resource.split('/').collect();
    let schemas = schemas();
    let info = schemas.resource(parts[0], parts[1], parts[2]).unwrap();
    match info.schema().decode(body.as_bytes(), FieldValidation::Strict) {
        Ok(decoded) => {
            let mut object = decoded.object;
            info.schema().default(&mut object);
            object.to_string()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn bodies_are_refused_in_the_servers_words() {
    let cases = [
        ("apps/v1/deployments", "xyz"),
        ("apps/v1/deployments", "[]"),
        ("apps/v1/deployments", r#"{"kind":"Pod","apiVersion":"v1""#),
        ("apps/v1/deployments", ""),
        ("apps/v1/deployments", r#"{"kind":1}"#),
        ("apps/v1/deployments", r#"{"kind":"Foo","apiVersion":"v1"}"#),
        ("apps/v1/deployments", r#"{"kind":"Deployment","apiVersion":"apps/v9"}"#),
        ("apps/v1/deployments", r#"{"kind":"Pod","apiVersion":"v1"}"#),
        ("/v1/configmaps", r#"{"data":{"a":"1","a":"2"},"data":{"b":"1"},"foo":1}"#),
        ("example.com/v1/foos", r#"{"kind":"Foo","apiVersion":"v1"}"#),
        (
            "example.com/v1/foos",
            r#"{"metadata":{"name":"x","name":"y"},"spec":{"weight":1,"weight":2,"zoo":{"a":1,"a":2}}}"#,
        ),
    ];
    let text: Vec<_> = cases.iter().map(|(resource, body)| shown(resource, body)).collect();
    expect![[r#"
        the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of value (78797a)
        the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)
        the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: unexpected end of JSON input ({"kind":"Pod","apiVersion":"v1 ...)
        the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)
        the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1})
        Foo in version "v1" cannot be handled as a Deployment: no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"
        Deployment in version "v9" cannot be handled as a Deployment: no kind "Deployment" is registered for version "apps/v9" in scheme "pkg/runtime/scheme.go:111"
        Pod in version "v1" cannot be handled as a Deployment: converting (v1.Pod) to (apps.Deployment): unknown conversion
        ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.a", duplicate field "data", unknown field "foo"
        the API version in the data (v1) does not match the expected API version (example.com/v1)
        Foo in version "v1" cannot be handled as a Foo: strict decoding error: duplicate field "metadata.name", duplicate field "spec.weight", duplicate field "spec.zoo.a", unknown field "spec.zoo""#]]
    .assert_eq(&text.join("\n"));
}

#[test]
fn custom_objects_keep_what_they_may() {
    let body = r#"{"metadata":{"name":"a","labels":{},"annotations":null},
        "spec":{"weight":1.0,"free":{"x":null,"y":[1]},"port":"http","maybe":null,"given":null,"none":null}}"#;
    // An unknown field is an error when read strictly, even a null one.
    expect![[r#"Foo in version "v1" cannot be handled as a Foo: strict decoding error: unknown field "spec.none""#]]
        .assert_eq(&shown("example.com/v1/foos", body));
    let body = body.replace(r#","none":null"#, "");
    expect![[r#"{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"free":{"x":null,"y":[1]},"given":"x","maybe":null,"port":"http","weight":1}}"#]]
        .assert_eq(&shown("example.com/v1/foos", &body));
}
