//! Making and changing objects.

use crate::story::{Story, check, pod};
use expect_test::expect;

#[test]
fn an_object_lives() {
    let body = pod("a", "");
    check(
        &format!(
            "POST /api/v1/namespaces/default/pods {body} => /metadata/generation /status/phase /status/qosClass /spec/priority
             POST /api/v1/namespaces/default/pods {body}
             GET /api/v1/namespaces/default/pods/a => /metadata/creationTimestamp /metadata/resourceVersion
             PATCH /api/v1/namespaces/default/pods/a {{\"metadata\":{{\"labels\":{{\"x\":\"y\"}}}}}} => /metadata/labels /metadata/generation
             GET /api/v1/namespaces/default/pods?labelSelector=x%3Dy
             GET /api/v1/namespaces/default/pods?labelSelector=x!%3Dy
             DELETE /api/v1/namespaces/default/pods/a
             GET /api/v1/namespaces/default/pods/a"
        ),
        expect![[r#"
            201 Pod a 1 "Pending" "BestEffort" 0
            409 AlreadyExists: pods "a" already exists
            200 Pod a "2023-11-14T22:13:20Z" "12"
            200 Pod a {"x":"y"} 1
            200 PodList [a]
            200 PodList []
            200 Pod a
            404 NotFound: pods "a" not found
        "#]],
    );
}

#[test]
fn a_creation_needs_a_place_and_a_name() {
    check(
        &format!(
            "POST /api/v1/namespaces/nowhere/pods {}
             POST /api/v1/namespaces/default/pods {}
             POST /api/v1/namespaces/default/pods {}
             POST /api/v1/namespaces/default/pods {}
             POST /api/v1/namespaces/default/configmaps {{\"metadata\":{{\"generateName\":\"x-\"}}}}
             POST /api/v1/namespaces/default/configmaps {{\"metadata\":{{\"name\":\"x\",\"resourceVersion\":\"3\"}}}}
             POST /api/v1/pods {}",
            pod("a", ""),
            pod("", ""),
            pod("a", ",\"namespace\":\"other\""),
            pod("A_", ""),
            pod("a", ""),
        ),
        expect![[r#"
            404 NotFound: namespaces "nowhere" not found
            422 Invalid: Pod "" is invalid: metadata.name: Required value: name or generateName is required ["FieldValueRequired Required value: name or generateName is required"]
            400 BadRequest: the namespace of the provided object does not match the namespace sent on the request
            422 Invalid: Pod "A_" is invalid: metadata.name: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*') ["FieldValueInvalid Invalid value: \"A_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]
            201 ConfigMap x-bpkjq
            500 -: resourceVersion should not be set on objects to be created
            405 MethodNotAllowed: the server does not allow this method on the requested resource
        "#]],
    );
}

#[test]
fn unknown_things_are_refused() {
    check(
        "GET /api/v1/gadgets
         GET /apis/nothing/v1/pods
         GET /nothing
         GET /api/v1/pods?colour=blue
         GET /api/v1/pods?fieldSelector=spec.colour%3Dblue
         GET /apis/apps/v1/deployments?fieldSelector=spec.colour%3Dblue
         GET /api/v1/pods?labelSelector=a%3D%3D%3Db
         GET /api/v1/namespaces/default/pods/a/paint
         PUT /api/v1/namespaces/default/pods {}
         POST /api/v1/namespaces/default/configmaps [application/xml] <a/>
         PATCH /api/v1/namespaces/default [application/apply-patch+yaml] {}
         PATCH /api/v1/namespaces/default [strategic] {\"metadata\":{\"$colour\":\"x\"}}
         POST /api/v1/namespaces/default/configmaps?fieldValidation=Strict {\"metadata\":{\"name\":\"x\"},\"colour\":1}
         POST /api/v1/namespaces/default/configmaps?dryRun=Some {\"metadata\":{\"name\":\"x\"}}
         POST /api/v1/namespaces/default/configmaps {\"kind\":\"Secret\",\"metadata\":{\"name\":\"x\"}}
         POST /api/v1/namespaces/default/configmaps {",
        expect![[r#"
            404 NotFound: the server could not find the requested resource
            404 ? 
            404 ? 
            400 BadRequest: unknown query parameter "colour" for list
            400 BadRequest: field label not supported: spec.colour
            400 BadRequest: "spec.colour" is not a known field selector: only "metadata.name", "metadata.namespace"
            400 BadRequest: unable to parse requirement: found '=', expected: identifier
            404 NotFound: the server could not find the requested resource
            405 MethodNotAllowed: the server does not allow this method on the requested resource
            415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf
            415 UnsupportedMediaType: 415: Unsupported Media Type
            400 BadRequest: unknown patch directive "$colour"
            400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "colour"
            422 Invalid: CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All" ["FieldValueNotSupported Unsupported value: [\"Some\"]: supported values: \"All\""]
            400 BadRequest: Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion
            400 BadRequest: the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({)
        "#]],
    );
}

#[test]
fn warnings_tell_what_was_dropped() {
    let answer = Story::new().send(
        "POST /api/v1/namespaces/default/configmaps {\"metadata\":{\"name\":\"x\"},\"colour\":1,\"data\":{\"a\":\"b\"}}",
    );
    let sim::Answer::Document(response) = answer else { panic!() };
    assert_eq!(response.headers()["warning"], "299 - \"unknown field \\\"colour\\\"\"");
}

#[test]
fn updates_are_guarded_by_versions() {
    let story = Story::new();
    let first =
        story.ok("POST /api/v1/namespaces/default/configmaps {\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"1\"}}");
    let mut second = first.clone();
    second["data"]["a"] = "2".into();
    let mut third = first.clone();
    third["data"]["a"] = "3".into();
    let mut other = first;
    other["metadata"]["uid"] = "another".into();
    other["metadata"]["resourceVersion"] = "".into();
    let path = "/api/v1/namespaces/default/configmaps/x";
    let told = story.play(&format!(
        "PUT {path} {second} => /data/a
         PUT {path} {third}
         PUT {path} {other}
         PUT {path} {{\"metadata\":{{\"name\":\"x\"}},\"data\":{{\"a\":\"4\"}}}} => /data/a
         PUT {path} {{\"metadata\":{{\"name\":\"y\"}}}}
         PUT /api/v1/namespaces/default/configmaps/y {{\"metadata\":{{\"name\":\"y\"}}}}
         PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l {{\"metadata\":{{\"name\":\"l\"}},\"spec\":{{}}}}
         PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l {{\"metadata\":{{\"name\":\"l\"}},\"spec\":{{}}}}
         PATCH {path} {{\"metadata\":{{\"resourceVersion\":\"1\"}}}}
         PATCH {path} {{\"data\":{{\"a\":\"5\"}}}} => /data/a
         PATCH {path} [json] [{{\"op\":\"test\",\"path\":\"/data/a\",\"value\":\"6\"}}]
         PATCH {path} [json] [{{\"op\":\"replace\",\"path\":\"/data/a\",\"value\":\"6\"}}] => /data/a
         PATCH {path}?dryRun=All {{\"data\":{{\"a\":\"7\"}}}} => /data/a
         GET {path} => /data/a"
    ));
    expect![[r#"
        200 ConfigMap x "2"
        409 Conflict: Operation cannot be fulfilled on configmaps "x": the object has been modified; please apply your changes to the latest version and try again
        409 Conflict: Operation cannot be fulfilled on configmaps "x": Precondition failed: UID in precondition: another, UID in object meta: 9f3c5fb7-77bc-4769-8501-77b39030d978
        200 ConfigMap x "4"
        400 BadRequest: the name of the object (y) does not match the name on the URL (x)
        404 NotFound: configmaps "y" not found
        201 Lease l
        422 Invalid: leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update ["FieldValueInvalid Invalid value: 0: must be specified for an update"]
        409 Conflict: Operation cannot be fulfilled on configmaps "x": the object has been modified; please apply your changes to the latest version and try again
        200 ConfigMap x "5"
        422 Invalid: the server rejected our request due to an error in our request
        200 ConfigMap x "6"
        200 ConfigMap x "7"
        200 ConfigMap x "6"
    "#]].assert_eq(&told);
}

#[test]
fn an_unchanged_object_keeps_its_version() {
    let story = Story::new();
    story.ok("POST /api/v1/namespaces/default/configmaps {\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"1\"}}");
    let before = story.server.revision();
    story.ok("PATCH /api/v1/namespaces/default/configmaps/x {\"data\":{\"a\":\"1\"}}");
    assert_eq!(story.server.revision(), before);
}

#[test]
fn spec_and_status_have_their_own_doors() {
    let deployment = r#"{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"replicas":7}}"#;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    check(
        &format!(
            "POST {path} {deployment} => /metadata/generation /spec/replicas /status
             PATCH {path}/d {{\"spec\":{{\"replicas\":3}},\"status\":{{\"replicas\":7}}}} => /metadata/generation /spec/replicas /status
             PATCH {path}/d/status {{\"spec\":{{\"replicas\":4}},\"status\":{{\"replicas\":3}}}} => /metadata/generation /spec/replicas /status
             PATCH {path}/d {{\"metadata\":{{\"annotations\":{{\"x\":\"y\"}}}}}} => /metadata/generation
             GET {path}/d/scale => /spec/replicas /status/replicas /status/selector
             PATCH {path}/d/scale {{\"spec\":{{\"replicas\":5}}}} => /spec/replicas /status/replicas
             GET {path}/d => /metadata/generation /spec/replicas
             PUT {path}/d/scale {{\"metadata\":{{\"name\":\"d\"}},\"spec\":{{\"replicas\":-1}}}}
             PATCH {path}/d [strategic] {{\"spec\":{{\"template\":{{\"spec\":{{\"containers\":[{{\"name\":\"c\",\"image\":\"j\"}}]}}}}}}}} => /spec/template/spec/containers/0/image /metadata/generation"
        ),
        expect![[r#"
            201 Deployment d 1 1 {}
            200 Deployment d 2 3 {}
            200 Deployment d 2 3 {"replicas":3}
            200 Deployment d 3
            200 Scale d 3 3 "a=b"
            200 Scale d 5 3
            200 Deployment d 4 5
            422 Invalid: Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0 ["FieldValueInvalid Invalid value: -1: must be greater than or equal to 0"]
            200 Deployment d "j" 5
        "#]],
    );
}

#[test]
fn yaml_is_read_too() {
    let story = Story::new();
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/yaml")
        .body("metadata:\n  name: x\ndata:\n  a: b\n".into())
        .unwrap();
    assert_eq!(story.server.handle("tester", request).code(), 201);
}
