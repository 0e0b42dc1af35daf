//! A controller as a process: when it is ready, and what it leaves behind when it stops.

use std::sync::Arc;
use std::time::Duration;

use controllers::process::missing_resources;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use world::{
    Call, CallFault, CloudKind, Controller, ControllerSettings, Meddler, World, WorldSettings, run_in_virtual_time,
    sleep_until,
};

/// Pods can never be listed.
struct PodsAreSilent;

impl Meddler for PodsAreSilent {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        (call.effect.to_string() == "list pods").then_some(CallFault::Fails)
    }
}

async fn told(world: &World, controller: &Controller) -> String {
    let readiness = controller.readiness();
    readiness.resources_looked_up(missing_resources(&world.client()).await.unwrap());
    readiness.check().map_or_else(|why| why.to_string(), |()| "ready".to_owned())
}

/// OBS-08: a process is ready once its resources are there and it has listed everything, or while it waits for another
/// that leads; a leader that does not know the cluster is not.
#[test]
fn a_process_is_ready_when_it_knows_the_cluster_or_waits() {
    run_in_virtual_time(17, async {
        let world = World::start(WorldSettings::new(17, CloudKind::Kwok));
        let settings = ControllerSettings::default();
        let blind = ControllerSettings { meddler: Some(Arc::new(PodsAreSilent)), ..settings.clone() };
        let lonely = blind.clone().with("DISABLE_LEADER_ELECTION", "true");
        let lonely = world.start_controller("lonely", &lonely).unwrap();
        let leader = world.start_controller("leader", &settings).unwrap();
        assert_eq!(
            leader.readiness().check().unwrap_err().to_string(),
            "resources of karpenter.sh/v1 not looked up yet"
        );
        sleep_until(world.clock(), Duration::from_secs(10)).await;
        let standby = world.start_controller("standby", &blind).unwrap();
        sleep_until(world.clock(), Duration::from_secs(20)).await;
        assert_eq!(told(&world, &lonely).await, "caches not synced");
        assert_eq!(told(&world, &leader).await, "ready");
        assert_eq!(told(&world, &standby).await, "ready", "it may take over, though it knows nothing yet");
        leader.kill();
        sleep_until(world.clock(), Duration::from_secs(60)).await;
        assert_eq!(told(&world, &standby).await, "caches not synced", "now it leads, and still knows nothing");
    })
    .unwrap();
}

/// Who holds the Lease of this name.
async fn holder(world: &World, namespace: &str, name: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(world.client(), namespace);
    leases
        .get_opt(name)
        .await
        .unwrap()
        .map(|lease| lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default())
}

/// OBS-15: the Lease has the name that is configured, in the namespace of the process unless another is; whoever stops in
/// order gives it back.
#[test]
fn a_process_that_stops_gives_its_lease_back() {
    let table = [
        (&[][..], "kube-system", "karpenter-leader-election"),
        (&[("LEADER_ELECTION_NAME", "other")][..], "kube-system", "other"),
        (&[("LEADER_ELECTION_NAMESPACE", "default")][..], "default", "karpenter-leader-election"),
    ];
    for (environment, namespace, name) in table {
        run_in_virtual_time(18, async {
            let world = World::start(WorldSettings::new(18, CloudKind::Kwok));
            let mut settings = ControllerSettings::default();
            for (variable, value) in environment {
                settings = settings.with(variable, value);
            }
            let mut controller = world.start_controller("alpha", &settings).unwrap();
            sleep_until(world.clock(), Duration::from_secs(10)).await;
            let held = holder(&world, namespace, name).await.unwrap();
            assert!(held.starts_with("alpha_") && held.len() > "alpha_".len(), "{held}");
            controller.stop();
            controller.ended().await;
            assert_eq!(holder(&world, namespace, name).await.as_deref(), Some(""), "{namespace} {name}");
        })
        .unwrap();
    }
}
