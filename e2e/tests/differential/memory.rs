//! What one server has said so far: objects, versions and tokens that later requests refer to.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::request::Request;
use crate::servers::Reply;

/// What one server has said so far in one episode.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// By path: the object as last seen, and the version at which it was seen first.
    objects: BTreeMap<String, (Value, String)>,
    /// By path of a collection: the token of its last list.
    next_pages: BTreeMap<String, String>,
}

impl Memory {
    /// `@uid PATH`, `@version PATH` and `@first-version PATH` stand for what was seen of an object, `@next PATH` for
    /// the token of the last list there, if it had more. What was never seen is `0`, for both servers alike.
    pub(crate) fn resolve(&self, text: &str) -> String {
        let unseen = || "0".to_owned();
        let seen = |path: &str, pointer: &str| {
            let value = self.objects.get(path)?.0.pointer(pointer)?;
            value.as_str().map(str::to_owned)
        };
        match text.split_once(' ') {
            Some(("@uid", path)) => seen(path, "/metadata/uid").unwrap_or_else(unseen),
            Some(("@version", path)) => seen(path, "/metadata/resourceVersion").unwrap_or_else(unseen),
            Some(("@first-version", path)) => {
                self.objects.get(path).map_or_else(unseen, |(_, version)| version.clone())
            }
            Some(("@next", path)) => self.next_pages.get(path).cloned().unwrap_or_default(),
            _ => text.to_owned(),
        }
    }

    /// The object last seen at a path.
    pub(crate) fn object(&self, path: &str) -> Option<&Value> {
        self.objects.get(path).map(|(object, _)| object)
    }

    /// Remembers what a reply shows.
    pub(crate) fn learn(&mut self, request: &Request, reply: &Reply) {
        if reply.code >= 300 || request.accept != "application/json" {
            return;
        }
        if let Some(items) = reply.body.get("items").and_then(Value::as_array) {
            let next = reply.body.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default();
            self.next_pages.insert(request.path.clone(), next.to_owned());
            // Items of built-in kinds do not say what they are; whoever sends one back must.
            let kind = reply.body["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
            for item in items {
                let mut item = item.clone();
                item["kind"] = kind.into();
                item["apiVersion"] = reply.body["apiVersion"].clone();
                self.see(&request.path, item);
            }
        } else if matches!(reply.body["kind"].as_str(), None | Some("Status" | "Scale" | "Binding" | "Eviction")) {
            // Nothing that could be sent back.
        } else if request.method == "POST" {
            self.see(&request.path, reply.body.clone());
        } else {
            let path = request.path.strip_suffix("/status").unwrap_or(&request.path);
            if let Some((collection, _)) = path.rsplit_once('/') {
                self.see(collection, reply.body.clone());
            }
        }
    }

    fn see(&mut self, collection: &str, object: Value) {
        let (Some(name), Some(version)) = (
            object.pointer("/metadata/name").and_then(Value::as_str),
            object.pointer("/metadata/resourceVersion").and_then(Value::as_str),
        ) else {
            return;
        };
        let path = format!("{collection}/{name}");
        let version = version.to_owned();
        let first = self.objects.get(&path).map_or(version, |(_, first)| first.clone());
        self.objects.insert(path, (object, first));
    }
}
