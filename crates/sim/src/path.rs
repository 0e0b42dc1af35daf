//! Paths of requests, taken apart.

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A resource: its collection, one of its objects, or a part of one.
    Resource(Target),
    /// Anything else: discovery, health, or nothing at all.
    Other,
}

/// A resource's collection, one of its objects, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// What may follow a namespace's name without being a resource in it.
const NAMESPACE_PARTS: [&str; 2] = ["status", "finalize"];

/// Takes a path apart; whether the resource exists is for the caller to see.
pub(crate) fn parse(path: &str) -> Destination {
    let trimmed = path.strip_prefix('/').unwrap_or(path);
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    let segments: Vec<String> = trimmed.split('/').map(decode_percent).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Destination::Other,
    };
    if rest.is_empty() || rest.iter().any(|segment| segment.is_empty()) {
        return Destination::Other;
    }
    let (namespace, rest) = match rest {
        ["namespaces", _] | ["namespaces"] => (None, rest),
        ["namespaces", _, part] if NAMESPACE_PARTS.contains(part) => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
        _ => (None, rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, None, None),
        [resource, name] => (*resource, Some((*name).to_owned()), None),
        [resource, name, part] => (*resource, Some((*name).to_owned()), Some((*part).to_owned())),
        _ => return Destination::Other,
    };
    Destination::Resource(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        namespace,
        name,
        subresource,
    })
}

/// Replaces `%41` by `A`; what is no valid escape stays as it is.
pub(crate) fn decode_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escaped = (bytes[index] == b'%')
            .then(|| text.get(index + 1..index + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok()))
            .flatten();
        match escaped {
            Some(byte) => {
                decoded.push(byte);
                index += 3;
            }
            None => {
                decoded.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Escapes what has a meaning in paths and queries.
pub(crate) fn encode_percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::{Destination, parse};

    fn shown(path: &str) -> String {
        match parse(path) {
            Destination::Other => "other".to_owned(),
            Destination::Resource(target) => format!(
                "{}|{}|{}|{}|{}|{}",
                target.group,
                target.version,
                target.namespace.unwrap_or_default(),
                target.resource,
                target.name.unwrap_or_default(),
                target.subresource.unwrap_or_default()
            ),
        }
    }

    #[test]
    fn paths_are_taken_apart() {
        let cases = [
            ("/api/v1/pods", "|v1||pods||"),
            ("/api/v1/namespaces/a/pods/b/log", "|v1|a|pods|b|log"),
            ("/api/v1/namespaces", "|v1||namespaces||"),
            ("/api/v1/namespaces/a", "|v1||namespaces|a|"),
            ("/api/v1/namespaces/a/finalize", "|v1||namespaces|a|finalize"),
            ("/api/v1/namespaces/a/pods", "|v1|a|pods||"),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", "apps|v1|a|deployments|b|scale"),
            ("/apis/karpenter.sh/v1/nodeclaims/x%2Dy", "karpenter.sh|v1||nodeclaims|x-y|"),
            ("/api/v1", "other"),
            ("/apis/apps/v1", "other"),
            ("/healthz", "other"),
            ("/api/v1/namespaces/a/pods/b/c/d", "other"),
            ("/api/v1//pods", "other"),
        ];
        for (path, expected) in cases {
            assert_eq!(shown(path), expected, "{path}");
        }
    }
}
