//! Volumes that must come off a node before its instance ends. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use model::{NodeName, Text};
use state::Cluster;

use super::drain::is_drained;

/// Names that a message shows before it only counts.
const SHOWN: usize = 5;

/// How far the volumes of a node are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Detachment {
    /// None is attached that matters.
    Done,
    /// These attachments are still there.
    Awaited(Vec<Text>),
    /// Some are still there, and the node's time is up.
    Overdue,
}

/// Waits for the volumes of all pods but those that stay until the node is gone. Their volumes, and those that no
/// PersistentVolume stands for, come off with the node.
pub(super) fn detachment(
    cluster: &Cluster,
    node: &NodeName,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Detachment {
    let staying = cluster.pods_on(node).filter(|pod| !is_drained(pod, now));
    let kept: BTreeSet<&Text> = staying.flat_map(|pod| cluster.volumes_of(pod)).collect();
    let is_awaited = |volume: &Text| !kept.contains(volume);
    let attached = cluster.attachments_on(node).filter(|found| found.volume.as_ref().is_some_and(is_awaited));
    let awaited: Vec<Text> = attached.map(|found| Text::clone(&found.name)).collect();
    match awaited.is_empty() {
        true => Detachment::Done,
        false if deadline.is_some_and(|deadline| now > deadline) => Detachment::Overdue,
        false => Detachment::Awaited(awaited),
    }
}

/// What people are told while attachments are waited for.
pub(super) fn message(awaited: &[Text]) -> String {
    let shown: Vec<&str> = awaited.iter().take(SHOWN).map(|name| &**name).collect();
    let more = awaited.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} other(s)") } else { String::new() };
    format!("Awaiting deletion of bound volumeattachments ({}{more})", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::lower::{AttachmentFacts, PodFacts, VolumeClaimFacts};
    use model::Vocabulary;
    use serde_json::{Value, json};
    use state::{ManagedKind, Object};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A pod on the node with a volume of its own: claim `<name>` is bound to volume `pv-<name>`.
    fn fold_pod(cluster: &mut Cluster, name: &str, extra: &Value) {
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"nodeName": "n", "containers": [],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]},
        });
        for (section, fields) in extra.as_object().unwrap() {
            for (field, value) in fields.as_object().unwrap() {
                pod[section][field] = value.clone();
            }
        }
        let claim =
            json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"volumeName": format!("pv-{name}")}});
        let pod = PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap();
        let claim = VolumeClaimFacts::lower(&serde_json::from_value(claim).unwrap()).unwrap();
        cluster.apply(Object::Pod(Arc::new(pod)));
        cluster.apply(Object::VolumeClaim(Arc::new(claim)));
    }

    fn attach(cluster: &mut Cluster, name: &str, node: &str, source: &Value) {
        let spec = json!({"attacher": "csi", "nodeName": node, "source": source});
        let attachment = json!({"metadata": {"name": name}, "spec": spec});
        let attachment = AttachmentFacts::lower(&serde_json::from_value(attachment).unwrap()).unwrap();
        cluster.apply(Object::Attachment(Arc::new(attachment)));
    }

    /// TERM-17, TERM-18: volumes of pods that leave are waited for until the deadline; those of pods that stay, of other
    /// nodes and without a PersistentVolume are not.
    #[test]
    fn volumes_of_pods_that_leave_are_waited_for() {
        let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
        let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
        let node = NodeName::new("n");
        fold_pod(&mut cluster, "leaves", &json!({}));
        fold_pod(&mut cluster, "ended", &json!({"status": {"phase": "Succeeded"}}));
        fold_pod(&mut cluster, "stays", &json!({"spec": {"tolerations": [{"operator": "Exists"}]}}));
        fold_pod(&mut cluster, "hangs", &json!({"metadata": {"deletionTimestamp": at(10).to_string()}}));
        assert_eq!(detachment(&cluster, &node, None, at(100)), Detachment::Done);
        let volume = |name: &str| json!({"persistentVolumeName": name});
        for name in ["leaves", "ended", "stays", "hangs", "nobody"] {
            attach(&mut cluster, name, "n", &volume(&format!("pv-{name}")));
        }
        attach(&mut cluster, "elsewhere", "m", &volume("pv-elsewhere"));
        attach(&mut cluster, "inline", "n", &json!({"inlineVolumeSpec": {}}));
        let awaited: Vec<Text> = ["ended", "leaves", "nobody"].map(Text::from).to_vec();
        assert_eq!(detachment(&cluster, &node, None, at(100)), Detachment::Awaited(awaited.clone()));
        assert_eq!(detachment(&cluster, &node, Some(at(100)), at(100)), Detachment::Awaited(awaited));
        assert_eq!(detachment(&cluster, &node, Some(at(100)), at(101)), Detachment::Overdue);
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<Text> = ["a", "b", "c", "d", "e", "f", "g"].map(Text::from).to_vec();
        assert_eq!(message(&names[..2]), "Awaiting deletion of bound volumeattachments (a, b)");
        assert_eq!(message(&names), "Awaiting deletion of bound volumeattachments (a, b, c, d, e and 2 other(s))");
    }
}
