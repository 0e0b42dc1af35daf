//! Static pools: as many nodes as their owner says, whatever the pods want.

mod attempts;
mod decide;

use std::sync::Arc;
use std::time::Duration;

use api::lower::{self, Owner, PodFacts};
use api::{NodeClaim, NodePool, labels};
use cloud::LaunchId;
use futures::future::join_all;
use jiff::Timestamp;
use model::{ClaimName, PoolName, Requirements, ResourceName};
use state::{Cluster, Object};

pub(crate) use attempts::Attempts;
use decide::{Census, Growth, Load, Member};

use crate::context::Context;
use crate::disruption::cost::{DeletionCosts, eviction_cost};
use crate::lifecycle::name_of;
use crate::provisioning::{Defaults, Particulars, from_template, seed_of};
use crate::work::{Next, Outcome, Work};
use crate::write::{self, WriteError};

/// A pool at its limit is looked at this often, should nothing change before.
const AT_LIMIT: Duration = Duration::from_secs(30);
/// Claims made or ended in one pass. Enough for most pools, and few enough to see in between what came of them.
const AT_ONCE: usize = 100;

/// Asks for a look at the size of a pool, if that is ours to keep.
pub(crate) fn wake(context: &Context, name: &PoolName, pool: &NodePool) {
    if context.gates.static_capacity && pool.spec.replicas.is_some() {
        context.request(Work::ScaleUp(name.clone()));
        context.request(Work::ScaleDown(name.clone()));
    }
}

/// Makes the claims that a static pool lacks.
pub(crate) async fn scale_up(context: &Context, name: &PoolName) -> Outcome {
    let Some(fleet) = Fleet::gather(context, name).filter(|fleet| crate::pools::is_ready(&fleet.pool)) else {
        return Ok(Next::OnChange);
    };
    let now = context.now();
    let growth = decide::growth(&fleet.census);
    let is_news = context.notes().growth.entry(name.clone()).or_default().is_at_limit_now(growth == Growth::AtLimit);
    match growth {
        Growth::Enough => {
            let settled = context.notes().growth.get(name).and_then(|attempts| attempts.settled_after(now));
            Ok(settled.map_or(Next::OnChange, Next::After))
        }
        Growth::AtLimit => {
            if is_news {
                tracing::info!(NodePool.name = %name, "nodepool node limit reached");
            }
            Ok(Next::After(AT_LIMIT))
        }
        Growth::Create(count) => {
            if let Some(pause) = context.notes().growth.get(name).and_then(|attempts| attempts.pause(now)) {
                return Ok(Next::After(pause));
            }
            let Census { active, replicas, .. } = fleet.census;
            tracing::info!(
                NodePool.name = %name, current = active, desired = replicas, "provision-count" = count,
                "provisioning nodeclaims to satisfy replica count"
            );
            let creations = (0..count.min(AT_ONCE)).map(|_| create(context, name, &fleet));
            join_all(creations).await.into_iter().collect::<Result<(), _>>()?;
            Ok(if count > AT_ONCE { Next::After(Duration::ZERO) } else { Next::OnChange })
        }
    }
}

/// Ends the claims that a static pool has too many, whatever budgets and pods say: its owner said how many.
pub(crate) async fn scale_down(context: &Context, name: &PoolName) -> Outcome {
    let Some(Fleet { census, active, .. }) = Fleet::gather(context, name) else { return Ok(Next::OnChange) };
    let excess = decide::excess(&census);
    if excess == 0 {
        return Ok(Next::OnChange);
    }
    tracing::info!(
        NodePool.name = %name, current = census.active, desired = census.replicas, "deprovision-count" = excess,
        "deprovisioning nodeclaims to satisfy replica count"
    );
    let leaving = {
        let (cluster, now) = (context.cluster(), context.now());
        let costs = context.deletion_costs();
        decide::leaving(active.iter().map(|claim| member(&cluster, claim, costs, now)).collect(), excess)
    };
    let ending = leaving.iter().take(AT_ONCE).map(|claim| end(context, name, claim));
    join_all(ending).await.into_iter().collect::<Result<(), _>>()?;
    Ok(if excess > AT_ONCE { Next::After(Duration::ZERO) } else { Next::OnChange })
}

/// A static pool with its claims.
struct Fleet {
    pool: Arc<NodePool>,
    census: Census,
    /// Claims that are not going.
    active: Vec<Arc<NodeClaim>>,
    /// What every node of the pool satisfies.
    requirements: Requirements,
}

impl Fleet {
    /// Nothing if the pool is gone or going, or not of fixed size.
    fn gather(context: &Context, name: &PoolName) -> Option<Self> {
        let (pool, requirements, claims, going) = {
            let cluster = context.cluster();
            let pool = cluster.pool(name).filter(|pool| pool.metadata.deletion_timestamp.is_none())?;
            let claims: Vec<Arc<NodeClaim>> =
                cluster.claims().map(|(_, claim)| claim).filter(|claim| is_of(claim, name)).cloned().collect();
            let going = claims.iter().map(|claim| is_going(&cluster, claim)).collect::<Vec<bool>>();
            (Arc::clone(pool), cluster.template_requirements(name)?, claims, going)
        };
        let replicas = usize::try_from(pool.spec.replicas?).unwrap_or(0);
        let now = context.now();
        let reserved = {
            let mut notes = context.notes();
            let attempts = notes.growth.entry(name.clone()).or_default();
            attempts.review(&claims, now);
            attempts.reserved()
        };
        let all = claims.len();
        let active: Vec<Arc<NodeClaim>> =
            claims.into_iter().zip(going).filter(|(_, is_going)| !is_going).map(|(claim, _)| claim).collect();
        let census =
            Census { replicas, limit: node_limit(&pool), active: active.len(), going: all - active.len(), reserved };
        Some(Self { pool, census, active, requirements })
    }
}

fn is_of(claim: &NodeClaim, pool: &PoolName) -> bool {
    claim.metadata.labels.iter().flatten().any(|(key, value)| key == labels::NODE_POOL && value == pool.as_str())
}

/// A claim whose node is being deleted follows it.
fn is_going(cluster: &Cluster, claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some() || cluster.node_of(claim).is_some_and(|node| node.deletion.is_some())
}

fn node_limit(pool: &NodePool) -> Option<usize> {
    let limits = lower::resources(pool.spec.limits.as_ref()?);
    let nodes = ResourceName::nodes();
    limits.names(&nodes).then(|| usize::try_from(limits.get(&nodes)).unwrap_or(0))
}

/// Makes one claim. It lists no instance types and asks for nothing: the provider picks what the template allows.
async fn create(context: &Context, pool: &PoolName, fleet: &Fleet) -> Result<(), WriteError> {
    let launch = LaunchId::new(context.draw_launch_id());
    let mut requirements = fleet.requirements.clone();
    requirements.remove(labels::HOSTNAME);
    let particulars = Particulars {
        requirements,
        requests: None,
        annotations: Vec::new(),
        seed: seed_of(launch.as_str()),
        defaults: Defaults {
            launch_id: launch.to_string(),
            grace: context.provider.default_termination_grace_period(),
        },
    };
    let draft = from_template(&fleet.pool, &context.provider.vocabulary(), particulars);
    let claim = match write::create_claim(context, &draft).await {
        Ok(claim) => claim,
        Err(error) => {
            if error.is_unanswered() {
                let now = context.now();
                context.notes().growth.entry(pool.clone()).or_default().unanswered(launch, now);
            }
            return Err(error);
        }
    };
    let name = name_of(&claim);
    context.note_fresh(&name);
    context.notes().growth.entry(pool.clone()).or_default().made(name.clone());
    context.learn(Object::Claim(claim));
    context.metrics.claim_created(pool.as_str(), false);
    tracing::info!(NodeClaim.name = %name, NodePool.name = %pool, "created nodeclaim");
    Ok(())
}

async fn end(context: &Context, pool: &PoolName, name: &ClaimName) -> Result<(), WriteError> {
    let Some(claim) = context.cluster().claim(name).cloned() else { return Ok(()) };
    context.notes().growth.entry(pool.clone()).or_default().ended(name);
    write::delete_claim(context, &claim).await?;
    tracing::debug!(NodeClaim.name = %name, NodePool.name = %pool, "deleting nodeclaim");
    Ok(())
}

fn member(cluster: &Cluster, claim: &Arc<NodeClaim>, costs: DeletionCosts, now: Timestamp) -> Member {
    let created = claim.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let node = cluster.node_of(claim);
    let pods: Vec<&Arc<PodFacts>> =
        node.into_iter().flat_map(|node| cluster.pods_on(&node.name)).filter(|pod| !pod.is_terminal).collect();
    let is_protected = pods.iter().any(|pod| pod.protection.is_active(now));
    let stays_behind = |pod: &&Arc<PodFacts>| matches!(pod.owner, Owner::DaemonSet | Owner::Node);
    let load = if !attempts::is_launched(claim) {
        Load::Unlaunched
    } else if pods.iter().all(stays_behind) && !is_protected {
        Load::Empty
    } else {
        let moving: f64 = pods.iter().map(|pod| eviction_cost(pod, costs)).sum();
        let left = decide::lifetime_left(created, claim.spec.expire_after.as_duration(), now);
        Load::Busy { is_protected, cost: moving * left }
    };
    Member { claim: name_of(claim), created, load }
}

#[cfg(test)]
mod tests {
    use api::lower::NodeFacts;
    use model::Vocabulary;
    use serde_json::json;
    use state::ManagedKind;

    use super::*;

    const CREATED: i64 = 10_000;

    /// What would be lost half an hour after a claim was made. The claim is `launched` or not, has a `life=1h` or none, and
    /// on its node are pods by what owns them, with `!` if they ask not to be disturbed and `done` if they have ended.
    fn lost(words: &str) -> String {
        let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
        let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let words: Vec<&str> = words.split_whitespace().collect();
        let life = words.iter().find_map(|word| word.strip_prefix("life=")).unwrap_or("Never");
        let provider = words.contains(&"launched").then_some("kwok://n");
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "c", "creationTimestamp": at(CREATED).to_string()},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "expireAfter": life},
            "status": {"providerID": provider},
        }))
        .unwrap();
        let claim = Arc::new(claim);
        cluster.apply(Object::Claim(Arc::clone(&claim)));
        let node = json!({"metadata": {"name": "n", "uid": "n"}, "spec": {"providerID": "kwok://n"}});
        let node = NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap();
        cluster.apply(Object::Node(Arc::new(node)));
        let pods = words.iter().filter(|word| word.starts_with(|first: char| first.is_ascii_uppercase()));
        for (index, word) in pods.enumerate() {
            let (owner, state) = word.split_once('=').unwrap_or((word, ""));
            let protected = owner.ends_with('!').then_some("true");
            let kind = owner.trim_end_matches('!');
            let version = if kind == "Node" { "v1" } else { "apps/v1" };
            let owner = json!([{"apiVersion": version, "kind": kind, "name": "o", "uid": "o"}]);
            let phase = if state == "done" { "Succeeded" } else { "Running" };
            let pod = json!({
                "metadata": {"name": index.to_string(), "namespace": "shop", "uid": index.to_string(),
                    "ownerReferences": owner, "annotations": {"karpenter.sh/do-not-disrupt": protected.unwrap_or("no")}},
                "spec": {"containers": [], "nodeName": "n"}, "status": {"phase": phase}});
            let pod = PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap();
            cluster.apply(Object::Pod(Arc::new(pod)));
        }
        match member(&cluster, &claim, DeletionCosts::Theirs, at(CREATED + 1800)).load {
            Load::Unlaunched => "nothing yet".to_owned(),
            Load::Empty => "nothing".to_owned(),
            Load::Busy { is_protected, cost } => format!("{cost}{}", if is_protected { "!" } else { "" }),
        }
    }

    /// STAT-03: what counts as empty, and what pods weigh: daemons nothing unless they ask not to be disturbed, and all
    /// others less the sooner their node ends anyway.
    #[test]
    fn a_claim_weighs_what_is_lost_with_it() {
        let table = [
            ("", "nothing yet"),
            ("life=1h", "nothing yet"),
            ("launched", "nothing"),
            ("launched DaemonSet Node", "nothing"),
            ("launched ReplicaSet=done ReplicaSet!=done", "nothing"),
            ("launched DaemonSet!", "1!"),
            ("launched ReplicaSet", "1"),
            ("launched ReplicaSet StatefulSet", "2"),
            ("launched ReplicaSet! StatefulSet", "2!"),
            ("launched life=1h ReplicaSet", "0.5"),
            ("launched life=2h ReplicaSet!", "0.75!"),
        ];
        for (words, expected) in table {
            assert_eq!(lost(words), expected, "{words}");
        }
    }
}
