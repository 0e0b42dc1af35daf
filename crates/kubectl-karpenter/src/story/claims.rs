//! NodeClaims as the story follows them: bought, joined, ready, going, gone; and what that costs.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{CapacityType, Price, labels};
use serde_json::Value;
use sim::Change;

use super::news::{Joined, Launched, Machine, News, Removed, Removing, to_dollars};
use super::offers::{Offer, PriceBook};
use super::pods::Pods;
use super::read::{is_deleting, label, text, true_condition};

/// A claim that is there.
#[derive(Debug, Default)]
struct Claim {
    pool: String,
    node: Option<String>,
    decided: Option<Offer>,
    launched: Option<Duration>,
    /// When its instance began to end: from then on it costs nothing.
    ended: Option<Duration>,
    price: Option<Price>,
    is_registered: bool,
    is_initialized: bool,
    is_going: bool,
}

/// What instances used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Claims whose instance was bought.
    pub(crate) launched: usize,
    /// How long instances ran.
    pub(crate) time: Duration,
    /// What that cost, in dollars.
    pub(crate) cost: f64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.launched += other.launched;
        self.time += other.time;
        self.cost += other.cost;
    }
}

/// All claims, and what those used that are gone.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    claims: BTreeMap<String, Claim>,
    gone: Usage,
}

/// What is needed to understand a claim.
pub(crate) struct Surroundings<'a> {
    pub(crate) pods: &'a Pods,
    pub(crate) prices: &'a PriceBook,
}

impl Claims {
    /// Takes a change in. `decide` tells for a new claim which way to buy it the plan named.
    pub(crate) fn change(
        &mut self,
        at: Duration,
        (name, change, object): (&str, Change, &Value),
        around: &Surroundings<'_>,
        decide: impl FnOnce(&str, &Value) -> Option<Offer>,
    ) -> Vec<News> {
        let pool = label(object, labels::NODE_POOL).unwrap_or_default();
        let claim = self.claims.entry(name.to_owned()).or_insert_with(|| Claim {
            pool: pool.to_owned(),
            decided: decide(pool, object),
            ..Claim::default()
        });
        claim.node = text(object, "/status/nodeName").map(str::to_owned).or_else(|| claim.node.take());
        let mut news = Vec::new();
        if claim.launched.is_none() && true_condition(object, "Launched").is_some() {
            claim.launched = Some(at);
            news.extend(claim.bought(name, object, around.prices));
        }
        if !claim.is_registered && true_condition(object, "Registered").is_some() {
            claim.is_registered = true;
            news.push(News::Registered(claim.joined(name, at)));
        }
        if !claim.is_initialized && true_condition(object, "Initialized").is_some() {
            claim.is_initialized = true;
            news.push(News::Initialized(claim.joined(name, at)));
        }
        if !claim.is_going && is_deleting(object) {
            claim.is_going = true;
            let pods = claim.node.as_ref().map(|node| around.pods.on(node));
            let reason = (pods == Some(0)).then(|| "empty".to_owned());
            let (pool, machines, pods) = (claim.pool.clone(), claim.machines(name), pods.unwrap_or_default());
            news.push(News::Removing(Removing { pool, machines, pods, reason }));
        }
        if claim.ended.is_none() && true_condition(object, "InstanceTerminating").is_some() {
            claim.ended = Some(at);
        }
        if change == Change::Deleted {
            news.extend(self.remove(name, at));
        }
        news
    }

    fn remove(&mut self, name: &str, at: Duration) -> Option<News> {
        let claim = self.claims.remove(name)?;
        let used = claim.usage(at);
        self.gone.add(used);
        let (pool, machines) = (claim.pool.clone(), claim.machines(name));
        Some(News::Removed(Removed { pool, machines, used: used.time, cost_usd: to_dollars(used.cost) }))
    }

    /// The pool of the claim that a node belongs to, unless the claim is going.
    pub(crate) fn pool_of_node(&self, node: &str) -> Option<&str> {
        let claim = self.claims.values().find(|claim| claim.node.as_deref() == Some(node) && !claim.is_going)?;
        Some(&claim.pool)
    }

    /// The nodes of claims that are there.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &str> {
        self.claims.values().filter_map(|claim| claim.node.as_deref())
    }

    /// How many claims are there.
    pub(crate) fn count(&self) -> usize {
        self.claims.len()
    }

    /// What all instances used until now.
    pub(crate) fn usage(&self, now: Duration) -> Usage {
        let mut usage = self.gone;
        self.claims.values().for_each(|claim| usage.add(claim.usage(now)));
        usage
    }
}

impl Claim {
    fn machines(&self, name: &str) -> Vec<Machine> {
        vec![Machine { claim: name.to_owned(), node: self.node.clone() }]
    }

    fn joined(&self, name: &str, at: Duration) -> Joined {
        let after = at.saturating_sub(self.launched.unwrap_or(at));
        Joined { pool: self.pool.clone(), machines: self.machines(name), after }
    }

    fn bought(&mut self, name: &str, object: &Value, prices: &PriceBook) -> Option<News> {
        let instance_type = label(object, labels::INSTANCE_TYPE)?;
        let zone = label(object, labels::ZONE).unwrap_or_default();
        let capacity_type =
            label(object, labels::CAPACITY_TYPE).and_then(CapacityType::parse).unwrap_or(CapacityType::OnDemand);
        self.price = prices.price(&self.pool, instance_type, zone, capacity_type);
        let (instance_type, zone) = (instance_type.to_owned(), zone.to_owned());
        let bought = Offer { instance_type, zone, capacity_type, price: self.price };
        // Zones at the same price are as good as each other.
        let worth = |offer: &Offer| (offer.instance_type.clone(), offer.capacity_type, offer.price);
        let as_decided = self.decided.as_ref().map(|decided| worth(decided) == worth(&bought));
        Some(News::Launched(Launched { pool: self.pool.clone(), claims: vec![name.to_owned()], bought, as_decided }))
    }

    fn usage(&self, now: Duration) -> Usage {
        let Some(launched) = self.launched else { return Usage::default() };
        let time = self.ended.unwrap_or(now).saturating_sub(launched);
        let per_hour = self.price.map_or(0.0, Price::dollars);
        Usage { launched: 1, time, cost: per_hour * time.as_secs_f64() / 3600.0 }
    }
}
