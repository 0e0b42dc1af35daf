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
        Protection::Unreadable(text) => {
            let complaint = complaint(text);
            let message = format!("Invalid karpenter.sh/do-not-disrupt annotation: {complaint}, ignoring annotation");
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

/// What is wrong with a text that should have been a duration, in the words of the language such durations come from.
fn complaint(text: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    let is_bare = is_number(text.trim_start_matches(['+', '-']));
    let unsigned = text.strip_prefix('-');
    let is_negative = unsigned.is_some_and(|rest| rest.ends_with(char::is_alphabetic) && rest.starts_with(is_digit));
    match text {
        "0" | "0s" => format!("duration \"{text}\" must be positive"),
        _ if is_bare => format!("failed to parse \"{text}\" as a duration: time: missing unit in duration \"{text}\""),
        _ if is_negative => format!("duration \"{text}\" must be positive"),
        _ => format!("failed to parse \"{text}\" as a duration: time: invalid duration \"{text}\""),
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CAND-04, CAND-05: a duration is told with its end, and what cannot be read is said to mean nothing.
    #[test]
    fn annotations_are_explained() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let unreadable = |text: &str| Protection::Unreadable(text.into());
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
                unreadable("soon"),
                Some(
                    "Invalid karpenter.sh/do-not-disrupt annotation: failed to parse \"soon\" as a duration: time: invalid duration \"soon\", ignoring annotation",
                ),
            ),
            (
                unreadable("30"),
                Some(
                    "Invalid karpenter.sh/do-not-disrupt annotation: failed to parse \"30\" as a duration: time: missing unit in duration \"30\", ignoring annotation",
                ),
            ),
            (
                unreadable("-1m"),
                Some(
                    "Invalid karpenter.sh/do-not-disrupt annotation: duration \"-1m\" must be positive, ignoring annotation",
                ),
            ),
        ];
        for (protection, expected) in table {
            let found = words(&protection, at(50)).map(|(_, _, message)| message);
            assert_eq!(found.as_deref(), expected, "{protection:?}");
        }
    }
}
