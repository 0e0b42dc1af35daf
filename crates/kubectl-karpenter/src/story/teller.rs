//! The fold itself: one value that has seen everything so far.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{Plan, PodKey, Snapshot, labels};
use serde_json::Value;
use sim::{Change, StoreEvent};

use super::claims::{Claims, Surroundings};
use super::cluster::{Wishes, warning};
use super::decisions::Decisions;
use super::moments::Moments;
use super::news::{Line, News, Nodes, to_dollars, to_hours, to_seconds};
use super::offers::PriceBook;
use super::pods::Pods;
use super::read::label;
use crate::summary::{PodWaitSeconds, Summary, Totals, percentile};

/// Sees what happens and tells it, line by line.
#[derive(Debug, Default)]
pub struct Teller {
    pods: Pods,
    claims: Claims,
    wishes: Wishes,
    decisions: Decisions,
    prices: PriceBook,
    /// Nodes that carry a pool's label.
    nodes: BTreeSet<String>,
    moments: Moments,
}

impl Teller {
    /// An object changed.
    pub fn change(&mut self, at: Duration, event: &StoreEvent) {
        let key = &event.key;
        let is_followed = matches!(key.resource.as_str(), "pods" | "nodes" | "nodeclaims" | "events");
        if !is_followed && !Wishes::are_in(key) {
            return;
        }
        let Ok(object) = serde_json::from_slice::<Value>(&event.object) else { return };
        if let Some(news) = self.wishes.change(key, event.change, &object) {
            self.moments.add(at, news);
        }
        match (key.group.as_str(), key.resource.as_str()) {
            ("", "pods") => {
                let pod = PodKey::new(key.namespace.as_deref().unwrap_or_default(), key.name.as_str());
                self.pod(at, &pod, event.change, &object);
            }
            ("", "nodes") => self.node(&key.name, event.change, &object),
            ("karpenter.sh", "nodeclaims") => {
                let around = Surroundings { pods: &self.pods, prices: &self.prices };
                let decisions = &mut self.decisions;
                let decide = |pool: &str, claim: &Value| decisions.claim_seen(pool, claim);
                let news = self.claims.change(at, (&key.name, event.change, &object), &around, decide);
                news.into_iter().for_each(|news| self.moments.add(at, news));
            }
            ("", "events") if event.change == Change::Added => {
                warning(&object).into_iter().for_each(|news| self.moments.add(at, news));
            }
            _ => {}
        }
    }

    fn pod(&mut self, at: Duration, pod: &PodKey, change: Change, object: &Value) {
        let seen = self.pods.change(at, pod, change, object);
        if seen.is_settled {
            self.decisions.forget(pod);
        }
        seen.news.into_iter().for_each(|news| self.moments.add(at, news));
        let Some(node) = seen.left_empty else { return };
        if let Some(pool) = self.claims.pool_of_node(&node) {
            let news = News::Emptied(Nodes { pool: pool.to_owned(), nodes: vec![node] });
            self.moments.add(at, news);
        }
    }

    fn node(&mut self, name: &str, change: Change, object: &Value) {
        if change == Change::Deleted || label(object, labels::NODE_POOL).is_none() {
            self.nodes.remove(name);
        } else {
            self.nodes.insert(name.to_owned());
        }
    }

    /// A plan was made.
    pub fn plan(&mut self, at: Duration, snapshot: &Snapshot, plan: &Plan) {
        self.prices.learn(&snapshot.pools);
        for news in self.decisions.plan(plan, &self.pods, &self.prices) {
            self.moments.add(at, news);
        }
    }

    /// Something happened that neither an object nor a plan shows.
    pub fn announce(&mut self, at: Duration, news: News) {
        self.moments.add(at, news);
    }

    /// Lines that are complete by now, in the order of time.
    pub fn told(&mut self, now: Duration) -> Vec<Line> {
        self.moments.closed(now)
    }

    /// When the next line will be complete.
    pub fn next_told(&self) -> Option<Duration> {
        self.moments.next_closing()
    }

    /// All lines that are left.
    pub fn finish(&mut self) -> Vec<Line> {
        self.moments.finish()
    }

    /// How it stands.
    pub fn summary(&self, now: Duration) -> Summary {
        let usage = self.claims.usage(now);
        let waits = self.pods.waits(now);
        let claimed: BTreeSet<&str> = self.claims.nodes().collect();
        let orphans = self.nodes.iter().filter(|node| !claimed.contains(node.as_str())).count();
        let wait = |rank: usize| to_seconds(percentile(&waits, rank));
        Summary {
            pending_pods: self.pods.pending(),
            nodes: self.claims.count() + orphans,
            node_hours: to_hours(usage.time),
            cost_usd: to_dollars(usage.cost),
            pod_wait_seconds: PodWaitSeconds { p50: wait(50), p99: wait(99) },
            totals: Totals { bound: self.pods.bound(), launched: usage.launched, elapsed: now },
        }
    }
}
