//! Rules between pods: how far apart, how close together, and whose port it is.

use std::collections::BTreeSet;

use crate::{Labels, Selector, Text};

/// Whether a node that the pod cannot use counts as a topology domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inclusion {
    /// It does not.
    Honor,
    /// It does.
    Ignore,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpreadConstraint {
    /// Node label that makes the domains.
    pub topology_key: Text,
    /// How many more pods a domain may have than the emptiest.
    pub max_skew: u32,
    /// With fewer domains than this, the emptiest counts as having none. One when nothing is said.
    pub min_domains: u32,
    /// Pods of the namespace that count; `matchLabelKeys` are part of it.
    pub selector: Selector,
    /// Whether node selector and affinity of the pod tell which nodes count.
    pub node_affinity_policy: Inclusion,
    /// Whether taints tell which nodes count.
    pub node_taints_policy: Inclusion,
}

/// The namespaces that a term of pod affinity looks into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceScope {
    /// Named ones.
    pub listed: BTreeSet<Text>,
    /// Those with such labels.
    pub selector: Option<Selector>,
}

impl NamespaceScope {
    /// Just one.
    pub fn only(namespace: impl Into<Text>) -> Self {
        Self { listed: BTreeSet::from([namespace.into()]), selector: None }
    }

    /// Every one.
    pub fn all() -> Self {
        Self { listed: BTreeSet::new(), selector: Some(Selector::All(Vec::new())) }
    }

    /// Whether a namespace is among them; `labels` are the namespace's, if it is known.
    pub fn contains(&self, namespace: &Text, labels: Option<&Labels>) -> bool {
        let none = Labels::new();
        let selected = |selector: &Selector| selector.matches(labels.unwrap_or(&none));
        self.listed.contains(namespace) || self.selector.as_ref().is_some_and(selected)
    }
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    /// Node label that makes the domains.
    pub topology_key: Text,
    /// Pods it speaks of; `matchLabelKeys` and `mismatchLabelKeys` are part of it.
    pub selector: Selector,
    /// Where those pods live.
    pub namespaces: NamespaceScope,
}

/// A term that is a wish.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightedPodTerm {
    /// 1 to 100; heavier wishes are given up first.
    pub weight: i32,
    /// The wish.
    pub term: PodTerm,
}

/// A port on the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Address; empty, `0.0.0.0` or `::` for all of them.
    pub address: Text,
    /// `TCP`, `UDP` or `SCTP`; empty for `TCP`.
    pub protocol: Text,
    /// Number.
    pub port: u16,
}

impl HostPort {
    /// Whether two pods with these ports cannot share a host.
    pub fn collides_with(&self, other: &Self) -> bool {
        fn is_any(port: &HostPort) -> bool {
            matches!(&*port.address, "" | "0.0.0.0" | "::")
        }
        fn protocol(port: &HostPort) -> &str {
            if port.protocol.is_empty() { "TCP" } else { &port.protocol }
        }
        let addresses = is_any(self) || is_any(other) || self.address == other.address;
        self.port != 0 && self.port == other.port && protocol(self) == protocol(other) && addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PROV-51
    #[test]
    fn ports_collide_by_number_protocol_and_address() {
        let port = |text: &str| {
            let [protocol, address, port] = text.splitn(3, ' ').collect::<Vec<_>>()[..] else { unreachable!() };
            let (address, protocol) = (Text::from(address.trim_matches('-')), Text::from(protocol.trim_matches('-')));
            HostPort { address, protocol, port: port.parse().unwrap() }
        };
        let table = [
            ("TCP - 80", "TCP - 80", true),
            ("TCP - 80", "- - 80", true),
            ("TCP - 80", "UDP - 80", false),
            ("TCP - 80", "TCP - 81", false),
            ("TCP 10.0.0.1 80", "TCP 10.0.0.2 80", false),
            ("TCP 10.0.0.1 80", "TCP 0.0.0.0 80", true),
            ("TCP 10.0.0.1 80", "TCP :: 80", true),
            ("TCP - 0", "TCP - 0", false),
        ];
        for (left, right, collide) in table {
            let (left, right) = (port(left), port(right));
            assert_eq!(left.collides_with(&right), collide, "{left:?} {right:?}");
            assert_eq!(right.collides_with(&left), collide, "{right:?} {left:?}");
        }
    }
}
