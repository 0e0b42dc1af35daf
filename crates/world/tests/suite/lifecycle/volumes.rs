//! Volumes that come off a node before its instance ends.

use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::stage::{Stage, play, pod};

/// A pod with a volume that is attached to its node, and one that stays there until the end with another.
async fn attached(stage: &Stage, spec: Value) -> String {
    let node = stage.ready_claim("solo", spec).await;
    for name in ["leaves", "stays"] {
        stage
            .apply(json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("pv-{name}")},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                    "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": name},
                    "claimRef": {"namespace": "default", "name": name}},
            }))
            .await;
        stage.apply(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": format!("pv-{name}"), "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}},
        }))
        .await;
        stage.apply(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": format!("csi-{name}")},
            "spec": {"attacher": "ebs.csi.aws.com", "nodeName": node,
                "source": {"persistentVolumeName": format!("pv-{name}")}},
        }))
        .await;
    }
    let volume = |name: &str| json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
    let tolerations = json!([{"operator": "Exists"}]);
    // Bound by hand: nobody provisions volumes here.
    stage.apply(pod("leaves", &json!({"spec": {"nodeName": node, "volumes": volume("leaves")}}))).await;
    let stays = json!({"spec": {"nodeName": node, "volumes": volume("stays"), "tolerations": tolerations}});
    stage.apply(pod("stays", &stays)).await;
    stage.until_running("leaves").await;
    node
}

/// TERM-17: the instance ends when the volumes of pods that left are detached; those of pods that stay do not matter.
#[test]
fn volumes_are_detached_before_the_instance_ends() {
    play(async |stage| {
        let node = attached(stage, json!({})).await;
        stage.delete_claim("solo").await;
        stage
            .until_condition("solo", "VolumesDetached", "Unknown AwaitingVolumeDetachment: AwaitingVolumeDetachment")
            .await;
        stage.wait(10 * 60).await;
        assert!(stage.condition("solo", "Drained").await.unwrap().starts_with("True"));
        assert_eq!(stage.script.ends_of("solo").len(), 0, "nobody pulls the plug");
        let told = stage.events("AwaitingVolumeDetachment").await;
        let expected = format!("Node/{node}: Awaiting deletion of bound volumeattachments (csi-leaves)");
        assert!(told.iter().all(|event| *event == expected) && !told.is_empty(), "{told:?}");
        let attachments: Api<VolumeAttachment> = Api::all(stage.world.client());
        attachments.delete("csi-leaves", &DeleteParams::default()).await.unwrap();
        let took = stage.until_claim_gone("solo").await;
        assert!(took.as_secs() < 10, "{took:?}");
    });
}

/// TERM-18: after the deadline nobody waits for volumes any more.
#[test]
fn a_deadline_ends_the_wait_for_volumes() {
    play(async |stage| {
        attached(stage, json!({"terminationGracePeriod": "2m"})).await;
        stage.order(|orders| orders.promised_ends = 2);
        let began = stage.now();
        stage.delete_claim("solo").await;
        let expected = "False TerminationGracePeriodElapsed: TerminationGracePeriodElapsed";
        stage.until_condition("solo", "VolumesDetached", expected).await;
        let waited = (stage.now() - began).as_secs();
        assert!((119..=123).contains(&waited), "waited {waited} s");
        stage.until_claim_gone("solo").await;
    });
}
