//! Playing a story: each step at its time, by the person at the keyboard or by the cloud.

use anyhow::{Context, Result};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::scenario::{Action, AnyTarget, Scale, Scenario, Target};
use crate::world::{World, sleep_until};

/// Carries out actions on a world.
pub struct Player<'a> {
    world: &'a World,
    client: Client,
    chance: Chance,
}

impl<'a> Player<'a> {
    /// A player with hands of its own.
    pub fn new(world: &'a World) -> Self {
        let chance = Chance::of(world.settings.seed, "player");
        Self { world, client: world.client(), chance }
    }

    /// Plays all steps of a story, each at its time, then waits for its end.
    pub async fn play(&self, scenario: &Scenario) -> Result<()> {
        for step in &scenario.steps {
            sleep_until(self.world.clock(), step.at).await;
            self.perform(&step.action).await?;
        }
        sleep_until(self.world.clock(), scenario.end).await;
        Ok(())
    }

    /// Does one thing, now.
    pub async fn perform(&self, action: &Action) -> Result<()> {
        match action {
            Action::Apply(objects) => {
                for object in objects {
                    self.apply(object).await?;
                }
                Ok(())
            }
            Action::Scale(scale) => self.scale(scale).await,
            Action::Delete(target) => self.delete(target).await,
            Action::DeleteAny(target) => self.delete_any(*target).await,
            Action::Interrupt => {
                if let Some(aws) = self.world.aws() {
                    aws.interrupt_any(&self.chance);
                }
                Ok(())
            }
            Action::Crash => {
                if let Some(aws) = self.world.aws() {
                    aws.crash_any(&self.chance);
                }
                Ok(())
            }
        }
    }

    /// Creates an object, or merges into the one that is there.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let api = self.api(version, kind, object.pointer("/metadata/namespace").and_then(Value::as_str)).await?;
        let wanted: DynamicObject = serde_json::from_value(object.clone()).context("an object has metadata")?;
        match api.create(&PostParams::default(), &wanted).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                api.patch(name, &PatchParams::default(), &Patch::Merge(object)).await
            }
            created => created,
        }
        .with_context(|| format!("apply {kind} `{name}`"))?;
        Ok(())
    }

    async fn scale(&self, scale: &Scale) -> Result<()> {
        let api = self.api("apps/v1", "Deployment", Some(&scale.namespace)).await?;
        let patch = json!({"spec": {"replicas": scale.replicas}});
        let scaled = api.patch_scale(&scale.deployment, &PatchParams::default(), &Patch::Merge(&patch)).await;
        scaled.with_context(|| format!("scale Deployment `{}`", scale.deployment))?;
        Ok(())
    }

    async fn delete(&self, target: &Target) -> Result<()> {
        let api = self.api(&target.api_version, &target.kind, target.namespace.as_deref()).await?;
        gone_is_fine(api.delete(&target.name, &DeleteParams::background()).await.map(|_| ()))
            .with_context(|| format!("delete {} `{}`", target.kind, target.name))
    }

    async fn delete_any(&self, target: AnyTarget) -> Result<()> {
        let (version, kind, selector) = match target {
            AnyTarget::Node => ("v1", "Node", "karpenter.sh/nodepool"),
            AnyTarget::Claim => ("karpenter.sh/v1", "NodeClaim", ""),
        };
        let api = self.api(version, kind, None).await?;
        let names: Vec<String> =
            api.list(&ListParams::default().labels(selector)).await?.items.iter().map(ResourceExt::name_any).collect();
        let Some(name) = self.chance.choose(&names) else { return Ok(()) };
        gone_is_fine(api.delete(name, &DeleteParams::background()).await.map(|_| ()))
            .with_context(|| format!("delete {kind} `{name}`"))
    }

    async fn api(&self, version: &str, kind: &str, namespace: Option<&str>) -> Result<Api<DynamicObject>> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let (resource, _): (ApiResource, _) = kube::discovery::pinned_kind(&self.client, &wanted)
            .await
            .with_context(|| format!("find the kind {kind} of `{group}/{version}`"))?;
        Ok(match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        })
    }
}

fn gone_is_fine(result: kube::Result<()>) -> Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other?),
    }
}
