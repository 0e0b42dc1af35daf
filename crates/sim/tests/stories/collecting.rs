//! What goes because something else went.

use crate::story::Story;
use expect_test::expect;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Makes a config map that belongs to others.
fn make(story: &Story, name: &str, owners: &[&Value], more: &Value) -> Value {
    let references: Vec<Value> = owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": true,
            })
        })
        .collect();
    let mut metadata = json!({ "name": name, "ownerReferences": references });
    for (key, value) in more.as_object().unwrap() {
        metadata[key] = value.clone();
    }
    story.ok(&format!("POST {MAPS} {}", json!({ "metadata": metadata })))
}

#[test]
fn dependents_follow_their_last_owner() {
    let story = Story::new();
    let (first, second) = (make(&story, "first", &[], &json!({})), make(&story, "second", &[], &json!({})));
    let child = make(&story, "child", &[&first, &second], &json!({}));
    make(&story, "grandchild", &[&child], &json!({}));
    make(&story, "stranger", &[], &json!({}));
    let told = story.play(&format!(
        "DELETE {MAPS}/first
         collect
         GET {MAPS}
         GET {MAPS}/child => /metadata/ownerReferences/0/name /metadata/ownerReferences/1/name
         DELETE {MAPS}/second
         collect
         GET {MAPS}"
    ));
    expect![[r#"
        200 Success first
        200 ConfigMapList [child grandchild second stranger]
        200 ConfigMap child "second" -
        200 Success second
        200 ConfigMapList [stranger]
    "#]]
    .assert_eq(&told);
}

#[test]
fn owners_wait_in_the_foreground_and_release_as_orphans() {
    let story = Story::new();
    let owner = make(&story, "owner", &[], &json!({}));
    make(&story, "held", &[&owner], &json!({ "finalizers": ["a.b/c"] }));
    make(&story, "free", &[&owner], &json!({}));
    let told = story.play(&format!(
        "DELETE {MAPS}/owner {{\"propagationPolicy\":\"Foreground\"}} => /metadata/finalizers
         collect
         GET {MAPS}
         PATCH {MAPS}/held {{\"metadata\":{{\"finalizers\":null}}}}
         collect
         GET {MAPS}"
    ));
    expect![[r#"
        200 ConfigMap owner ["foregroundDeletion"]
        200 ConfigMapList [held owner]
        200 ConfigMap held
        200 ConfigMapList []
    "#]]
    .assert_eq(&told);
    let owner = make(&story, "owner", &[], &json!({}));
    make(&story, "left", &[&owner], &json!({}));
    let told = story.play(&format!(
        "DELETE {MAPS}/owner {{\"propagationPolicy\":\"Orphan\"}} => /metadata/finalizers
         collect
         GET {MAPS}
         GET {MAPS}/left => /metadata/ownerReferences"
    ));
    expect![[r#"
        200 ConfigMap owner ["orphan"]
        200 ConfigMapList [left]
        200 ConfigMap left -
    "#]]
    .assert_eq(&told);
}

#[test]
fn an_orphan_by_birth_goes() {
    let story = Story::new();
    let ghost = json!({ "metadata": { "name": "ghost", "uid": "11111111-1111-4111-8111-111111111111" } });
    make(&story, "child", &[&ghost], &json!({}));
    expect![[r#"
        200 ConfigMapList []
    "#]]
    .assert_eq(&story.play(&format!("collect\nGET {MAPS}")));
}

#[test]
fn namespaces_go_when_they_are_empty() {
    let story = Story::new();
    let told = story.play(
        "POST /api/v1/namespaces {\"metadata\":{\"name\":\"n\"}} => /spec/finalizers /status/phase /metadata/labels
         GET /api/v1/namespaces/n/serviceaccounts
         POST /api/v1/namespaces/n/configmaps {\"metadata\":{\"name\":\"x\",\"finalizers\":[\"a.b/c\"]}}
         DELETE /api/v1/namespaces/default
         DELETE /api/v1/namespaces/n => /status/phase
         POST /api/v1/namespaces/n/configmaps {\"metadata\":{\"name\":\"y\"}}
         collect
         GET /api/v1/namespaces/n/configmaps
         GET /api/v1/namespaces/n/serviceaccounts
         PATCH /api/v1/namespaces/n/configmaps/x {\"metadata\":{\"finalizers\":null}}
         collect
         GET /api/v1/namespaces/n",
    );
    expect![[r#"
        201 Namespace n ["kubernetes"] "Active" {"kubernetes.io/metadata.name":"n"}
        200 ServiceAccountList [default]
        201 ConfigMap x
        403 Forbidden: namespaces "default" is forbidden: this namespace may not be deleted
        200 Namespace n "Terminating"
        403 Forbidden: configmaps "y" is forbidden: unable to create new content in namespace n because it is being terminated ["NamespaceTerminating namespace n is being terminated"]
        200 ConfigMapList [x]
        200 ServiceAccountList []
        200 ConfigMap x
        404 NotFound: namespaces "n" not found
    "#]].assert_eq(&told);
}
