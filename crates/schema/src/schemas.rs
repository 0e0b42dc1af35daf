//! Every kind that a server knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::bundled::{BUNDLES, Bundle, discovery};
use crate::definitions;
use crate::documents;
use crate::errors::FieldError;
use crate::kind::{KindSchema, Source};
use crate::resource::{ResourceInfo, ScalePaths, Subresource};

/// Kinds that are sent but never stored: where they are described, and their group, version and kind.
const BODIES: [(&str, &str, &str, &str); 4] = [
    ("api/v1", "", "v1", "Binding"),
    ("api/v1", "", "v1", "DeleteOptions"),
    ("apis/apps/v1", "autoscaling", "v1", "Scale"),
    ("api/v1", "policy", "v1", "Eviction"),
];

/// A document that the API server offers to its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its media type.
    pub content_type: String,
    /// Its text.
    pub body: Vec<u8>,
}

/// Every kind that a server knows: the built-in ones, and those that definitions add.
#[derive(Debug)]
pub struct Schemas {
    /// By group, version and plural.
    resources: BTreeMap<(String, String, String), ResourceInfo>,
    /// Custom resource definitions by name.
    pub(crate) definitions: BTreeMap<String, Value>,
    /// By group, version and kind.
    bodies: BTreeMap<(String, String, String), KindSchema>,
}

impl Schemas {
    /// The built-in groups. Their schemas are opened when they are first needed.
    #[must_use]
    pub fn bundled() -> Self {
        let mut resources = BTreeMap::new();
        for bundle in &BUNDLES {
            for resource in built_in_resources(bundle) {
                resources.insert(key(&resource), resource);
            }
        }
        let mut bodies = BTreeMap::new();
        for (path, group, version, kind) in BODIES {
            let Some(bundle) = Bundle::at(path) else { continue };
            let schema = built_in_schema(bundle, (group, version, kind), false);
            bodies.insert((group.to_owned(), version.to_owned(), kind.to_owned()), schema);
        }
        Self { resources, definitions: BTreeMap::new(), bodies }
    }

    /// Adds a custom resource definition, or replaces the one of the same name.
    ///
    /// # Errors
    ///
    /// The patterns and rules of its schemas that cannot be used; nothing is changed then.
    pub fn add_definition(&mut self, definition: &Value) -> Result<(), Vec<FieldError>> {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let added = definitions::resources(definition)?;
        self.remove_definition(name);
        for resource in added {
            self.resources.insert(key(&resource), resource);
        }
        self.definitions.insert(name.to_owned(), definition.clone());
        Ok(())
    }

    /// Forgets a custom resource definition and its resources.
    pub fn remove_definition(&mut self, name: &str) {
        if self.definitions.remove(name).is_some() {
            self.resources
                .retain(|_, resource| !resource.is_custom || format!("{}.{}", resource.plural, resource.group) != name);
        }
    }

    /// All resources, by group, version and plural.
    pub fn resources(&self) -> impl Iterator<Item = &ResourceInfo> {
        self.resources.values()
    }

    /// One resource.
    #[must_use]
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&ResourceInfo> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// How objects of a resource are read, completed and checked.
    #[must_use]
    pub fn kind<'a>(&self, info: &'a ResourceInfo) -> &'a KindSchema {
        info.schema()
    }

    /// A kind that is sent but never stored: `Binding`, `Eviction`, `Scale`, `DeleteOptions`.
    #[must_use]
    pub fn body(&self, group: &str, version: &str, kind: &str) -> Option<&KindSchema> {
        self.bodies.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))
    }

    /// The document at a path, in the form that the client accepts: `/api`, `/apis`, `/api/v1`, `/apis/{group}`,
    /// `/apis/{group}/{version}`, `/openapi/v3`, `/openapi/v3/...`, `/version`. None if the path is none of these.
    #[must_use]
    pub fn document(&self, path: &str, accept: &str) -> Option<Document> {
        documents::document(self, path, accept)
    }
}

fn key(resource: &ResourceInfo) -> (String, String, String) {
    (resource.group.clone(), resource.version.clone(), resource.plural.clone())
}

fn built_in_schema(bundle: &'static Bundle, kind: (&str, &str, &str), namespaced: bool) -> KindSchema {
    let (group, version, kind) = kind;
    KindSchema {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        namespaced,
        scale: None,
        source: Source::BuiltIn(bundle),
    }
}

fn built_in_resources(bundle: &'static Bundle) -> Vec<ResourceInfo> {
    let Some(list) = discovery().get(bundle.path) else { return Vec::new() };
    let (group, version) = match list["groupVersion"].as_str().unwrap_or_default().split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", "v1"),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
    let entries = list["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut resources = Vec::new();
    for entry in entries {
        let name = text(&entry["name"]);
        if name.contains('/') {
            continue;
        }
        let kind = text(&entry["kind"]);
        let namespaced = entry["namespaced"] == true;
        let schema = built_in_schema(bundle, (group, version, &kind), namespaced);
        resources.push(ResourceInfo {
            group: group.to_owned(),
            version: version.to_owned(),
            singular: text(&entry["singularName"]),
            list_kind: format!("{kind}List"),
            namespaced,
            short_names: texts(&entry["shortNames"]),
            categories: texts(&entry["categories"]),
            verbs: texts(&entry["verbs"]),
            subresources: built_in_subresources(entries, &name, &kind),
            is_custom: false,
            printer_columns: Vec::new(),
            storage_version_hash: entry["storageVersionHash"].as_str().map(str::to_owned),
            schema: Arc::new(schema),
            plural: name,
            kind,
        });
    }
    resources
}

fn built_in_subresources(entries: &[Value], plural: &str, kind: &str) -> BTreeSet<Subresource> {
    let names = entries.iter().filter_map(|entry| entry["name"].as_str()?.split_once('/'));
    let own = names.filter(|(resource, _)| *resource == plural);
    own.filter_map(|(_, name)| subresource(name, kind)).collect()
}

fn subresource(name: &str, kind: &str) -> Option<Subresource> {
    Some(match name {
        "status" => Subresource::Status,
        "scale" => {
            debug_assert!(
                matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet"),
                "{kind} keeps its scale elsewhere"
            );
            Subresource::Scale(ScalePaths {
                spec_replicas: ".spec.replicas".to_owned(),
                status_replicas: ".status.replicas".to_owned(),
                label_selector: Some(".spec.selector".to_owned()),
            })
        }
        "eviction" => Subresource::Eviction,
        "binding" => Subresource::Binding,
        "log" => Subresource::Log,
        "finalize" => Subresource::Finalize,
        _ => return None,
    })
}
