//! Makes the volumes of claims once the kube-scheduler has chosen a node, as a storage driver would.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use kube::api::PostParams;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use model::labels;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::draw::{DRIVER, read};

/// The annotation in which the kube-scheduler names the node.
const CHOSEN_NODE: &str = "volume.kubernetes.io/selected-node";

/// Works until it is dropped.
pub(crate) struct Provisioner {
    _runtime: Runtime,
}

impl Provisioner {
    pub(crate) fn start(kubeconfig: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(e2e::client(kubeconfig)).context("reach the API server")?;
        runtime.spawn(work(client));
        Ok(Self { _runtime: runtime })
    }
}

async fn work(client: Client) {
    let mut events = pin!(watcher(Api::<PersistentVolumeClaim>::all(client.clone()), watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(claim) | Event::Apply(claim)) => {
                // A volume that was made already is no news, and whoever waits for one that cannot be made says so.
                drop(provision(&client, &claim).await);
            }
            Ok(_) => {}
            // The watcher recovers by itself.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn provision(client: &Client, claim: &PersistentVolumeClaim) -> Result<()> {
    let Some(spec) = claim.spec.as_ref().filter(|spec| spec.volume_name.is_none()) else { return Ok(()) };
    let Some(node) = claim.annotations().get(CHOSEN_NODE) else { return Ok(()) };
    let node = Api::<Node>::all(client.clone()).get(node).await?;
    let zone = node.labels().get(labels::ZONE).context("every node has a zone")?;
    let uid = claim.uid().context("the claim is known to the API server")?;
    let here = json!({"matchExpressions": [{"key": labels::ZONE, "operator": "In", "values": [zone]}]});
    let volume: PersistentVolume = read(json!({
        "metadata": {"name": format!("made-{uid}"), "labels": claim.labels()},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec.storage_class_name,
            "csi": {"driver": DRIVER, "volumeHandle": uid},
            "claimRef": {"namespace": claim.namespace(), "name": claim.name_any(), "uid": uid},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
        },
    }));
    Api::all(client.clone()).create(&PostParams::default(), &volume).await?;
    Ok(())
}
