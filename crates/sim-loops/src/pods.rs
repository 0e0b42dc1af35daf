//! Small questions about pods and object metadata.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The uid of the object that controls this one.
pub(crate) fn controller_uid(metadata: &ObjectMeta) -> Option<&str> {
    controller(metadata).map(|owner| owner.uid.as_str())
}

/// The owner that controls this object.
pub(crate) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

pub(crate) fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or("")
}

pub(crate) fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or("")
}

pub(crate) fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

pub(crate) fn is_bound(pod: &Pod) -> bool {
    node_name(pod).is_some()
}

pub(crate) fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Neither ended nor being deleted: what a set counts as its replica.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_deleting(pod)
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

/// Since when the pod has been ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|condition| condition.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether the pod is available, and if not, when it will be if it stays ready.
pub(crate) fn availability(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Availability {
    match ready_since(pod) {
        _ if !is_ready(pod) => Availability::NotReady,
        _ if min_ready_seconds <= 0 => Availability::Available,
        None => Availability::NotReady,
        Some(since) => {
            let from = after_seconds(since, i64::from(min_ready_seconds));
            if from <= now { Availability::Available } else { Availability::From(from) }
        }
    }
}

/// How far a ready pod is from counting as available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    NotReady,
    From(Timestamp),
    Available,
}

/// A time some seconds later; the end of time if that is beyond it.
pub(crate) fn after_seconds(from: Timestamp, seconds: i64) -> Timestamp {
    from.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// A time some while later; the end of time if that is beyond it.
pub(crate) fn after(from: Timestamp, while_: jiff::SignedDuration) -> Timestamp {
    from.checked_add(while_).unwrap_or(Timestamp::MAX)
}

/// A time in the form of the API.
pub(crate) fn time(at: Timestamp) -> Time {
    Time(whole_second(at))
}

/// The second that a time lies in: the API's times have no finer grain.
pub(crate) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// A time in the text form of the API: whole seconds.
pub(crate) fn time_text(at: Timestamp) -> String {
    whole_second(at).to_string()
}

/// The earlier of two times of which each may be missing.
pub(crate) fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// How a share that is not whole is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// The number that a count or a percentage of a total stands for; text that is neither stands for zero.
pub(crate) fn scaled(value: &IntOrString, total: i32, rounding: Rounding) -> i32 {
    match value {
        IntOrString::Int(count) => *count,
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok()).unwrap_or(0);
            let hundredths = percent * i64::from(total);
            let whole = match rounding {
                Rounding::Up => hundredths.div_euclid(100) + i64::from(hundredths.rem_euclid(100) > 0),
                Rounding::Down => hundredths.div_euclid(100),
            };
            i32::try_from(whole).unwrap_or(i32::MAX)
        }
    }
}

/// Puts a condition in its place: replaced where it was, else at the end. The time of its last change stays if the
/// status does.
pub(crate) fn set_condition(conditions: &mut Vec<PodCondition>, mut condition: PodCondition, now: Timestamp) {
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => {
            let same = known.status == condition.status;
            let since = known.last_transition_time.clone().filter(|_| same);
            condition.last_transition_time = since.or_else(|| Some(time(now)));
            *known = condition;
        }
        None => {
            condition.last_transition_time = Some(time(now));
            conditions.push(condition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_told() {
        let percent = |text: &str| IntOrString::String(text.to_owned());
        let table = [
            (IntOrString::Int(3), 10, 3, 3),
            (percent("25%"), 10, 3, 2),
            (percent("30%"), 10, 3, 3),
            (percent("0%"), 10, 0, 0),
            (percent("100%"), 7, 7, 7),
            (percent("nonsense"), 7, 0, 0),
        ];
        for (value, total, up, down) in table {
            assert_eq!(scaled(&value, total, Rounding::Up), up, "{value:?}");
            assert_eq!(scaled(&value, total, Rounding::Down), down, "{value:?}");
        }
    }

    #[test]
    fn times_are_written_in_whole_seconds() {
        let at: Timestamp = "2026-01-01T00:00:00.75Z".parse().unwrap();
        assert_eq!(time_text(at), "2026-01-01T00:00:00Z");
    }
}
