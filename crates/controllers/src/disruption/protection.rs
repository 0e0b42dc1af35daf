//! Pods that ask not to be disturbed, and what their owners should know about it.

use std::sync::Arc;

use api::labels;
use api::lower::{PodFacts, Protection};
use jiff::Timestamp;
use state::Cluster;

use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};

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
        if let Some(News { tone, reason, message }) = news(&pod.protection, now).filter(|_| place == Place::Usable) {
            context.recorder.publish(now, Notice { about: about::pod(&pod), tone, reason, message, quiet: QUIET });
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

struct News {
    tone: Tone,
    reason: &'static str,
    message: String,
}

fn news(protection: &Protection, now: Timestamp) -> Option<News> {
    let (tone, reason, message) = match protection {
        Protection::None | Protection::Always | Protection::Until(None) => return None,
        Protection::Unreadable { problem } => (
            Tone::Warning,
            "InvalidDoNotDisruptAnnotation",
            format!("Invalid {} annotation: {problem}, ignoring annotation", labels::DO_NOT_DISRUPT),
        ),
        Protection::Until(Some(end)) if now < *end => (
            Tone::Normal,
            "DoNotDisruptUntil",
            format!(
                "The {} grace period will elapse at {}",
                labels::DO_NOT_DISRUPT,
                end.strftime("%Y-%m-%dT%H:%M:%SZ")
            ),
        ),
        Protection::Until(Some(_)) => (
            Tone::Normal,
            "DoNotDisruptGracePeriodElapsed",
            format!("The {} grace period has elapsed, pod is now disruptable", labels::DO_NOT_DISRUPT),
        ),
    };
    Some(News { tone, reason, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CAND-04, CAND-05: what is told about a pod's protection.
    #[test]
    fn owners_are_told() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let table = [
            (Protection::None, 0, None),
            (Protection::Always, 0, None),
            (Protection::Until(None), 0, None),
            (
                Protection::Until(Some(at(90))),
                89,
                Some(
                    "DoNotDisruptUntil: The karpenter.sh/do-not-disrupt grace period will elapse at 1970-01-01T00:01:30Z",
                ),
            ),
            (
                Protection::Until(Some(at(90))),
                90,
                Some(
                    "DoNotDisruptGracePeriodElapsed: The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable",
                ),
            ),
            (
                Protection::Unreadable { problem: "duration \"0s\" must be positive".into() },
                0,
                Some(
                    "InvalidDoNotDisruptAnnotation: Invalid karpenter.sh/do-not-disrupt annotation: duration \"0s\" must be positive, ignoring annotation",
                ),
            ),
        ];
        for (protection, now, expected) in table {
            let found = news(&protection, at(now)).map(|news| format!("{}: {}", news.reason, news.message));
            assert_eq!(found.as_deref(), expected, "{protection:?} at {now}");
        }
    }
}
