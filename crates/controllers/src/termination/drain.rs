//! Which pods leave a node now, and which later. Pure.

use std::sync::Arc;
use std::time::Duration;

use api::labels;
use api::lower::{Owner, PodFacts};
use jiff::Timestamp;
use model::{Effect, PodKey, Taint, first_untolerated};

/// A pod that should have been gone this long ago is not waited for: its kubelet will not answer any more.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// A pod by name and identity.
pub(super) type Leaving = (PodKey, String);

/// What a drain does now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Drain {
    /// Pods to evict now.
    pub(super) evict: Vec<Leaving>,
    /// Pods whose time is up.
    pub(super) force: Vec<Leaving>,
    /// Pods that are still there and are waited for.
    pub(super) waiting: usize,
}

impl Drain {
    pub(super) fn is_done(&self) -> bool {
        self.waiting == 0
    }
}

/// Pods leave in four waves, each only when the one before is gone: ordinary pods, ordinary daemons, critical pods,
/// critical daemons. Pods whose time is up leave at once, whatever their wave.
pub(super) fn plan(pods: &[Arc<PodFacts>], deadline: Option<Timestamp>, now: Timestamp) -> Drain {
    let waited: Vec<&Arc<PodFacts>> = pods.iter().filter(|pod| is_waited_for(pod, now)).collect();
    let first_wave = waited.iter().map(|pod| wave(pod)).min();
    let is_due =
        |pod: &PodFacts| Some(wave(pod)) == first_wave && pod.deletion.is_none() && !pod.protection.is_active(now);
    let mut drain = Drain { waiting: waited.len(), ..Drain::default() };
    for pod in waited {
        let leaving = (pod.key.clone(), pod.uid.to_string());
        match forced_grace(pod, deadline, now) {
            Some(_) => drain.force.push(leaving),
            None if is_due(pod) => drain.evict.push(leaving),
            None => {}
        }
    }
    drain
}

fn wave(pod: &PodFacts) -> (bool, bool) {
    (pod.is_critical, pod.owner == Owner::DaemonSet)
}

fn is_waited_for(pod: &PodFacts, now: Timestamp) -> bool {
    !pod.is_terminal && is_drained(pod, now)
}

/// Whether the drain is about this pod at all: it neither stays until the node is gone nor hangs for ever.
pub(super) fn is_drained(pod: &PodFacts, now: Timestamp) -> bool {
    let disrupted = [Taint::new(labels::DISRUPTED_TAINT, "", Effect::NoSchedule)];
    let stays = first_untolerated(&disrupted, &pod.class.tolerations).is_none();
    let stuck = pod.deletion.is_some_and(|gone_by| seconds_between(gone_by, now) > STUCK_AFTER.as_secs_f64());
    !stays && pod.owner != Owner::Node && !stuck
}

/// The grace a pod still gets when the node's deadline no longer allows its own; nothing while it does.
pub(super) fn forced_grace(pod: &PodFacts, deadline: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let deadline = deadline?;
    let left = seconds_between(now, deadline);
    let grace = left.max(1.0);
    let is_due = match pod.deletion {
        // Asking again for what was asked for already would change nothing.
        Some(gone_by) => gone_by > deadline && seconds_between(now, gone_by) > grace,
        None => left < pod.grace.as_secs_f64(),
    };
    is_due.then(|| Duration::from_secs_f64(grace))
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use model::Vocabulary;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Reads `web`, `agent daemon`, `dns critical`, `held protected`, `going deleted@5`, `old terminal`,
    /// `tolerant tolerates`, `picky tolerates=NoExecute`, `proxy static`, `slow grace=40`, `net critical=node`.
    fn pod(line: &str) -> Arc<PodFacts> {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": {}},
            "spec": {"nodeName": "n", "containers": []}, "status": {"phase": "Running"},
        });
        for word in words {
            let owner =
                |version: &str, kind: &str| json!([{"apiVersion": version, "kind": kind, "name": "o", "uid": "o"}]);
            match word.split_once(['@', '=']).unwrap_or((word, "")) {
                ("daemon", _) => pod["metadata"]["ownerReferences"] = owner("apps/v1", "DaemonSet"),
                ("static", _) => pod["metadata"]["ownerReferences"] = owner("v1", "Node"),
                ("critical", of) => {
                    let of = if of.is_empty() { "cluster" } else { of };
                    pod["spec"]["priorityClassName"] = json!(format!("system-{of}-critical"));
                }
                ("protected", how) => {
                    let how = if how.is_empty() { "true" } else { how };
                    pod["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": how});
                }
                ("started", second) => pod["status"]["startTime"] = json!(at(second.parse().unwrap()).to_string()),
                ("terminal", _) => pod["status"]["phase"] = json!("Succeeded"),
                ("tolerates", "") => pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]),
                ("tolerates", effect) => {
                    let key = "karpenter.sh/disrupted";
                    pod["spec"]["tolerations"] = json!([{"key": key, "operator": "Exists", "effect": effect}]);
                }
                ("deleted", second) => {
                    pod["metadata"]["deletionTimestamp"] = json!(at(second.parse().unwrap()).to_string());
                }
                ("grace", seconds) => {
                    pod["spec"]["terminationGracePeriodSeconds"] = json!(seconds.parse::<i64>().unwrap());
                }
                (other, _) => panic!("unknown word `{other}`"),
            }
        }
        Arc::new(PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap())
    }

    fn check(pods: &[&str], deadline: Option<i64>, now: i64) -> String {
        let pods: Vec<_> = pods.iter().map(|line| pod(line)).collect();
        let drain = plan(&pods, deadline.map(at), at(now));
        let names = |pods: &[Leaving]| pods.iter().map(|(key, _)| key.name.to_string()).collect::<Vec<_>>().join(" ");
        let forced = if drain.force.is_empty() { String::new() } else { format!(" force {}", names(&drain.force)) };
        format!("{}{forced} of {}", names(&drain.evict), drain.waiting)
    }

    /// TERM-03: four waves, one after the other.
    #[test]
    fn waves_leave_one_after_the_other() {
        let all = ["web", "agent daemon", "dns critical", "net critical=node daemon"];
        assert_eq!(check(&all, None, 0), "web of 4");
        assert_eq!(check(&all[1..], None, 0), "agent of 3");
        assert_eq!(check(&all[2..], None, 0), "dns of 2");
        assert_eq!(check(&all[3..], None, 0), "net of 1");
        assert_eq!(check(&["going deleted@5", "dns critical"], None, 0), " of 2", "the first wave is not gone yet");
        assert_eq!(
            check(&["rich critical=shop", "dns critical=node"], None, 0),
            "rich of 2",
            "two classes are critical"
        );
    }

    /// TERM-04, TERM-05, TERM-06, TERM-11: who is waited for, and who is not.
    #[test]
    fn some_pods_are_not_waited_for() {
        let table = [
            ("tolerant tolerates", " of 0"),
            ("tolerant tolerates=NoSchedule", " of 0"),
            ("picky tolerates=NoExecute", "picky of 1"),
            ("proxy static", " of 0"),
            ("old terminal", " of 0"),
            ("held protected", " of 1"),
            ("going deleted@40", " of 1"),
            ("stuck deleted@39", " of 0"),
        ];
        for (line, expected) in table {
            assert_eq!(check(&[line], None, 100), expected, "{line}");
        }
    }

    /// TERM-13, TERM-14, TERM-15: a deadline leaves each pod its own grace, then bypasses waves and protection.
    #[test]
    fn a_deadline_forces_pods_out_in_time() {
        let table = [
            ("web grace=30", 70, "web of 1"),
            ("web grace=30", 71, " force web of 1"),
            ("held protected grace=30", 70, " of 1"),
            ("held protected grace=30", 71, " force held of 1"),
            ("dns critical grace=40", 61, " force dns of 1"),
            ("late deleted@150", 50, " force late of 1"),
            ("late deleted@101", 100, " of 1"),
            ("late deleted@102", 100, " force late of 1"),
            ("early deleted@90", 50, " of 1"),
        ];
        for (line, now, expected) in table {
            assert_eq!(check(&[line], Some(100), now), expected, "{line} at {now}");
        }
    }

    /// TERM-14: whose time is up does not wait for its wave.
    #[test]
    fn a_deadline_bypasses_waves() {
        let all = ["web grace=5", "agent daemon grace=30", "dns critical grace=30"];
        assert_eq!(check(&all, Some(100), 71), "web force agent dns of 3");
    }

    /// CAND-03, CAND-04, CAND-05: a drain waits for a protected pod for as long as it is protected; what cannot be read
    /// protects nothing.
    #[test]
    fn a_protected_pod_leaves_when_its_time_has_come() {
        let table = [
            ("web protected=true", 500, " of 1"),
            ("agent daemon protected=true", 500, " of 1"),
            ("web protected=1m started@100", 159, " of 1"),
            ("web protected=1m started@100", 160, "web of 1"),
            ("web protected=1m", 500, " of 1"),
            ("web protected=soon started@100", 100, "web of 1"),
            ("web protected=-1m started@100", 100, "web of 1"),
            ("web protected=false", 100, "web of 1"),
        ];
        for (line, now, expected) in table {
            assert_eq!(check(&[line], None, now), expected, "{line} at {now}");
        }
    }

    /// TERM-16
    #[test]
    fn forced_grace_is_at_least_a_second() {
        let grace = |now| forced_grace(&pod("web grace=30"), Some(at(100)), at(now)).map(|grace| grace.as_secs());
        assert_eq!([grace(50), grace(80), grace(100), grace(500)], [None, Some(20), Some(1), Some(1)]);
    }
}
