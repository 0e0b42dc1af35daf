//! What a controller does to the outside, by name: the rows of the table of faults.

use std::fmt;

use http::{Method, Uri};

/// A kind of call with a consequence, or a watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect(String);

/// Calls to the API server that change something.
pub const WRITES: [&str; 16] = [
    "create events",
    "create leases",
    "create nodeclaims",
    "create nodes",
    "create pods/eviction",
    "delete nodeclaims",
    "delete nodes",
    "delete pods",
    "patch nodeclaims",
    "patch nodeclaims/status",
    "patch nodepools",
    "patch nodepools/status",
    "patch nodes",
    "patch pods/status",
    "update leases",
    "get leases",
];

/// Calls to the cloud.
pub const CLOUD_CALLS: [&str; 6] =
    ["cloud find", "cloud get", "cloud launch", "cloud list", "cloud terminate", "cloud types"];

/// Watches, with the lists that begin them.
pub const WATCHES: [&str; 13] = [
    "watch csinodes",
    "watch daemonsets",
    "watch namespaces",
    "watch nodeclaims",
    "watch nodeclasses",
    "watch nodepools",
    "watch nodes",
    "watch persistentvolumeclaims",
    "watch persistentvolumes",
    "watch poddisruptionbudgets",
    "watch pods",
    "watch storageclasses",
    "watch volumeattachments",
];

impl Effect {
    /// An effect by its name.
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The effect of a request to the API server.
    pub fn of_request(method: &Method, uri: &Uri) -> Self {
        let Resource { name, is_named } = Resource::of_path(uri.path());
        let query = uri.query().unwrap_or_default();
        let is_watch = query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"));
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ if is_named => "get",
            _ if is_watch => "watch",
            _ => "list",
        };
        Self(format!("{verb} {name}"))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the call goes to the cloud.
    pub fn is_cloud(&self) -> bool {
        self.0.starts_with("cloud ")
    }

    /// Whether the call begins or continues a watch.
    pub fn is_watch(&self) -> bool {
        self.0.starts_with("watch ")
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

struct Resource {
    name: String,
    is_named: bool,
}

impl Resource {
    /// Plural and subresource of a path such as `/apis/apps/v1/namespaces/default/deployments/web/scale`.
    fn of_path(path: &str) -> Self {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let prefix = if parts.first() == Some(&"apis") { 3 } else { 2 };
        parts.drain(..prefix.min(parts.len()));
        if parts.first() == Some(&"namespaces") && parts.len() > 2 {
            parts.drain(..2);
        }
        let plural = match parts.first() {
            Some(plural) if plural.ends_with("nodeclasses") => "nodeclasses",
            Some(plural) => plural,
            None => "",
        };
        let name = match parts.get(2) {
            Some(subresource) => format!("{plural}/{subresource}"),
            None => plural.to_owned(),
        };
        Self { name, is_named: parts.len() > 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_names() {
        for (method, uri, name) in [
            (Method::POST, "/apis/karpenter.sh/v1/nodeclaims", "create nodeclaims"),
            (Method::PATCH, "/apis/karpenter.sh/v1/nodeclaims/a/status?x=y", "patch nodeclaims/status"),
            (Method::POST, "/api/v1/namespaces/default/pods/web/eviction", "create pods/eviction"),
            (Method::GET, "/api/v1/pods?watch=true", "watch pods"),
            (Method::GET, "/api/v1/pods?limit=500", "list pods"),
            (Method::GET, "/apis/karpenter.k8s.aws/v1/ec2nodeclasses?watch=true", "watch nodeclasses"),
            (Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l", "update leases"),
            (Method::GET, "/api/v1/namespaces/default", "get namespaces"),
        ] {
            let uri: Uri = uri.parse().expect("a path");
            assert_eq!(Effect::of_request(&method, &uri).as_str(), name);
        }
    }
}
