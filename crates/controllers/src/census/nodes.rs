//! Nodes: what they have, what runs on them, and how much of everything is in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::lower::NodeFacts;
use jiff::Timestamp;
use model::Resources;
use state::NodeUsage;

use super::{amount, seconds};
use crate::context::Context;
use crate::metrics::cluster::UTILIZATION;
use crate::metrics::nodes::{
    ALLOCATABLE, CURRENT_LIFETIME, SYSTEM_OVERHEAD, TOTAL_DAEMON_LIMITS, TOTAL_DAEMON_REQUESTS, TOTAL_POD_LIMITS,
    TOTAL_POD_REQUESTS,
};
use crate::metrics::{Naming, Page, Row};

struct NodeTold {
    node: Arc<NodeFacts>,
    usage: NodeUsage,
    overhead: Resources,
    is_managed: bool,
}

type Amounts = fn(&NodeTold) -> &Resources;

/// What is told of each node, by resource.
const BY_RESOURCE: [(&Row, Amounts); 6] = [
    (&ALLOCATABLE, |told| &told.node.allocatable),
    (&TOTAL_POD_REQUESTS, |told| &told.usage.requests),
    (&TOTAL_POD_LIMITS, |told| &told.usage.limits),
    (&TOTAL_DAEMON_REQUESTS, |told| &told.usage.daemon_requests),
    (&TOTAL_DAEMON_LIMITS, |told| &told.usage.daemon_limits),
    (&SYSTEM_OVERHEAD, |told| &told.overhead),
];

/// Several series for each node, and the use of the whole cluster.
pub(super) fn tell(context: &Context, now: Timestamp, page: &mut Page) {
    let nodes: Vec<NodeTold> = {
        let cluster = context.cluster();
        let told = |node: &Arc<NodeFacts>| NodeTold {
            usage: cluster.usage_of(&node.name),
            overhead: node.capacity.minus(&node.allocatable),
            is_managed: cluster.claim_of(node).is_some(),
            node: Arc::clone(node),
        };
        cluster.nodes().map(told).collect()
    };
    let naming = context.metrics.naming();
    for (row, amounts) in BY_RESOURCE {
        tell_amounts(page, row, &nodes, naming, amounts);
    }
    page.metric(&CURRENT_LIFETIME, nodes.iter().map(|told| (labels(told, naming), seconds(told.node.created, now))));
    let shares = utilization(&nodes);
    page.metric(&UTILIZATION, shares.iter().map(|(name, share)| ([("resource_type", name.as_str())], *share)));
}

fn tell_amounts(page: &mut Page, row: &Row, nodes: &[NodeTold], naming: &Naming, amounts: Amounts) {
    let mut samples = page.begin(row);
    for told in nodes {
        for (resource, value) in amounts(told).iter().map(|(name, value)| amount(name, value)) {
            samples.sample(labels(told, naming).chain([("resource_type", resource.as_str())]), value);
        }
    }
}

fn labels<'a>(told: &'a NodeTold, naming: &'a Naming) -> impl Iterator<Item = (&'a str, &'a str)> {
    let node = &told.node;
    let well_known =
        naming.well_known.iter().map(|(key, label)| (label.as_str(), node.labels.get(key).map_or("", String::as_str)));
    let own = [
        ("node_name", node.name.as_str()),
        ("phase", node.story.phase.as_str()),
        ("managed", if told.is_managed { "true" } else { "false" }),
    ];
    well_known.chain(own)
}

/// How much of what pods may use they request, in percent, by resource.
#[expect(clippy::cast_precision_loss, reason = "a share has no use for the last digit")]
fn utilization(nodes: &[NodeTold]) -> BTreeMap<String, f64> {
    let (mut allocatable, mut requested) = (Resources::none(), Resources::none());
    for told in nodes {
        allocatable.add(&told.node.allocatable);
        requested.add(&told.usage.requests);
    }
    let share = |(name, whole): (&model::ResourceName, i64)| {
        (whole > 0).then(|| (amount(name, 0).0, 100.0 * requested.get(name) as f64 / whole as f64))
    };
    allocatable.iter().filter_map(share).collect()
}
