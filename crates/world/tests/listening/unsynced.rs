//! What a controller says while it does not know its cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use controllers::process::{LogLevel, LogSettings, Outputs, json_layer};
use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt;
use world::{
    Call, CallFault, CloudKind, ControllerSettings, Meddler, World, WorldSettings, run_in_virtual_time, sleep_until,
};

/// Pods can never be listed.
struct PodsAreSilent;

impl Meddler for PodsAreSilent {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        (call.effect.to_string() == "list pods").then_some(CallFault::Fails)
    }
}

/// A log that can be read while it is written.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// OBS-14: a state that stays incomplete is logged after half a minute and then every ten seconds, and told in a metric.
#[test]
fn an_incomplete_state_is_told() {
    let log = Log::default();
    let settings = LogSettings { level: LogLevel::Info, commit: "c".to_owned(), own_crates: &["controllers"] };
    let layer = json_layer(settings, Outputs::to_writer(log.clone()), || jiff::Timestamp::UNIX_EPOCH);
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    let scrape = run_in_virtual_time(14, async {
        let world = World::start(WorldSettings::new(14, CloudKind::Kwok));
        let settings = ControllerSettings { meddler: Some(Arc::new(PodsAreSilent)), ..ControllerSettings::default() };
        let settings = settings.with("DISABLE_LEADER_ELECTION", "true");
        let controller = world.start_controller("alpha", &settings).unwrap();
        sleep_until(world.clock(), Duration::from_secs(55)).await;
        controller.metrics()
    })
    .unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let complaints: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["message"] == "cluster is waiting on sync for extended duration")
        .collect();
    assert_eq!(complaints.len(), 3, "{log}");
    assert_eq!((&complaints[0]["kinds"], &complaints[0]["seconds"]), (&json!("Pod"), &json!(30)));
    let told = |name: &str| -> f64 {
        let mut values = scrape.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        values.next().unwrap_or_else(|| panic!("no {name} in {scrape}"))
    };
    assert!(told("karpenter_cluster_state_unsynced_time_seconds") > 50.0);
    assert_eq!(told("karpenter_cluster_state_synced"), 0.0);
}
