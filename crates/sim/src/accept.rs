//! What a client can read, and what it sends.

use crate::status_body::Status;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// The form in which objects go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// As they are.
    Whole,
    /// `meta.k8s.io/v1` Table.
    Table,
    /// Metadata only, one object.
    Partial,
    /// Metadata only, a list.
    PartialList,
}

const KNOWN: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const KNOWN_CUSTOM: &str = "application/json, application/yaml";
const PATCHES_CUSTOM: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// Chooses the first form of the `Accept` header that this server can write.
pub(crate) fn negotiate(headers: &HeaderMap, is_custom: bool) -> Result<Output, Status> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    accept.split(',').find_map(clause_output).ok_or_else(|| match is_custom {
        true => Status::not_acceptable(KNOWN_CUSTOM),
        false => Status::no_representation(KNOWN),
    })
}

/// What one clause of an `Accept` header asks for; None = something that cannot be written here.
fn clause_output(clause: &str) -> Option<Output> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    if !matches!(media, "application/json" | "*/*" | "application/*" | "") {
        return None;
    }
    let (mut kind, mut group, mut version) = (None, None, None);
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = Some(value),
            Some(("g", value)) => group = Some(value),
            Some(("v", value)) => version = Some(value),
            _ => {}
        }
    }
    match (kind, group, version) {
        (None, _, _) => Some(Output::Whole),
        (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Output::Table),
        (Some("PartialObjectMetadata"), Some("meta.k8s.io"), Some("v1")) => Some(Output::Partial),
        (Some("PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1")) => Some(Output::PartialList),
        _ => None,
    }
}

/// The media type of the request's body, without parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The body as JSON; YAML and protobuf are turned into it.
pub(crate) fn json_body(headers: &HeaderMap, body: &Bytes) -> Result<Bytes, Status> {
    match content_type(headers).as_str() {
        "" | "application/json" => Ok(body.clone()),
        "application/yaml" => yaml_to_json(body),
        "application/vnd.kubernetes.protobuf" => protobuf_to_json(body),
        _ => Err(Status::unsupported_media_type(KNOWN)),
    }
}

fn protobuf_to_json(body: &Bytes) -> Result<Bytes, Status> {
    let object = crate::protobuf::to_json(body)
        .ok_or_else(|| Status::bad_request("the body is not protobuf of a kind that is known".to_owned()))?;
    Ok(Bytes::from(object.to_string()))
}

fn yaml_to_json(body: &Bytes) -> Result<Bytes, Status> {
    let value: serde_json::Value = serde_yaml_ng::from_slice(body)
        .map_err(|problem| Status::bad_request(format!("error converting YAML to JSON: {problem}")))?;
    Ok(Bytes::from(value.to_string()))
}

/// How a patch is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
}

/// The kind of patch that the content type names. Server-side apply is not known here, strategic merge only for
/// built-in kinds.
pub(crate) fn patch_type(headers: &HeaderMap, is_custom: bool) -> Result<PatchType, Status> {
    match content_type(headers).as_str() {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/strategic-merge-patch+json" if !is_custom => Ok(PatchType::Strategic),
        _ if is_custom => Err(Status::unsupported_media_type(PATCHES_CUSTOM)),
        // For built-in kinds the real server knows this before it looks at the resource.
        _ => Err(Status::media_type_unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Output, negotiate};
    use http::HeaderMap;

    #[test]
    fn accept_headers_choose_a_form() {
        let cases = [
            ("application/json", Some(Output::Whole)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(Output::Table)),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Some(Output::Whole)),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Output::Whole)),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Some(Output::PartialList)),
            ("*/*", Some(Output::Whole)),
            ("text/html", None),
        ];
        for (accept, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("accept", accept.parse().unwrap());
            assert_eq!(negotiate(&headers, false).ok(), expected, "{accept}");
        }
    }
}
