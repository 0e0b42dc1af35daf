//! Deleting objects.

use crate::story::{Story, check, heard, pod};
use expect_test::expect;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn bind(name: &str) -> String {
    format!(
        "POST {PODS}/{name}/binding {{\"metadata\":{{\"name\":\"{name}\"}},\"target\":{{\"kind\":\"Node\",\"name\":\"n\"}}}}"
    )
}

#[test]
fn a_running_pod_waits_for_its_kubelet() {
    let story = Story::new();
    let mut stream = story.watch(&format!("{PODS}?watch=true"));
    let told = story.play(&format!(
        "POST {PODS} {}
         {} 
         {}
         DELETE {PODS}/a => /metadata/deletionTimestamp /metadata/deletionGracePeriodSeconds /metadata/generation
         pass 5
         DELETE {PODS}/a {{\"gracePeriodSeconds\":40}} => /metadata/deletionTimestamp
         DELETE {PODS}/a {{\"gracePeriodSeconds\":10}} => /metadata/deletionTimestamp /metadata/deletionGracePeriodSeconds
         GET {PODS}/a => /metadata/deletionTimestamp
         DELETE {PODS}/a {{\"gracePeriodSeconds\":0}}
         GET {PODS}/a",
        pod("a", ""),
        bind("a"),
        bind("a"),
    ));
    expect![[r#"
        201 Pod a
        201 Success 
        409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"
        200 Pod a "2023-11-14T22:13:50Z" 30 2
        200 Pod a "2023-11-14T22:13:50Z"
        200 Pod a "2023-11-14T22:13:30Z" 10
        200 Pod a "2023-11-14T22:13:30Z"
        200 Pod a
        404 NotFound: pods "a" not found
    "#]]
    .assert_eq(&told);
    expect![[r#"
        ADDED Pod a - -
        MODIFIED Pod a "n" -
        MODIFIED Pod a "n" 30
        MODIFIED Pod a "n" 10
        MODIFIED Pod a "n" 0
        DELETED Pod a "n" 0
    "#]]
    .assert_eq(&heard(&mut stream, "/spec/nodeName /metadata/deletionGracePeriodSeconds"));
}

#[test]
fn finalizers_hold_objects() {
    let maps = "/api/v1/namespaces/default/configmaps";
    check(
        &format!(
            "POST {maps} {{\"metadata\":{{\"name\":\"x\",\"finalizers\":[\"a.b/c\"]}}}}
             DELETE {maps}/x => /metadata/deletionTimestamp /metadata/deletionGracePeriodSeconds
             DELETE {maps}/x => /metadata/deletionTimestamp
             PATCH {maps}/x {{\"metadata\":{{\"finalizers\":[\"a.b/c\",\"d.e/f\"]}}}}
             PATCH {maps}/x {{\"metadata\":{{\"finalizers\":null}}}}
             GET {maps}/x"
        ),
        expect![[r#"
            201 ConfigMap x
            200 ConfigMap x "2023-11-14T22:13:20Z" 0
            200 ConfigMap x "2023-11-14T22:13:20Z"
            422 Invalid: ConfigMap "x" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"d.e/f"} ["FieldValueForbidden Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"d.e/f\"}"]
            200 ConfigMap x
            404 NotFound: configmaps "x" not found
        "#]],
    );
}

#[test]
fn preconditions_and_options_are_checked() {
    let maps = "/api/v1/namespaces/default/configmaps";
    let story = Story::new();
    story.ok(&format!("POST {maps} {{\"metadata\":{{\"name\":\"x\"}}}}"));
    let told = story.play(&format!(
        "DELETE {maps}/x {{\"preconditions\":{{\"uid\":\"other\"}}}}
         DELETE {maps}/x {{\"preconditions\":{{\"resourceVersion\":\"1\"}}}}
         DELETE {maps}/x {{\"propagationPolicy\":\"Sideways\"}}
         DELETE {maps}/x {{\"colour\":\"blue\"}}
         DELETE {maps}/x?dryRun=All
         DELETE {maps}/x?gracePeriodSeconds=0&propagationPolicy=Background
         DELETE {maps}/x"
    ));
    expect![[r#"
        409 Conflict: Operation cannot be fulfilled on ConfigMap "x": the UID in the precondition (other) does not match the UID in record (9f3c5fb7-77bc-4769-8501-77b39030d978). The object might have been deleted and then recreated
        409 Conflict: Operation cannot be fulfilled on ConfigMap "x": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (12). The object might have been modified
        422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil" ["FieldValueNotSupported Unsupported value: \"Sideways\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""]
        400 BadRequest: unknown field "colour" in DeleteOptions
        200 Success x
        200 Success x
        404 NotFound: configmaps "x" not found
    "#]].assert_eq(&told);
}

#[test]
fn many_go_at_once() {
    let maps = "/api/v1/namespaces/default/configmaps";
    check(
        &format!(
            "POST {maps} {{\"metadata\":{{\"name\":\"x\",\"labels\":{{\"k\":\"1\"}}}}}}
             POST {maps} {{\"metadata\":{{\"name\":\"y\",\"labels\":{{\"k\":\"2\"}}}}}}
             POST {maps} {{\"metadata\":{{\"name\":\"z\",\"labels\":{{\"k\":\"1\"}}}}}}
             DELETE {maps}?labelSelector=k%3D1
             GET {maps}"
        ),
        expect![[r#"
            201 ConfigMap x
            201 ConfigMap y
            201 ConfigMap z
            200 ConfigMapList [x z]
            200 ConfigMapList [y]
        "#]],
    );
}
