//! What befalls machines and processes at a time: killed, interrupted, silenced, sold out.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use sim_loops::Order;

use jiff::SignedDuration;

use crate::chance::Chance;
use crate::cloud::Boots;
use crate::fault::{Blow, Fault, FaultPlan};
use crate::world::{World, sleep_until};

/// How long a blow lasts.
const BLOW: Duration = Duration::from_secs(300);

/// Strikes a plan's blows at their times.
pub struct Blows<'a> {
    world: &'a World,
    chance: Chance,
    processes: &'a [&'a str],
}

impl<'a> Blows<'a> {
    /// Blows for a world in which these processes run.
    pub fn new(world: &'a World, processes: &'a [&'a str]) -> Self {
        Self { world, chance: Chance::of(world.settings.seed, "blows"), processes }
    }

    /// Waits for the time of each blow and strikes it; how many of each had something to strike.
    pub async fn strike_all(&self, plan: &FaultPlan) -> BTreeMap<&'static str, u64> {
        let blows = plan.faults.iter().filter_map(|fault| match fault {
            Fault::Blow { at, blow } => Some((*at, *blow)),
            Fault::Call { .. } => None,
        });
        let struck = futures::future::join_all(blows.map(|(at, blow)| async move {
            sleep_until(self.world.clock(), at).await;
            (blow, self.strike(blow).await)
        }));
        let mut hits = BTreeMap::new();
        for (blow, _) in struck.await.into_iter().filter(|(_, hit)| *hit) {
            *hits.entry(blow.name()).or_insert(0) += 1;
        }
        hits
    }

    /// Whether there was something to strike.
    async fn strike(&self, blow: Blow) -> bool {
        match blow {
            Blow::Kill => {
                let victim = self.chance.choose(self.processes).copied().unwrap_or_default();
                self.world.processes.kill(victim);
                true
            }
            Blow::Compaction => {
                self.world.compact();
                true
            }
            Blow::Silence => self.silence().await,
            Blow::ClockAhead => self.set_clock(SignedDuration::from_hours(3)).await,
            Blow::ClockBehind => self.set_clock(SignedDuration::from_mins(-5)).await,
            Blow::Interruption | Blow::Crash | Blow::SoldOut | Blow::NeverJoins | Blow::JoinsLate => {
                self.strike_cloud(blow).await
            }
        }
    }

    async fn strike_cloud(&self, blow: Blow) -> bool {
        let Some(aws) = self.world.aws() else { return false };
        match blow {
            Blow::Interruption => aws.interrupt_any(&self.chance),
            Blow::Crash => aws.crash_any(&self.chance),
            Blow::SoldOut => {
                aws.set_sold_out(self.world.clock().timestamp() + BLOW);
                true
            }
            Blow::NeverJoins | Blow::JoinsLate => {
                aws.set_boots(if blow == Blow::NeverJoins { Boots::Never } else { Boots::Late });
                tokio::time::sleep(BLOW).await;
                aws.set_boots(Boots::Normally);
                true
            }
            Blow::Kill | Blow::Compaction | Blow::Silence | Blow::ClockAhead | Blow::ClockBehind => false,
        }
    }

    /// One clock is wrong for a while, then somebody sets it right.
    async fn set_clock(&self, ahead: SignedDuration) -> bool {
        let victim = self.chance.choose(self.processes).copied().unwrap_or_default();
        self.world.wall_clocks().set_ahead(victim, ahead);
        tokio::time::sleep(BLOW).await;
        self.world.wall_clocks().set_ahead(victim, SignedDuration::ZERO);
        true
    }

    async fn silence(&self) -> bool {
        let nodes: Api<Node> = Api::all(self.world.client());
        let ours = ListParams::default().labels("karpenter.sh/nodepool");
        let Ok(listed) = nodes.list(&ours).await else { return false };
        let names: Vec<String> = listed.items.iter().map(ResourceExt::name_any).collect();
        let Some(name) = self.chance.choose(&names) else { return false };
        self.world.order(Order::Silence(name.clone()));
        tokio::time::sleep(BLOW).await;
        self.world.order(Order::Speak(name.clone()));
        true
    }
}
