//! Watches.

use crate::story::{Story, heard};
use expect_test::expect;
use serde_json::Value;
use sim::ServerSettings;
use std::collections::BTreeMap;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn changes_are_heard_in_order() {
    let story = Story::new();
    story.ok(&format!("POST {MAPS} {{\"metadata\":{{\"name\":\"old\"}}}}"));
    let from = story.server.revision();
    let mut all = story.watch(&format!("{MAPS}?watch=true"));
    story.play(&format!(
        "POST {MAPS} {{\"metadata\":{{\"name\":\"a\"}}}}
         PATCH {MAPS}/a {{\"data\":{{\"x\":\"1\"}}}}
         POST /api/v1/namespaces/kube-system/configmaps {{\"metadata\":{{\"name\":\"elsewhere\"}}}}
         DELETE {MAPS}/a"
    ));
    let mut later = story.watch(&format!("{MAPS}?watch=true&resourceVersion={from}"));
    let mut cluster = story.watch(&format!("/api/v1/configmaps?watch=true&resourceVersion={from}"));
    expect![[r#"
        ADDED ConfigMap old "12" -
        ADDED ConfigMap a "13" -
        MODIFIED ConfigMap a "14" {"x":"1"}
        DELETED ConfigMap a "16" {"x":"1"}
    "#]]
    .assert_eq(&heard(&mut all, "/metadata/resourceVersion /data"));
    expect![[r#"
        ADDED ConfigMap a
        MODIFIED ConfigMap a
        DELETED ConfigMap a
    "#]]
    .assert_eq(&heard(&mut later, ""));
    expect![[r#"
        ADDED ConfigMap a
        MODIFIED ConfigMap a
        ADDED ConfigMap elsewhere
        DELETED ConfigMap a
    "#]]
    .assert_eq(&heard(&mut cluster, ""));
}

#[test]
fn selectors_translate_changes() {
    let story = Story::new();
    let mut stream = story.watch(&format!("{MAPS}?watch=true&labelSelector=team%3Dred"));
    story.play(&format!(
        "POST {MAPS} {{\"metadata\":{{\"name\":\"a\"}}}}
         PATCH {MAPS}/a {{\"metadata\":{{\"labels\":{{\"team\":\"red\"}}}}}}
         PATCH {MAPS}/a {{\"data\":{{\"x\":\"1\"}}}}
         PATCH {MAPS}/a {{\"metadata\":{{\"labels\":{{\"team\":\"blue\"}}}}}}
         DELETE {MAPS}/a"
    ));
    expect![[r#"
        ADDED ConfigMap a "red" "13"
        MODIFIED ConfigMap a "red" "14"
        DELETED ConfigMap a "red" "15"
    "#]]
    .assert_eq(&heard(&mut stream, "/metadata/labels/team /metadata/resourceVersion"));
}

#[test]
fn old_revisions_are_gone() {
    let story = Story::with(ServerSettings { seed: 1, keep_history: false, watch_window: 2 });
    let from = story.server.revision();
    for name in ["a", "b", "c"] {
        story.ok(&format!("POST {MAPS} {{\"metadata\":{{\"name\":\"{name}\"}}}}"));
    }
    let mut stream = story.watch(&format!("{MAPS}?watch=true&resourceVersion={from}"));
    expect![[r#"
        ERROR Expired: too old resource version: 11 (12)
    "#]]
    .assert_eq(&heard(&mut stream, ""));
    let mut stream = story.watch(&format!("{MAPS}?watch=true&resourceVersion={}", from + 1));
    expect![[r#"
        ADDED ConfigMap b
        ADDED ConfigMap c
    "#]]
    .assert_eq(&heard(&mut stream, ""));
    story.server.compact();
    let mut stream = story.watch(&format!("{MAPS}?watch=true&resourceVersion={}", from + 2));
    expect![[r#"
        ERROR Expired: too old resource version: 13 (14)
    "#]]
    .assert_eq(&heard(&mut stream, ""));
}

#[test]
fn bookmarks_and_initial_events() {
    let story = Story::new();
    story.ok(&format!("POST {MAPS} {{\"metadata\":{{\"name\":\"a\"}}}}"));
    let mut stream = story.watch(&format!(
        "{MAPS}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    ));
    assert!(stream.bookmark());
    expect![[r#"
        ADDED ConfigMap a "12" -
        BOOKMARK ConfigMap  "12" {"k8s.io/initial-events-end":"true"}
        BOOKMARK ConfigMap  "12" -
    "#]]
    .assert_eq(&heard(&mut stream, "/metadata/resourceVersion /metadata/annotations"));
    assert!(!story.watch(&format!("{MAPS}?watch=true")).bookmark());
    expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan ["FieldValueForbidden Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"]
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided ["FieldValueForbidden Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"]
    "#]].assert_eq(&story.play(&format!(
        "GET {MAPS}?watch=true&sendInitialEvents=true
         GET {MAPS}?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1"
    )));
}

/// A list and the changes after it give the next list.
#[test]
fn replayed_changes_give_the_next_list() {
    let mut rng = fastrand::Rng::with_seed(7);
    let story = Story::new();
    let items = |list: &Value| -> BTreeMap<String, Value> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone())).collect()
    };
    for _ in 0..30 {
        let selector = ["", "&labelSelector=l%3D1", "&fieldSelector=metadata.name%3Dn2"][rng.usize(..3)];
        let before = story.ok(&format!("GET {MAPS}?limit=0{selector}"));
        let version = before["metadata"]["resourceVersion"].as_str().unwrap();
        let mut stream = story.watch(&format!("{MAPS}?watch=true&resourceVersion={version}{selector}"));
        for _ in 0..rng.usize(..20) {
            let (name, label, value) = (rng.usize(..4), rng.usize(..2), rng.u32(..));
            let line = match rng.usize(..3) {
                0 => format!("POST {MAPS} {{\"metadata\":{{\"name\":\"n{name}\",\"labels\":{{\"l\":\"{label}\"}}}}}}"),
                1 => format!("DELETE {MAPS}/n{name}"),
                _ => format!(
                    "PATCH {MAPS}/n{name} {{\"metadata\":{{\"labels\":{{\"l\":\"{label}\"}}}},\"data\":{{\"v\":\"{value}\"}}}}"
                ),
            };
            story.call(&line);
        }
        let mut state = items(&before);
        while let Some(frame) = stream.try_next() {
            let mut event: Value = serde_json::from_slice(&frame).unwrap();
            let mut object = event["object"].take();
            object.as_object_mut().unwrap().remove("kind");
            object.as_object_mut().unwrap().remove("apiVersion");
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            match event["type"].as_str().unwrap() {
                "ADDED" => assert!(state.insert(name, object).is_none()),
                "MODIFIED" => assert!(state.insert(name, object).is_some()),
                "DELETED" => assert!(state.remove(&name).is_some()),
                other => panic!("{other}"),
            }
        }
        assert_eq!(state, items(&story.ok(&format!("GET {MAPS}?limit=0{selector}"))));
    }
}
