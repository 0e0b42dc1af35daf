//! What was seen, and what of it must never be.

use std::collections::{BTreeMap, BTreeSet};

use api::{NodeClaim, NodePool, ResourceList};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::{Selector, SelectorExt};
use kube::{Resource, ResourceExt};

use super::{Identity, Versions, identity};

/// What a watch shows.
#[derive(Clone, Debug)]
pub enum Sight<K> {
    /// An object as it is now.
    Is(K),
    /// The last state of an object that is gone.
    Gone(K),
    /// A list ended; whatever was not in it is gone.
    Only(BTreeSet<Identity>),
}

/// Everything that was seen, as it was seen last, and every rule that was broken on the way.
#[derive(Debug, Default)]
pub struct Ledger {
    /// How many kinds were listed once.
    pub(super) listed: usize,
    pub(super) pods_seen: Versions,
    pub(super) claims_seen: Versions,
    pub(super) nodes_seen: Versions,
    pods: BTreeMap<Identity, Pod>,
    budgets: BTreeMap<Identity, PodDisruptionBudget>,
    pools: BTreeMap<Identity, NodePool>,
    claims: BTreeMap<Identity, Machine>,
    nodes: BTreeMap<Identity, Machine>,
    claims_ever: BTreeSet<String>,
    /// The identities of the nodes that each claim ever had.
    nodes_ever: BTreeMap<String, BTreeSet<String>>,
    /// The identities of nodes that let pods stay, once they did.
    open: BTreeSet<String>,
    broken: Vec<String>,
}

/// What a claim or a node takes of its pool's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Machine {
    pool: String,
    /// Thousandths of each resource.
    has: BTreeMap<String, i128>,
}

impl Ledger {
    /// The rules that were broken, each in words.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// The names of all claims that ever were.
    pub fn claims_ever(&self) -> &BTreeSet<String> {
        &self.claims_ever
    }

    /// A pod that was healthy and now goes must leave enough healthy ones behind, whoever ended it.
    pub fn see_pod(&mut self, sight: Sight<Pod>) {
        let before = fold(&mut self.pods, &mut self.pods_seen, sight, Clone::clone);
        for (key, before) in before {
            let stays = |now: &Pod| now.uid() == before.uid() && now.metadata.deletion_timestamp.is_none();
            if is_healthy(&before) && !self.pods.get(&key).is_some_and(stays) {
                let cause = self.pods.get(&key).filter(|now| now.uid() == before.uid()).and_then(cause);
                self.judge_end(&key, &before, cause.as_deref().unwrap_or("no cause told"));
            }
        }
    }

    /// A budget counts from the moment it is seen.
    pub fn see_budget(&mut self, sight: Sight<PodDisruptionBudget>) {
        fold(&mut self.budgets, &mut Versions::new(), sight, Clone::clone);
    }

    /// A pool's limits count from the moment they are seen.
    pub fn see_pool(&mut self, sight: Sight<NodePool>) {
        fold(&mut self.pools, &mut Versions::new(), sight, Clone::clone);
    }

    /// Claims must stay within their pool's limits as far as they say what they have.
    pub fn see_claim(&mut self, sight: Sight<NodeClaim>) {
        if let Sight::Is(claim) | Sight::Gone(claim) = &sight {
            self.claims_ever.insert(claim.name_any());
        }
        let capacity = |claim: &NodeClaim| claim.status.as_ref().and_then(|status| status.capacity.clone());
        let grown = grown(&mut self.claims, &mut self.claims_seen, sight, |claim| machine(claim, capacity(claim)));
        self.judge_limits("claims", &grown);
    }

    /// Nodes must stay within their pool's limits, and a claim has one. A node that once let pods stay must not drive them
    /// off: that asks no budget.
    pub fn see_node(&mut self, sight: Sight<Node>) {
        if let Sight::Is(node) = &sight {
            let uid = node.uid().unwrap_or_default();
            if !drives_off(node) {
                self.open.insert(uid);
            } else if self.open.contains(&uid) {
                self.broken.push(format!("node `{}` drives pods off again", node.name_any()));
            }
        }
        if let Sight::Is(node) | Sight::Gone(node) = &sight
            && let Some(claim) = claim_of(node)
        {
            let nodes = self.nodes_ever.entry(claim.clone()).or_default();
            if nodes.insert(node.uid().unwrap_or_default()) && nodes.len() > 1 {
                self.broken.push(format!("claim `{claim}` got another node, `{}`", node.name_any()));
            }
        }
        let capacity = |node: &Node| node.status.as_ref().and_then(|status| status.capacity.clone());
        let grown = grown(&mut self.nodes, &mut self.nodes_seen, sight, |node| machine(node, capacity(node)));
        self.judge_limits("nodes", &grown);
    }

    fn judge_end(&mut self, key: &Identity, pod: &Pod, cause: &str) {
        let (namespace, name) = key;
        for ((_, budget_name), budget) in self.budgets.iter().filter(|((own, _), _)| own == namespace) {
            let Some(demanded) = demanded(budget).filter(|_| selects(budget, pod)) else { continue };
            let others = self.pods.iter().filter(|((own, _), _)| own == namespace).map(|(_, other)| other);
            let healthy = others.filter(|other| selects(budget, other) && is_healthy(other)).count();
            if i64::try_from(healthy).unwrap_or(i64::MAX) < demanded {
                self.broken.push(format!(
                    "pod `{name}` went ({cause}) and left {healthy} healthy pods where budget `{budget_name}` demands \
                     {demanded}"
                ));
            }
        }
    }

    /// Judges pools of which something has become more. Limits that a person makes smaller are nobody's fault.
    fn judge_limits(&mut self, what: &str, grown: &BTreeSet<String>) {
        let machines = if what == "claims" { &self.claims } else { &self.nodes };
        for pool in self.pools.values().filter(|pool| grown.contains(&pool.name_any())) {
            let name = pool.name_any();
            let own: Vec<&Machine> = machines.values().filter(|machine| machine.pool == name).collect();
            for (resource, limit) in amounts(pool.spec.limits.as_ref()) {
                let used: i128 = own.iter().filter_map(|machine| machine.has.get(&resource)).sum();
                if used > limit {
                    self.broken.push(format!("{what} of pool `{name}` have {used}m {resource} of {limit}m"));
                }
            }
        }
    }
}

/// Folds a sight; the objects it changed or removed, as they were before.
fn fold<K: Resource<DynamicType = ()>, V: Clone>(
    known: &mut BTreeMap<Identity, V>,
    versions: &mut Versions,
    sight: Sight<K>,
    keep: impl Fn(&K) -> V,
) -> Vec<(Identity, V)> {
    match sight {
        Sight::Is(object) => {
            let key = identity(&object);
            versions.insert(key.clone(), object.resource_version().unwrap_or_default());
            let before = known.insert(key.clone(), keep(&object));
            before.map(|before| (key, before)).into_iter().collect()
        }
        Sight::Gone(object) => {
            let key = identity(&object);
            versions.remove(&key);
            known.remove(&key).map(|before| (key, before)).into_iter().collect()
        }
        Sight::Only(listed) => {
            versions.retain(|key, _| listed.contains(key));
            known.extract_if(.., |key, _| !listed.contains(key)).collect()
        }
    }
}

/// Folds a sight of claims or nodes; the pools of which there is more than before.
fn grown<K: Resource<DynamicType = ()>>(
    known: &mut BTreeMap<Identity, Machine>,
    versions: &mut Versions,
    sight: Sight<K>,
    keep: impl Fn(&K) -> Machine,
) -> BTreeSet<String> {
    let Sight::Is(object) = &sight else {
        fold(known, versions, sight, keep);
        return BTreeSet::new();
    };
    let now = keep(object);
    let before = fold(known, versions, sight, keep).pop().map(|(_, before)| before).unwrap_or_default();
    let is_more = now.has.iter().any(|(resource, amount)| before.has.get(resource).is_none_or(|old| amount > old));
    is_more.then_some(now.pool).into_iter().collect()
}

fn machine<K: Resource<DynamicType = ()>>(object: &K, capacity: Option<ResourceList>) -> Machine {
    let mut has = amounts(capacity.as_ref());
    if !has.is_empty() {
        // Limits may count nodes, too.
        has.insert("nodes".to_owned(), 1000);
    }
    Machine { pool: object.labels().get("karpenter.sh/nodepool").cloned().unwrap_or_default(), has }
}

/// The claim for which the KWOK provider made a node: it names the host after it.
fn claim_of(node: &Node) -> Option<String> {
    let id = node.spec.as_ref()?.provider_id.as_deref()?;
    node.labels().get("kubernetes.io/hostname").filter(|_| id.starts_with("kwok://")).cloned()
}

/// Whether a taint of ours makes the controller manager end the pods on a node.
fn drives_off(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.effect == "NoExecute" && taint.key.starts_with("karpenter.sh/"))
}

/// Why a pod goes, as whoever ends it tells in its status.
fn cause(pod: &Pod) -> Option<String> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|found| found.type_ == "DisruptionTarget")?.reason.clone()
}

fn is_healthy(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_ready = conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == "True");
    is_ready && pod.metadata.deletion_timestamp.is_none()
}

fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    selector.and_then(|selector| Selector::try_from(selector).ok()).is_some_and(|wanted| wanted.matches(pod.labels()))
}

/// How many healthy pods a budget demands; nothing as long as nobody has counted the pods that it expects.
fn demanded(budget: &PodDisruptionBudget) -> Option<i64> {
    let spec = budget.spec.as_ref()?;
    let expected = budget.status.as_ref().and_then(|status| status.expected_pods).map(i64::from);
    match (&spec.min_available, &spec.max_unavailable) {
        (Some(IntOrString::Int(count)), _) => Some(i64::from(*count)),
        (Some(share), _) => part(share, expected?),
        (None, Some(most)) => Some((expected? - part(most, expected?)?).max(0)),
        (None, None) => None,
    }
}

/// A number of pods, or a share of all, rounded up.
fn part(share: &IntOrString, all: i64) -> Option<i64> {
    match share {
        IntOrString::Int(count) => Some(i64::from(*count)),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            Some((all * percent + 99) / 100)
        }
    }
}

fn amounts(list: Option<&ResourceList>) -> BTreeMap<String, i128> {
    let amounts = list.into_iter().flatten().filter_map(|(name, amount)| Some((name.clone(), thousandths(&amount.0)?)));
    amounts.collect()
}

/// A quantity in thousandths, as far as it can be told in whole ones.
fn thousandths(text: &str) -> Option<i128> {
    const SUFFIXES: [(&str, i128); 11] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("k", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("", 1),
    ];
    if let Some(number) = text.strip_suffix('m') {
        return number.parse().ok();
    }
    let (number, factor) =
        SUFFIXES.into_iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = format!("{fraction:0<3}");
    let fraction: i128 = fraction.get(..3)?.parse().ok()?;
    Some((whole.parse::<i128>().ok()? * 1000 + fraction) * factor)
}

#[cfg(test)]
#[path = "judgement_tests.rs"]
mod tests;
