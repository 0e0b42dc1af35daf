//! What a person does with kubectl, done with a client: for clusters that kubectl cannot reach.

use anyhow::{Context, Result};
use api::{NodeClaim, NodeOverlay, NodePool};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::bed::{Target, Wait};
use crate::waiting::wait_for;

/// Creates what the documents of a manifest hold; what is there already is changed to that by a merge patch.
pub async fn apply(client: &Client, manifest: &str) -> Result<()> {
    for document in serde_yaml_ng::Deserializer::from_str(manifest) {
        let value = serde_json::Value::deserialize(document).context("read the manifest")?;
        if value.is_null() {
            continue;
        }
        let object: DynamicObject = serde_json::from_value(value).context("read the manifest")?;
        let name = object.name_any();
        apply_object(client, object).await.with_context(|| format!("apply `{name}`"))?;
    }
    Ok(())
}

async fn apply_object(client: &Client, object: DynamicObject) -> Result<()> {
    let kind = object.types.as_ref().context("a manifest names its kind")?.try_into()?;
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.namespace().context("an object of this kind has a namespace")?;
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&object)).await?;
        }
        created => drop(created?),
    }
    Ok(())
}

/// Sets the replicas of a Deployment of the default namespace.
pub async fn scale(client: &Client, deployment: &str, replicas: u32) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    deployments.patch_scale(deployment, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Sets the replicas of a NodePool through its scale.
pub async fn scale_pool(client: &Client, pool: &str, replicas: u32) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    Api::<NodePool>::all(client.clone()).patch_scale(pool, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Deletes an object, and waits for its end if asked to.
pub async fn delete(client: &Client, target: Target<'_>, wait: Wait) -> Result<()> {
    match target {
        Target::Node(name) => delete_from(Api::<Node>::all(client.clone()), name, wait).await,
        Target::Claim(name) => delete_from(Api::<NodeClaim>::all(client.clone()), name, wait).await,
        Target::Pool(name) => delete_from(Api::<NodePool>::all(client.clone()), name, wait).await,
        Target::Overlay(name) => delete_from(Api::<NodeOverlay>::all(client.clone()), name, wait).await,
        Target::Budget(name) => {
            delete_from(Api::<PodDisruptionBudget>::namespaced(client.clone(), "default"), name, wait).await
        }
    }
}

async fn delete_from<K>(api: Api<K>, name: &str, wait: Wait) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    api.delete(name, &DeleteParams::background()).await?;
    match wait {
        Wait::No => {}
        Wait::UntilGone => drop(wait_for(api, "the end of what was deleted", |seen| !seen.contains_key(name)).await?),
    }
    Ok(())
}

/// Takes the taint with this key away from a node.
pub async fn untaint(client: &Client, node: &str, key: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    loop {
        let mut found = nodes.get(node).await?;
        let taints = found.spec.get_or_insert_default().taints.get_or_insert_default();
        let before = taints.len();
        taints.retain(|taint| taint.key != key);
        anyhow::ensure!(taints.len() < before, "node `{node}` has no taint `{key}`");
        match nodes.replace(node, &PostParams::default(), &found).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            replaced => return Ok(replaced.map(drop)?),
        }
    }
}
