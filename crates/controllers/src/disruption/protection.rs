//! Pods that ask not to be disturbed, and what their owners should know about it.

use std::sync::Arc;

use api::labels;
use api::lower::PodFacts;
use jiff::Timestamp;
use state::Cluster;

use crate::context::Context;
use crate::protection;

/// Tells the owners of pods on our nodes when their protection ends, that it has ended, or that it is none. Answers
/// whether there is more to tell later.
pub(super) fn tell(context: &Context, now: Timestamp) -> bool {
    let pods: Vec<(Arc<PodFacts>, Place)> = {
        let cluster = context.cluster();
        let bound = cluster.remarkably_protected().filter(|pod| pod.is_active());
        bound.map(|pod| (Arc::clone(pod), place(&cluster, pod))).collect()
    };
    let mut is_more_to_tell = false;
    for (pod, place) in pods {
        is_more_to_tell |= match place {
            Place::Foreign => false,
            Place::Unusable => true,
            Place::Usable => pod.protection.is_active(now),
        };
        if place == Place::Usable {
            protection::tell(context, [&pod]);
        }
    }
    is_more_to_tell
}

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On a node that is none of our business.
    Foreign,
    /// On a node of ours that nobody would disrupt yet.
    Unusable,
    /// On a node of ours.
    Usable,
}

fn place(cluster: &Cluster, pod: &PodFacts) -> Place {
    let node = pod.node.as_ref().and_then(|node| cluster.node(node));
    match node.filter(|node| cluster.claim_of(node).is_some()) {
        None => Place::Foreign,
        Some(node) if node.is_labelled(labels::INITIALIZED) => Place::Usable,
        Some(_) => Place::Unusable,
    }
}
