//! Changes without end: rollouts, growth and shrinkage, bursts, and news of pods that go on running.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use sim::{Hands, ObjectKey};

use super::cluster::{Workload, burst_name};
use super::ledger::Ledger;
use super::settings::LoadSettings;
use crate::chance::Chance;
use crate::world::{World, accounts, sleep_until};

/// The part of all changes, in tenths, that rollouts should make; the rest is news of running pods and bursts.
const ROLLOUT_TENTHS: u64 = 6;
/// Changes in the life of a pod that is replaced: made, bound, running, marked, ended, gone; and now and then given up by
/// the scheduler first.
const CHANGES_PER_POD: u64 = 6;
/// A burst lasts this long, and so does the pause after it: long enough for its nodes to be found empty and to go.
const BURST: Duration = Duration::from_secs(60);
/// Every other rollout also asks for this many more pods in a hundred, the next one takes them back.
const GROWTH_PERCENT: usize = 4;
const TICK: Duration = Duration::from_secs(1);

/// How far the changes are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Seconds of virtual time since the beginning.
    seconds: u64,
    /// Rollouts begun.
    rollouts: u64,
    /// Changes that the next rollout may make.
    due: u64,
    /// Changes asked for and not seen yet; negative if there were more than wanted.
    owed: i64,
}

/// Makes changes on a world.
pub(crate) struct Churn<'a> {
    world: &'a World,
    settings: &'a LoadSettings,
    workloads: &'a [Workload],
    ledger: Ledger,
    hands: Hands,
    chance: Chance,
    progress: &'a mut Progress,
}

impl<'a> Churn<'a> {
    /// Goes on where the changes stopped.
    pub(crate) fn new(
        world: &'a World,
        settings: &'a LoadSettings,
        workloads: &'a [Workload],
        ledger: Ledger,
        progress: &'a mut Progress,
    ) -> Self {
        let hands = world.server().act(accounts::ADMINISTRATOR);
        let chance = Chance::of(settings.seed, &format!("changes from second {}", progress.seconds));
        Self { world, settings, workloads, ledger, hands, chance, progress }
    }

    /// Makes changes for some virtual time.
    pub(crate) async fn go_on(&mut self, length: Duration) -> Result<()> {
        let end = self.world.clock().elapsed() + length;
        let mut before = self.ledger.pod_changes();
        while self.world.clock().elapsed() < end {
            let next = self.world.clock().elapsed() + TICK;
            self.roll_out()?;
            self.burst()?;
            self.report_running()?;
            self.progress.seconds += 1;
            sleep_until(self.world.clock(), next.min(end)).await;
            self.ledger.hear_plans(self.world.plans());
            let seen = self.ledger.pod_changes();
            let wanted = i64::try_from(self.settings.changes).unwrap_or(i64::MAX);
            // What is missing or too much is made up for in the next seconds; not more than ten of them.
            let difference = wanted - i64::try_from(seen - before).unwrap_or(i64::MAX);
            self.progress.owed = (self.progress.owed + difference).clamp(-10 * wanted, 10 * wanted);
            before = seen;
        }
        Ok(())
    }

    /// Begins a rollout whenever the one before has had the changes that it takes.
    fn roll_out(&mut self) -> Result<()> {
        self.progress.due += self.settings.changes * ROLLOUT_TENTHS / 10;
        let count = u64::try_from(self.workloads.len()).unwrap_or(u64::MAX).max(1);
        loop {
            let turn = usize::try_from(self.progress.rollouts % count).unwrap_or_default();
            let Some(workload) = self.workloads.get(turn) else { return Ok(()) };
            let takes = u64::try_from(workload.replicas).unwrap_or(u64::MAX) * CHANGES_PER_POD;
            if self.progress.due < takes {
                return Ok(());
            }
            self.progress.due -= takes;
            self.progress.rollouts += 1;
            let round = self.progress.rollouts / count;
            let more = if (round + self.progress.rollouts).is_multiple_of(2) { GROWTH_PERCENT } else { 0 };
            let patch = json!({"spec": {
                "replicas": workload.replicas + workload.replicas * more / 100,
                "template": {"metadata": {"annotations": {"load.karpenter.sh/rollout": self.progress.rollouts.to_string()}}},
            }});
            let key = ObjectKey::new("apps", "deployments", Some(&workload.namespace), &workload.name);
            self.hands.patch_object(&key, None, &patch)?;
        }
    }

    /// Bursts come and go in turns.
    fn burst(&self) -> Result<()> {
        let pools = u64::try_from(self.settings.burst_pools()).unwrap_or(1);
        let length = BURST.as_secs();
        let stagger = length * 2 / pools;
        for pool in 0..pools {
            let phase = (self.progress.seconds + pool * stagger) % (length * 2);
            let replicas = match phase {
                0 => self.settings.burst_pods(),
                phase if phase == length => 0,
                _ => continue,
            };
            let namespace = burst_name(usize::try_from(pool).unwrap_or_default());
            let key = ObjectKey::new("apps", "deployments", Some(&namespace), "burst");
            self.hands.patch_object(&key, None, &json!({"spec": {"replicas": replicas}}))?;
        }
        Ok(())
    }

    /// News of pods that go on running: what is missing of the changes of a second.
    fn report_running(&mut self) -> Result<()> {
        let wanted = i64::try_from(self.settings.changes).unwrap_or(i64::MAX);
        let others = wanted * i64::try_from(ROLLOUT_TENTHS).unwrap_or_default() / 10;
        let count = (wanted - others + self.progress.owed).clamp(0, 2 * wanted);
        for _ in 0..count {
            let Some((namespace, name)) = self.ledger.draw(&self.chance) else { return Ok(()) };
            let key = ObjectKey::new("", "pods", Some(&namespace), &name);
            // A container that was started again, as often as the seconds that passed: always another number.
            let statuses = json!([{
                "name": "main", "image": "registry.k8s.io/pause:3.10", "imageID": "", "ready": true, "started": true,
                "restartCount": self.progress.seconds, "state": {"running": {}},
            }]);
            let patch = json!({"status": {"containerStatuses": statuses}});
            // A pod that went a moment ago has no news.
            let _ = self.hands.patch_object(&key, Some("status"), &patch);
        }
        Ok(())
    }
}
