//! Effects: everything that changes the cluster, one thin function each.
//!
//! Writes are patches that say only what changes. Those that replace a list carry the resource version or the list
//! that they were computed from, so that nobody's write is lost; a conflict is tried again from the newer object.

use std::sync::Arc;
use std::time::Duration;

use api::lower::{NodeFacts, OverlayFacts, PodFacts};
use api::{CapacityBuffer, NodeClaim, NodeOverlay, NodePool, labels};
use cloud::LaunchId;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Resource;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use model::{BufferKey, ClaimName, NodeName, PodKey, PoolName};
use serde_json::{Value, json};
use state::{Key, Object};

use crate::context::Context;
use crate::deletion_cost::Wanted;
use crate::process::OBSERVED;

/// A write that did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// Somebody else wrote first.
    #[error("{attempt}: the object has changed meanwhile")]
    Conflict { attempt: &'static str },
    /// The object is gone.
    #[error("{attempt}: the object is gone")]
    NotFound { attempt: &'static str },
    /// This process only observes.
    #[error("{attempt}: not sent, because this process only observes")]
    Observed { attempt: &'static str },
    /// The API server refused or did not answer.
    #[error("{attempt}: {source}")]
    Failed { attempt: &'static str, source: Box<kube::Error> },
}

impl WriteError {
    fn from(attempt: &'static str, error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict" => Self::Conflict { attempt },
            kube::Error::Api(status) if status.code == 404 => Self::NotFound { attempt },
            kube::Error::Api(status) if status.reason == OBSERVED => Self::Observed { attempt },
            _ => Self::Failed { attempt, source: Box::new(error) },
        }
    }
}

impl WriteError {
    /// Whether the write may have happened all the same: no answer came, or one that does not say.
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Self::Conflict { .. } | Self::NotFound { .. } | Self::Observed { .. } => false,
            Self::Failed { source, .. } => !matches!(&**source, kube::Error::Api(status) if status.code < 500),
        }
    }
}

type Written<T> = Result<T, WriteError>;

/// A deletion of something that is gone already has succeeded.
fn gone_is_fine<T>(result: Result<T, WriteError>) -> Written<()> {
    match result {
        Ok(_) | Err(WriteError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn of_uid(uid: &str) -> DeleteParams {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

/// Creates a claim; its name is drawn by the API server.
pub(crate) async fn create_claim(context: &Context, claim: &NodeClaim) -> Written<Arc<NodeClaim>> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let created = api.create(&PostParams::default(), claim).await;
    match created.map_err(|error| WriteError::from("create nodeclaim", error)) {
        Err(error) if error.is_unanswered() => find_made(&api, claim).await.ok_or(error).map(Arc::new),
        created => created.map(Arc::new),
    }
}

/// Looks a claim up of whose creation no answer came. It may have been made, our watch may be late, and whoever does not
/// know of it would make it again.
async fn find_made(api: &Api<NodeClaim>, draft: &NodeClaim) -> Option<NodeClaim> {
    const PAUSES: [u64; 5] = [100, 200, 400, 800, 1600];
    let launch = LaunchId::of(draft)?;
    let pool = draft.metadata.labels.as_ref()?.get(labels::NODE_POOL)?;
    let of_pool = ListParams::default().labels(&format!("{}={pool}", labels::NODE_POOL));
    for pause in PAUSES {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if let Ok(claims) = api.list(&of_pool).await {
            return claims.items.into_iter().find(|claim| LaunchId::of(claim).as_ref() == Some(&launch));
        }
    }
    None
}

/// Changes a claim's metadata.
pub(crate) async fn patch_claim(context: &Context, name: &ClaimName, patch: &Value) -> Written<Arc<NodeClaim>> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let patched = api.patch(name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await;
    let claim = Arc::new(patched.map_err(|error| WriteError::from("patch nodeclaim", error))?);
    // The answer to the patch that takes the last finalizer away describes an object that is gone.
    let is_gone =
        claim.metadata.deletion_timestamp.is_some() && claim.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
    if is_gone {
        context.remove(&Key::Claim(name.clone()));
    } else {
        context.learn(Object::Claim(Arc::clone(&claim)));
    }
    Ok(claim)
}

/// Changes a claim's status.
pub(crate) async fn patch_claim_status(context: &Context, name: &ClaimName, patch: &Value) -> Written<Arc<NodeClaim>> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let patched = api.patch_status(name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await;
    let claim = Arc::new(patched.map_err(|error| WriteError::from("patch nodeclaim status", error))?);
    context.learn(Object::Claim(Arc::clone(&claim)));
    Ok(claim)
}

/// Asks for a claim's end.
pub(crate) async fn delete_claim(context: &Context, claim: &NodeClaim) -> Written<()> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    let deleted = api.delete(name, &of_uid(uid)).await;
    // The answer shows the claim as it goes, so that nobody here asks for its end again.
    let deleted = deleted.map(|answer| answer.left().filter(|claim| claim.metadata.deletion_timestamp.is_some()));
    if let Ok(Some(going)) = &deleted {
        context.learn(Object::Claim(Arc::new(going.clone())));
    }
    gone_is_fine(deleted.map_err(|error| WriteError::from("delete nodeclaim", error)))
}

/// The claim as the API server has it now, whatever our watch has seen.
pub(crate) async fn read_claim(context: &Context, name: &ClaimName) -> Written<Option<NodeClaim>> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    api.get_opt(name.as_str()).await.map_err(|error| WriteError::from("get nodeclaim", error))
}

/// Changes a node, by a JSON patch that says what it was computed from: a young node is written by many, and most of what
/// they write does not concern us.
pub(crate) async fn patch_node(context: &Context, name: &NodeName, patch: &Value) -> Written<()> {
    const ATTEMPT: &str = "patch node";
    let api: Api<Node> = Api::all(context.client.clone());
    let request = http::Request::patch(format!("{}/{name}", Node::url_path(&(), None)))
        .header(http::header::CONTENT_TYPE, "application/json-patch+json")
        .body(patch.to_string().into_bytes())
        .map_err(|error| kube::Error::BuildRequest(kube::core::request::Error::BuildRequest(error)));
    let patched = match request {
        Ok(request) => context.client.request::<Node>(request).await,
        Err(error) => Err(error),
    };
    let failed = |error| match error {
        // Another node, or another list, than the patch was made for. An invalid node would be named.
        kube::Error::Api(status) if status.code == 422 && status.message.starts_with("the server rejected") => {
            WriteError::Conflict { attempt: ATTEMPT }
        }
        error => WriteError::from(ATTEMPT, error),
    };
    match patched.map_err(failed) {
        Ok(node) => {
            learn_node(context, name, &node);
            Ok(())
        }
        Err(conflict @ WriteError::Conflict { .. }) => {
            // Without a look at it we would fail again until our watch has caught up.
            if let Ok(Some(node)) = api.get_opt(name.as_str()).await {
                learn_node(context, name, &node);
            }
            Err(conflict)
        }
        Err(error) => Err(error),
    }
}

fn learn_node(context: &Context, name: &NodeName, node: &Node) {
    let is_gone =
        node.metadata.deletion_timestamp.is_some() && node.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
    match NodeFacts::lower(node) {
        Some(_) if is_gone => context.remove(&Key::Node(name.clone())),
        Some(facts) => context.learn(Object::Node(Arc::new(facts))),
        None => {}
    }
}

/// Asks for a node's end.
pub(crate) async fn delete_node(context: &Context, node: &NodeFacts) -> Written<()> {
    let api: Api<Node> = Api::all(context.client.clone());
    let deleted = api.delete(node.name.as_str(), &of_uid(&node.uid)).await;
    gone_is_fine(deleted.map_err(|error| WriteError::from("delete node", error)))
}

/// Changes a pool's metadata.
pub(crate) async fn patch_pool(context: &Context, name: &PoolName, patch: &Value) -> Written<()> {
    let api: Api<NodePool> = Api::all(context.client.clone());
    let patched = api.patch(name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await;
    let pool = patched.map_err(|error| WriteError::from("patch nodepool", error))?;
    context.learn(Object::Pool(Arc::new(pool)));
    Ok(())
}

/// Changes a pool's status.
pub(crate) async fn patch_pool_status(context: &Context, name: &PoolName, patch: &Value) -> Written<()> {
    let api: Api<NodePool> = Api::all(context.client.clone());
    let patched = api.patch_status(name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await;
    let pool = patched.map_err(|error| WriteError::from("patch nodepool status", error))?;
    context.learn(Object::Pool(Arc::new(pool)));
    Ok(())
}

/// Changes an overlay's status.
pub(crate) async fn patch_overlay_status(context: &Context, name: &str, patch: &Value) -> Written<()> {
    let api: Api<NodeOverlay> = Api::all(context.client.clone());
    let patched = api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    let overlay = patched.map_err(|error| WriteError::from("patch nodeoverlay status", error))?;
    if let Some(facts) = OverlayFacts::lower(&overlay, &context.provider.vocabulary()) {
        context.learn(Object::Overlay(Arc::new(facts)));
    }
    Ok(())
}

/// Changes a buffer's status.
pub(crate) async fn patch_buffer_status(context: &Context, key: &BufferKey, patch: &Value) -> Written<()> {
    let api: Api<CapacityBuffer> = Api::namespaced(context.client.clone(), &key.namespace);
    let patched = api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
    let buffer = patched.map_err(|error| WriteError::from("patch capacitybuffer status", error))?;
    context.learn(Object::Buffer(Arc::new(buffer)));
    Ok(())
}

/// What the eviction API answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// The pod is going.
    Accepted,
    /// The pod, or this incarnation of it, is gone.
    Gone,
    /// Its disruption budget holds it back.
    HeldBack,
    /// It has several disruption budgets, which the eviction API does not support.
    SeveralBudgets,
}

/// Asks the API server to evict a pod, and no later pod of the same name.
pub(crate) async fn evict(context: &Context, pod: &PodFacts) -> Written<Evicted> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pod.key.namespace);
    // Written by hand: the client's own form of it loses the identity on the way.
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": &*pod.key.name, "namespace": &*pod.key.namespace},
        "deleteOptions": {"preconditions": {"uid": &*pod.uid}},
    });
    let answer: Result<Status, kube::Error> =
        api.create_subresource("eviction", &pod.key.name, &PostParams::default(), &eviction).await;
    // Of a pod with several budgets the API server says in a success that it failed.
    let answer = match answer {
        Ok(status) if status.is_failure() => Err(kube::Error::Api(status.boxed())),
        answer => answer,
    };
    let code = match &answer {
        Ok(_) => 201,
        Err(kube::Error::Api(status)) => status.code,
        Err(_) => 0,
    };
    context.metrics.eviction_answered(code);
    match answer {
        Ok(_) => Ok(Evicted::Accepted),
        Err(kube::Error::Api(status)) => match status.code {
            404 | 409 => Ok(Evicted::Gone),
            429 => Ok(Evicted::HeldBack),
            500 if status.message.contains("more than one PodDisruptionBudget") => Ok(Evicted::SeveralBudgets),
            _ => Err(WriteError::from("evict pod", kube::Error::Api(status))),
        },
        Err(error) => Err(WriteError::from("evict pod", error)),
    }
}

/// Has a pod say what it costs to end it, unless somebody has changed the pod meanwhile.
pub(crate) async fn annotate_pod(context: &Context, pod: &PodFacts, wanted: Wanted) -> Written<()> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pod.key.namespace);
    let cost = match wanted {
        Wanted::Cost(cost) => Value::String(cost.to_string()),
        Wanted::Nothing => Value::Null,
    };
    let version = (pod.version > 0).then(|| pod.version.to_string());
    let patch = json!({"metadata": {
        "uid": &*pod.uid, "resourceVersion": version, "annotations": {labels::POD_DELETION_COST: cost},
    }});
    let patched = api.patch_metadata(&pod.key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map(|_| ()).map_err(|error| WriteError::from("annotate pod", error))
}

/// Has the scheduler keep room for a pod on a node, and for no later pod of the same name.
pub(crate) async fn nominate_pod(context: &Context, pod: &PodFacts, node: &NodeName) -> Written<()> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pod.key.namespace);
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": {"nominatedNodeName": node.as_str()}});
    let patched = api.patch_status(&pod.key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map(|_| ()).map_err(|error| WriteError::from("nominate pod", error))
}

/// Ends a pod regardless of budgets, because its node's time is up.
pub(crate) async fn delete_pod(context: &Context, key: &PodKey, uid: &str, grace: Duration) -> Written<()> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &key.namespace);
    let mut parameters = of_uid(uid);
    parameters.grace_period_seconds = Some(u32::try_from(grace.as_secs()).unwrap_or(u32::MAX));
    let deleted = api.delete(&key.name, &parameters).await;
    gone_is_fine(deleted.map_err(|error| WriteError::from("delete pod", error)))
}
