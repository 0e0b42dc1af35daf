//! The documents in which the API server tells its clients what it knows.

mod discovery;
mod openapi;

use serde_json::{Value, json};

use crate::bundled;
use crate::schemas::{Document, Schemas};

/// The media type of aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The document at a path, if there is one.
pub(crate) fn document(schemas: &Schemas, path: &str, accept: &str) -> Option<Document> {
    let path = path.trim_end_matches('/');
    let aggregated = accept.split(',').any(|wanted| wanted.replace(' ', "") == AGGREGATED);
    let segments: Vec<_> = path.split('/').skip(1).collect();
    match segments[..] {
        ["version"] => Some(plain(&version())),
        ["api"] if aggregated => Some(aggregate(&discovery::aggregated_core(schemas))),
        ["apis"] if aggregated => Some(aggregate(&discovery::aggregated_groups(schemas))),
        ["api"] => Some(plain(&discovery::core_versions())),
        ["apis"] => Some(plain(&discovery::group_list(schemas))),
        ["api", "v1"] => discovery::resource_list(schemas, "", "v1").as_ref().map(plain),
        ["apis", group] => discovery::group(schemas, group).as_ref().map(plain),
        ["apis", group, version] => discovery::resource_list(schemas, group, version).as_ref().map(plain),
        ["openapi", "v3"] => Some(plain(&openapi::index(schemas))),
        ["openapi", "v3", ..] => {
            let body = openapi::document(schemas, path.strip_prefix("/openapi/v3/")?)?;
            Some(Document { content_type: "application/json".to_owned(), body })
        }
        _ => None,
    }
}

fn plain(value: &Value) -> Document {
    Document { content_type: "application/json".to_owned(), body: value.to_string().into_bytes() }
}

fn aggregate(value: &Value) -> Document {
    Document { content_type: AGGREGATED.to_owned(), body: value.to_string().into_bytes() }
}

/// The version of the server whose documents these are; what it was built with is nobody's business here.
fn version() -> Value {
    let mut version = bundled::discovery().get("version").cloned().unwrap_or_else(|| json!({}));
    for (key, value) in [
        ("gitCommit", ""),
        ("gitTreeState", "clean"),
        ("buildDate", "1970-01-01T00:00:00Z"),
        ("goVersion", ""),
        ("compiler", ""),
        ("platform", ""),
    ] {
        version[key] = value.into();
    }
    version
}
