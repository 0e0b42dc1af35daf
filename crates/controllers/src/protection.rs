//! What pods that ask not to be disturbed are told about it.

use std::sync::Arc;

use api::lower::{PodFacts, Protection};
use jiff::Timestamp;

use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};

/// Tells the owners of these pods, whose node somebody wants to take away, how their annotation is understood.
pub(crate) fn tell<'a>(context: &Context, pods: impl IntoIterator<Item = &'a Arc<PodFacts>>) {
    let now = context.now();
    for pod in pods {
        if let Some((tone, reason, message)) = words(&pod.protection, now) {
            context.recorder.publish(now, Notice { about: about::pod(pod), tone, reason, message, quiet: QUIET });
        }
    }
}

fn words(protection: &Protection, now: Timestamp) -> Option<(Tone, &'static str, String)> {
    match protection {
        Protection::None | Protection::Always | Protection::Until(None) => None,
        Protection::Unreadable { problem } => {
            let message = format!("Invalid karpenter.sh/do-not-disrupt annotation: {problem}, ignoring annotation");
            Some((Tone::Warning, "InvalidDoNotDisruptAnnotation", message))
        }
        Protection::Until(Some(end)) if protection.is_active(now) => {
            let end = end.strftime("%Y-%m-%dT%H:%M:%SZ");
            let message = format!("The karpenter.sh/do-not-disrupt grace period will elapse at {end}");
            Some((Tone::Normal, "DoNotDisruptUntil", message))
        }
        Protection::Until(Some(_)) => {
            let message = "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable";
            Some((Tone::Normal, "DoNotDisruptGracePeriodElapsed", message.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CAND-04, CAND-05: a duration is told with its end, and what cannot be read is said to mean nothing.
    #[test]
    fn annotations_are_explained() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let table = [
            (Protection::None, None),
            (Protection::Always, None),
            (Protection::Until(None), None),
            (
                Protection::Until(Some(at(100))),
                Some("The karpenter.sh/do-not-disrupt grace period will elapse at 1970-01-01T00:01:40Z"),
            ),
            (
                Protection::Until(Some(at(50))),
                Some("The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable"),
            ),
            (
                Protection::Unreadable { problem: "duration \"0s\" must be positive".into() },
                Some(
                    "Invalid karpenter.sh/do-not-disrupt annotation: duration \"0s\" must be positive, ignoring annotation",
                ),
            ),
        ];
        for (protection, expected) in table {
            let found = words(&protection, at(50)).map(|(_, _, message)| message);
            assert_eq!(found.as_deref(), expected, "{protection:?}");
        }
    }
}
