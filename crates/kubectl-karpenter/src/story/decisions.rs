//! Recorded plans as the story tells them: what was decided, what it was chosen over, and who got nothing.

use std::collections::{BTreeMap, BTreeSet};

use model::{PlaceId, Plan, PlannedClaim, PodKey, PoolRefusal, format_quantity, labels};
use serde_json::Value;

use super::news::{Barren, Decided, Moved, News, Refused};
use super::offers::{Offer, PriceBook, alternatives};
use super::pods::Pods;
use super::read::full_name;

/// What was told about a pod that still waits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    /// It gets a node, new or there already.
    Placed,
    /// It gets none, for these reasons.
    Refused(Vec<String>),
}

/// A planned claim that has not been seen yet.
#[derive(Debug)]
struct Expected {
    pool: String,
    types: BTreeSet<String>,
    chosen: Offer,
}

/// What was told, so that a plan which says the same again is no news.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    told: BTreeMap<PodKey, Told>,
    barren: BTreeMap<String, String>,
    expected: Vec<Expected>,
}

/// More claims than a plan makes before they are created; older ones were never made.
const EXPECTED_MAX: usize = 10_000;

impl Decisions {
    /// Tells a plan.
    pub(crate) fn plan(&mut self, plan: &Plan, pods: &Pods, prices: &PriceBook) -> Vec<News> {
        let mut news = Vec::new();
        for claim in &plan.claims {
            news.extend(self.decided(claim, pods, prices));
        }
        for nomination in &plan.nominations {
            let place = match &nomination.place {
                PlaceId::Node(name) => name.to_string(),
                PlaceId::Claim(name) => name.to_string(),
            };
            for pod in &nomination.pods {
                // Pods for which a node was made are nominated to it until they run; that was told already.
                if self.told.insert(pod.clone(), Told::Placed) != Some(Told::Placed) {
                    let (workload, pods) = (pods.workload(pod), vec![name_of(pod)]);
                    news.push(News::Nominated(Moved { workload, pods, place: place.clone() }));
                }
            }
        }
        for unplaced in &plan.unplaced {
            let reasons: Vec<String> = unplaced.refusals.iter().map(ToString::to_string).collect();
            for pod in &unplaced.pods {
                let told = Told::Refused(reasons.clone());
                if self.told.insert(pod.clone(), told.clone()) != Some(told) {
                    let (workload, pods) = (pods.workload(pod), vec![name_of(pod)]);
                    news.push(News::Refused(Refused { workload, pods, reasons: reasons.clone() }));
                }
            }
        }
        news.extend(self.barren(&plan.barren_pools));
        news
    }

    fn decided(&mut self, claim: &PlannedClaim, pods: &Pods, prices: &PriceBook) -> Option<News> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for pod in &claim.pods {
            self.told.insert(pod.clone(), Told::Placed);
            *counts.entry(pods.workload(pod)).or_default() += 1;
        }
        let found = alternatives(prices.pool(&claim.pool)?, claim)?;
        self.expected.push(Expected {
            pool: claim.pool.to_string(),
            types: claim.types.iter().map(ToString::to_string).collect(),
            chosen: found.chosen.clone(),
        });
        let excess = self.expected.len().saturating_sub(EXPECTED_MAX);
        self.expected.drain(..excess);
        let requests = claim.requests.iter().map(|(name, amount)| (name.to_string(), format_quantity(name, amount)));
        Some(News::Decided(Box::new(Decided {
            pool: claim.pool.to_string(),
            nodes: 1,
            pods: counts,
            requests: requests.collect(),
            types: claim.types.len(),
            chosen: found.chosen,
            runner_up: found.runner_up,
            other_capacity_types: found.other_capacity_types,
        })))
    }

    fn barren(&mut self, pools: &[PoolRefusal]) -> Vec<News> {
        let now: BTreeMap<String, String> =
            pools.iter().map(|barren| (barren.pool.to_string(), barren.refusal.to_string())).collect();
        let is_news = |(pool, reason): &(&String, &String)| self.barren.get(*pool) != Some(*reason);
        let told =
            |(pool, reason): (&String, &String)| News::Barren(Barren { pool: pool.clone(), reason: reason.clone() });
        let news = now.iter().filter(is_news).map(told).collect();
        self.barren = now;
        news
    }

    /// The way to buy a claim that the plan named, for a claim that is seen for the first time.
    pub(crate) fn claim_seen(&mut self, pool: &str, claim: &Value) -> Option<Offer> {
        let types = listed_types(claim)?;
        let position = self.expected.iter().position(|expected| expected.pool == pool && expected.types == types)?;
        Some(self.expected.remove(position).chosen)
    }

    /// A pod got a node or is gone: should it wait again, that is news.
    pub(crate) fn forget(&mut self, pod: &PodKey) {
        self.told.remove(pod);
    }
}

fn name_of(pod: &PodKey) -> String {
    full_name(&pod.namespace, &pod.name)
}

/// The instance types that a NodeClaim may become.
fn listed_types(claim: &Value) -> Option<BTreeSet<String>> {
    let requirements = claim.pointer("/spec/requirements")?.as_array()?;
    let key = |requirement: &&Value| requirement.get("key").and_then(Value::as_str) == Some(labels::INSTANCE_TYPE);
    let values = requirements.iter().find(key)?.get("values")?.as_array()?;
    Some(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
