//! Launching: exactly once, however often we are killed in between.

use std::sync::Arc;
use std::time::Duration;

use api::lower::PodFacts;
use api::node_claim::conditions;
use api::{NodeClaim, labels};
use cloud::{LaunchError, LaunchId, LaunchRequest, Launched, Next as LaunchNext};
use model::{ClaimName, PodKey, PoolName};
use serde_json::{Map, Value, json};
use state::Cluster;

use super::draft::ClaimDraft;
use super::{believed, give_up, labels_of, left_of, name_of};
use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::planted::PlantedBug;
use crate::work::{Next, WorkError};
use crate::write;

/// How a launch stands.
pub(super) enum Launch {
    /// Launched, now or before.
    Done,
    /// Not yet.
    Retry(Next),
    /// The claim is being deleted.
    GivenUp,
}

/// A provider that takes longer to answer is asked again. Shorter than a whole pass may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Conditions and events carry at most this many bytes of an error.
const MESSAGE_MAX: usize = 1024;

pub(super) async fn step(context: &Context, draft: &mut ClaimDraft) -> Result<Launch, WorkError> {
    let claim = draft.claim().clone();
    let Some(id) = LaunchId::of(&claim).filter(|_| draft.is_unknown(conditions::LAUNCHED)) else {
        return Ok(Launch::Done);
    };
    if let Some(left) = left_of_pause(context, &name_of(&claim)) {
        return Ok(Launch::Retry(Next::After(left)));
    }
    let is_fresh = context.notes().fresh.remove(&name_of(&claim)).is_some();
    // A mistake on purpose: what is tried again is tried under another name.
    let is_renamed = !is_fresh && context.planted.is(PlantedBug::DoubleLaunch);
    let id = if is_renamed { LaunchId::new(context.draw_launch_id()) } else { id };
    let request = LaunchRequest { id, claim };
    let found = if is_fresh { None } else { context.provider.find_launched(&request).await? };
    let launched = match found {
        Some(launched) => Ok(launched),
        None if is_over_limits(context, &request.claim).await? => {
            give_up(context, &request.claim, "limits_exceeded").await?;
            return Ok(Launch::GivenUp);
        }
        None => launch_in_time(context, &request).await,
    };
    match launched {
        Ok(launched) => {
            accept(context, draft, launched).await?;
            context.notes().expected.remove(&name_of(draft.claim()));
            Ok(Launch::Done)
        }
        Err(error) => refuse(context, draft, &error).await,
    }
}

/// How much longer the provider wants to be left alone with a claim, whatever wakes it meanwhile.
fn left_of_pause(context: &Context, claim: &ClaimName) -> Option<Duration> {
    let (asked, pause) = context.notes().launches_paused.get(claim).copied()?;
    let now = context.now();
    left_of(pause, believed(asked, now)?, now)
}

/// A provider that does not answer has failed for now; should it start the instance after all, the next try finds it.
async fn launch_in_time(context: &Context, request: &LaunchRequest) -> Result<Launched, LaunchError> {
    let silent =
        LaunchError::Failed { message: format!("the provider did not answer within {}s", ANSWER_MAX.as_secs()) };
    tokio::time::timeout(ANSWER_MAX, context.provider.launch(request)).await.unwrap_or(Err(silent))
}

/// Whether the claim's pool has more claims than its limits allow; then the pods of this one are planned anew.
async fn is_over_limits(context: &Context, claim: &NodeClaim) -> Result<bool, WorkError> {
    let pool = PoolName::new(labels_of(claim).pool.as_str());
    let (stored, is_known) = {
        let cluster = context.cluster();
        (cluster.pool(&pool).cloned(), cluster.types(&pool).is_some())
    };
    let Some(stored) = stored.filter(|pool| pool.spec.limits.is_some()) else { return Ok(false) };
    if !is_known {
        let types = context.provider.instance_types(&stored).await?;
        context.cluster().set_types(pool.clone(), types);
    }
    Ok(context.cluster().is_over_limits(&pool))
}

/// Labels first, status last: as long as the status does not say launched, the launch is looked up and accepted again.
async fn accept(context: &Context, draft: &mut ClaimDraft, launched: Launched) -> Result<(), WorkError> {
    if let Some(patch) = metadata_patch(draft.claim(), &launched) {
        let claim = write::patch_claim(context, &name_of(draft.claim()), &patch).await?;
        draft.rebase(claim);
    }
    let Launched { provider_id, image_id, labels: own, annotations: _, capacity, allocatable } = launched;
    let status = draft.status();
    status.provider_id = Some(provider_id.to_string());
    status.image_id = (!image_id.is_empty()).then_some(image_id);
    status.capacity = Some(capacity);
    status.allocatable = Some(allocatable);
    draft.conditions(|conditions| conditions.set_true(conditions::LAUNCHED));
    let label = |key: &str| own.get(key).cloned().unwrap_or_default();
    tracing::info!(
        NodeClaim.name = %name_of(draft.claim()), "provider-id" = %provider_id, "instance-type" = label(labels::INSTANCE_TYPE),
        zone = label(labels::ZONE), "capacity-type" = label(labels::CAPACITY_TYPE), "launched nodeclaim"
    );
    Ok(())
}

/// What the provider knows and the claim does not say yet. The claim's own labels win, the provider's annotations do.
fn metadata_patch(claim: &NodeClaim, launched: &Launched) -> Option<Value> {
    let own_labels = claim.metadata.labels.clone().unwrap_or_default();
    let own_annotations = claim.metadata.annotations.clone().unwrap_or_default();
    let new_labels = launched.labels.iter().filter(|(key, _)| !own_labels.contains_key(*key));
    let new_annotations = launched.annotations.iter().filter(|(key, value)| own_annotations.get(*key) != Some(value));
    let object = |pairs: Vec<(&String, &String)>| -> Map<String, Value> {
        pairs.into_iter().map(|(key, value)| (key.clone(), json!(value))).collect()
    };
    let (new_labels, new_annotations) = (object(new_labels.collect()), object(new_annotations.collect()));
    let has_news = !new_labels.is_empty() || !new_annotations.is_empty();
    has_news.then(|| json!({"metadata": {"labels": new_labels, "annotations": new_annotations}}))
}

async fn refuse(context: &Context, draft: &mut ClaimDraft, error: &LaunchError) -> Result<Launch, WorkError> {
    let message = shortened(&error.to_string());
    let name = name_of(draft.claim());
    tracing::error!(NodeClaim.name = %name, %error, "failed launching nodeclaim");
    match error.next() {
        LaunchNext::Replan => {
            if matches!(error, LaunchError::InsufficientCapacity { .. }) {
                let notice = Notice {
                    about: about::claim(draft.claim()),
                    tone: Tone::Warning,
                    reason: "InsufficientCapacityError",
                    message: shortened(&format!("NodeClaim {name} event: {error}")),
                    quiet: QUIET,
                };
                context.recorder.publish(context.now(), notice);
                tell_pods(context, &name, error);
            }
            give_up(context, draft.claim(), error.metric_reason()).await?;
            Ok(Launch::GivenUp)
        }
        LaunchNext::Retry { after } => {
            let reason = error.condition_reason().to_owned();
            draft.conditions(|conditions| conditions.set_unknown(conditions::LAUNCHED, &reason, &message));
            if let Some(pause) = after {
                context.notes().launches_paused.insert(name, (context.now(), pause));
            }
            Ok(Launch::Retry(after.map_or(Next::BackOff, Next::After)))
        }
    }
}

/// Pods that wait for this claim, and for nothing else, hear that it will not come.
fn tell_pods(context: &Context, claim: &ClaimName, error: &LaunchError) {
    let expected = context.notes().expected.remove(claim).unwrap_or_default();
    let waiting = still_waiting(&context.cluster(), &expected);
    for pod in waiting {
        let notice = Notice {
            about: about::pod(&pod),
            tone: Tone::Warning,
            reason: "InsufficientCapacityError",
            message: shortened(&format!("NodeClaim {claim} nominated for this pod failed to launch: {error}")),
            quiet: QUIET,
        };
        if !context.recorder.publish_paced(context.now(), notice) {
            return;
        }
    }
}

/// Those of the pods that still are without a node, and want one.
fn still_waiting(cluster: &Cluster, pods: &[PodKey]) -> Vec<Arc<PodFacts>> {
    let known = pods.iter().filter_map(|key| cluster.pod(key));
    known.filter(|pod| pod.is_active() && pod.node.is_none()).cloned().collect()
}

fn shortened(text: &str) -> String {
    const ELLIPSIS: &str = "...";
    if text.len() <= MESSAGE_MAX {
        return text.to_owned();
    }
    let mut end = MESSAGE_MAX - ELLIPSIS.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &text[..end])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use api::ResourceList;
    use model::{ProviderId, Vocabulary};
    use state::{ManagedKind, Object};

    use super::*;

    /// LIFE-08: the claim's own labels win over the provider's, the provider's annotations over the claim's.
    #[test]
    fn labels_are_the_claims_and_annotations_the_providers() {
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "labels": {"team": "a"}, "annotations": {"note": "old", "same": "x"}},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
        }))
        .unwrap();
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let launched = |labels: &[(&str, &str)], annotations: &[(&str, &str)]| Launched {
            provider_id: ProviderId::new("i-1"),
            image_id: String::new(),
            labels: map(labels),
            annotations: map(annotations),
            capacity: ResourceList::default(),
            allocatable: ResourceList::default(),
        };
        let found = metadata_patch(&claim, &launched(&[("team", "b"), ("zone", "z")], &[("note", "new")]));
        let expected = json!({"metadata": {"labels": {"zone": "z"}, "annotations": {"note": "new"}}});
        assert_eq!(found, Some(expected));
        // One of the two is enough to be news.
        for (labels, annotations) in [(&[("zone", "z")][..], &[][..]), (&[], &[("note", "new")])] {
            let expected = json!({"metadata": {"labels": map(labels), "annotations": map(annotations)}});
            assert_eq!(metadata_patch(&claim, &launched(labels, annotations)), Some(expected));
        }
        assert_eq!(metadata_patch(&claim, &launched(&[("team", "b")], &[("same", "x")])), None, "nothing is news");
    }

    /// LIFE-32: a pod that has found another node, has ended, is going or is gone does not wait for this one.
    #[test]
    fn only_pods_that_still_wait_are_told() {
        let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
        let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
        let pods = [
            ("waits", Value::Null, Value::Null, "Pending"),
            ("bound", json!("n1"), Value::Null, "Pending"),
            ("ended", Value::Null, Value::Null, "Failed"),
            ("going", Value::Null, json!("2026-01-01T00:00:00Z"), "Pending"),
        ];
        for (name, node, deletion, phase) in pods {
            let pod = json!({
                "metadata": {"name": name, "namespace": "shop", "uid": name, "deletionTimestamp": deletion},
                "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase},
            });
            let pod = PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap();
            cluster.apply(Object::Pod(Arc::new(pod)));
        }
        let expected = ["waits", "bound", "ended", "going", "gone"].map(|name| PodKey::new("shop", name));
        let told: Vec<String> = still_waiting(&cluster, &expected).iter().map(|pod| pod.key.name.to_string()).collect();
        assert_eq!(told, ["waits"]);
    }

    /// LIFE-05: at most 1024 bytes in all, never half a character.
    #[test]
    fn long_messages_are_cut_to_1024_bytes() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"x".repeat(2000)), format!("{}...", "x".repeat(1021)));
        assert_eq!(shortened(&"é".repeat(600)), format!("{}...", "é".repeat(510)));
    }
}
