//! Objects on their way out: whole, as metadata only, or as a table; alone, in lists, and in watch events.

use crate::accept::Output;
use crate::query::Query;
use crate::status_body::Status;
use crate::store::Stored;
use crate::strategy::TEMPLATE_GENERATION;
use crate::table::{CustomColumn, Printer};
use bytes::Bytes;
use jiff::Timestamp;
use schema::ResourceInfo;
use serde_json::{Value, json};

/// How the objects of one resource go out to one client.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    output: Output,
    api_version: String,
    kind: String,
    list_kind: String,
    is_custom: bool,
    printer: Option<Printer>,
    include: IncludeObject,
}

/// What a table's rows carry beside the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IncludeObject {
    Nothing,
    Metadata,
    Object,
}

/// What a list says about itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListFacts {
    pub(crate) revision: u64,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl Form {
    pub(crate) fn new(info: &ResourceInfo, output: Output, query: &Query) -> Result<Self, Status> {
        let include = match query.text("includeObject") {
            None | Some("Metadata") => IncludeObject::Metadata,
            Some("None") => IncludeObject::Nothing,
            Some("Object") => IncludeObject::Object,
            Some(other) => {
                return Err(Status::bad_request(format!("unrecognized includeObject value: {other}")));
            }
        };
        Ok(Self {
            output,
            api_version: info.api_version(),
            kind: info.kind.clone(),
            list_kind: info.list_kind.clone(),
            is_custom: info.is_custom,
            printer: (output == Output::Table).then(|| printer(info)),
            include,
        })
    }

    /// One object.
    pub(crate) fn object(&self, stored: &Stored, now: Timestamp) -> Bytes {
        match self.output {
            Output::Whole => stored.json_as(&self.api_version, &self.kind),
            Output::Partial | Output::PartialList => to_bytes(&partial(&stored.value())),
            Output::Table => self.table(
                &[stored],
                &ListFacts { revision: stored.header.revision, ..ListFacts::default() },
                now,
                true,
            ),
        }
    }

    /// One object of a watch; tables name their columns the first time only.
    pub(crate) fn watched(&self, stored: &Stored, now: Timestamp, first: bool) -> Bytes {
        match self.output {
            Output::Table => self.table(
                &[stored],
                &ListFacts { revision: stored.header.revision, ..ListFacts::default() },
                now,
                first,
            ),
            _ => self.object(stored, now),
        }
    }

    /// Many objects.
    pub(crate) fn list(&self, objects: &[&Stored], facts: &ListFacts, now: Timestamp) -> Bytes {
        match self.output {
            Output::Table => self.table(objects, facts, now, true),
            Output::Partial | Output::PartialList => to_bytes(&json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": list_metadata(facts),
                // No list, not an empty one; so the real server says it.
                "items": (!objects.is_empty())
                    .then(|| objects.iter().map(|stored| partial(&stored.value())).collect::<Vec<_>>()),
            })),
            Output::Whole => self.whole_list(objects, facts),
        }
    }

    /// Puts the texts of the objects together. Built-in kinds leave `apiVersion` and `kind` out of items.
    fn whole_list(&self, objects: &[&Stored], facts: &ListFacts) -> Bytes {
        let size: usize = objects.iter().map(|stored| stored.json.len() + 1).sum();
        let mut body = Vec::with_capacity(size + 200);
        let head = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
            self.list_kind,
            self.api_version,
            self.list_metadata(facts)
        );
        body.extend_from_slice(head.as_bytes());
        for (index, stored) in objects.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            if self.is_custom {
                body.extend_from_slice(&stored.json_as(&self.api_version, &self.kind));
            } else {
                body.push(b'{');
                body.extend_from_slice(stored.members());
            }
        }
        body.extend_from_slice(b"]}");
        Bytes::from(body)
    }

    /// Lists of custom kinds always say where to go on, even if it is nowhere.
    fn list_metadata(&self, facts: &ListFacts) -> Value {
        let mut metadata = list_metadata(facts);
        if self.is_custom && facts.next.is_none() {
            metadata["continue"] = json!("");
        }
        metadata
    }

    fn table(&self, objects: &[&Stored], facts: &ListFacts, now: Timestamp, with_columns: bool) -> Bytes {
        let Some(printer) = &self.printer else { return Bytes::new() };
        let rows: Vec<Value> = objects
            .iter()
            .map(|stored| {
                let mut value = stored.value();
                value["apiVersion"] = Value::String(self.api_version.clone());
                let cells = printer.cells(&value, now);
                match self.include {
                    IncludeObject::Nothing => json!({ "cells": cells, "object": null }),
                    IncludeObject::Metadata => json!({ "cells": cells, "object": partial(&value) }),
                    IncludeObject::Object => json!({ "cells": cells, "object": value }),
                }
            })
            .collect();
        let columns = if with_columns { json!(printer.columns()) } else { Value::Null };
        to_bytes(&json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": list_metadata(facts),
            "columnDefinitions": columns,
            "rows": rows,
        }))
    }

    /// An object with nothing but a revision, as bookmarks show it.
    pub(crate) fn bookmark(&self, revision: u64, ends_initial_events: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if ends_initial_events {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        match self.output {
            Output::Whole => {
                to_bytes(&json!({ "kind": self.kind, "apiVersion": self.api_version, "metadata": metadata }))
            }
            Output::Partial | Output::PartialList => to_bytes(
                &json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata }),
            ),
            Output::Table => {
                let object =
                    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata });
                to_bytes(&json!({
                    "kind": "Table",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": { "resourceVersion": revision.to_string() },
                    "columnDefinitions": null,
                    "rows": [{ "cells": [], "object": object }],
                }))
            }
        }
    }
}

/// One line of a watch.
pub(crate) fn frame(event: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(format!("{{\"type\":\"{event}\",\"object\":").as_bytes());
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

/// A JSON document.
pub(crate) fn to_bytes(value: &impl serde::Serialize) -> Bytes {
    // What this crate writes is always JSON with text as keys, so this cannot fail.
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}

fn list_metadata(facts: &ListFacts) -> Value {
    let mut metadata = json!({ "resourceVersion": facts.revision.to_string() });
    if let Some(next) = &facts.next {
        metadata["continue"] = json!(next);
    }
    if let Some(remaining) = facts.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    metadata
}

fn partial(object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    // The count of a DaemonSet's template is an annotation in whole objects only.
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(TEMPLATE_GENERATION);
        if annotations.is_empty() {
            metadata.as_object_mut().map(|metadata| metadata.remove("annotations"));
        }
    }
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
}

fn printer(info: &ResourceInfo) -> Printer {
    if !info.is_custom {
        return Printer::builtin(&info.group, &info.plural);
    }
    let columns: Vec<CustomColumn> = info
        .printer_columns
        .iter()
        .map(|column| CustomColumn {
            name: column.name.clone(),
            kind: column.kind.clone(),
            format: column.format.clone(),
            description: column.description.clone(),
            priority: i32::try_from(column.priority).unwrap_or(i32::MAX),
            json_path: column.json_path.clone(),
        })
        .collect();
    Printer::custom(&columns)
}
