//! Custom resource definitions, taken apart into the resources they make.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::custom::Structural;
use crate::errors::FieldError;
use crate::kind::{KindSchema, Source};
use crate::resource::{PrinterColumn, ResourceInfo, ScalePaths, Subresource};

/// What may be done with custom resources, in the order in which the API server says it.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The served versions of a definition, or what is wrong with their schemas.
pub(crate) fn resources(definition: &Value) -> Result<Vec<ResourceInfo>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut resources = Vec::new();
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    for (index, version) in versions.enumerate() {
        if version["served"] == true {
            resources.push(resource(&definition["spec"], version, index, &mut errors));
        }
    }
    if errors.is_empty() { Ok(resources) } else { Err(errors) }
}

fn resource(spec: &Value, version: &Value, index: usize, errors: &mut Vec<FieldError>) -> ResourceInfo {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = &spec["names"];
    let kind = text(&names["kind"]);
    let or = |given: String, other: String| if given.is_empty() { other } else { given };
    let (group, version_name) = (text(&spec["group"]), text(&version["name"]));
    let namespaced = spec["scope"] == "Namespaced";
    let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
    let mut problems = Vec::new();
    let structural = Structural::read(&version["schema"]["openAPIV3Schema"], &path, &mut problems);
    errors.extend(problems.into_iter().map(|(field, problem)| FieldError::invalid(&field, "", problem)));
    let schema = KindSchema {
        group: group.clone(),
        version: version_name.clone(),
        kind: kind.clone(),
        namespaced,
        scale: scale_paths(&version["subresources"]["scale"]),
        source: Source::Custom(Box::new(structural)),
    };
    ResourceInfo {
        plural: text(&names["plural"]),
        singular: or(text(&names["singular"]), kind.to_lowercase()),
        list_kind: or(text(&names["listKind"]), format!("{kind}List")),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        verbs: VERBS.map(str::to_owned).to_vec(),
        subresources: subresources(&version["subresources"]),
        is_custom: true,
        printer_columns: columns(version),
        storage_version_hash: None,
        group,
        version: version_name,
        kind,
        namespaced,
        schema: Arc::new(schema),
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn subresources(written: &Value) -> BTreeSet<Subresource> {
    let mut found = BTreeSet::new();
    if written["status"].is_object() {
        found.insert(Subresource::Status);
    }
    found.extend(scale_paths(&written["scale"]).map(Subresource::Scale));
    found
}

fn scale_paths(written: &Value) -> Option<ScalePaths> {
    let path = |key: &str| written[key].as_str().map(str::to_owned);
    Some(ScalePaths {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        label_selector: path("labelSelectorPath"),
    })
}

/// The columns of a version; without any, the age is shown.
fn columns(version: &Value) -> Vec<PrinterColumn> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let written = version["additionalPrinterColumns"].as_array();
    let Some(written) = written.filter(|columns| !columns.is_empty()) else {
        return vec![PrinterColumn {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: AGE_DESCRIPTION.to_owned(),
            priority: 0,
            json_path: ".metadata.creationTimestamp".to_owned(),
        }];
    };
    let read = |column: &Value| PrinterColumn {
        name: text(&column["name"]),
        kind: text(&column["type"]),
        format: text(&column["format"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or_default(),
        json_path: text(&column["jsonPath"]),
    };
    written.iter().map(read).collect()
}

/// What the API server says about the column of its own.
const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
     created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set \
     this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for \
     lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
