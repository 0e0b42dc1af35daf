//! What people are told, word by word.

use api::lower::NodeFacts;
use model::{Effect, Monotony, NodeName, PodClass, PoolName, Resources, Shortfall, Taint, Text, Vocabulary};
use serde_json::json;
use state::{ManagedKind, Object};

use super::*;

fn unplaced(refusals: Vec<Refusal>) -> Unplaced {
    let pool = |refusal| PoolRefusal { pool: PoolName::new("default"), refusal };
    let class = Arc::new(PodClass::plain(Resources::none()));
    Unplaced { class, pods: Vec::new(), refusals: refusals.into_iter().map(pool).collect(), places: Vec::new() }
}

fn tainted() -> Refusal {
    Refusal::Untolerated { taint: Taint::new("gpu", "", Effect::NoSchedule) }
}

fn pod() -> PodFacts {
    let pod = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"containers": []}});
    PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap()
}

/// Tone, reason, message, and for how long nothing more is said about the object.
fn told(notice: &Notice) -> String {
    format!("{:?} {}: {} ({:?})", notice.tone, notice.reason, notice.message, notice.quiet)
}

/// RSV-05: nobody is told of pods that only wait for the next pass, unless a pool says otherwise.
#[test]
fn deferrals_are_no_news() {
    let table = [
        (vec![], false),
        (vec![Refusal::ReservationsTaken], true),
        (vec![Refusal::ReservationsFull, Refusal::NotReached], true),
        (vec![Refusal::ReservationsTaken, tainted()], false),
    ];
    for (refusals, deferred) in table {
        assert_eq!(is_deferred(&unplaced(refusals.clone())), deferred, "{refusals:?}");
    }
}

/// PROV-20: pods that no pool could be asked for are told so.
#[test]
fn without_pools_there_is_one_reason() {
    assert_eq!(reasons(&unplaced(vec![])), "no dynamic nodepools found");
}

/// PROV-55, OBS-13: one event names the reason of every pool, and is not repeated for five minutes, be it that its numbers
/// change.
#[test]
fn failures_name_every_pool() {
    let shortfall = Shortfall { resource: model::ResourceName::cpu(), wanted: 8000, available: 4000 };
    let both = unplaced(vec![tainted(), Refusal::LimitReached { shortfall }]);
    let notice = failure(&pod(), &reasons(&both));
    assert_eq!(
        told(&notice),
        "Warning FailedScheduling: Failed to schedule pod, nodepool \"default\": did not tolerate taint gpu:NoSchedule; \
         add a toleration to the pod or use another NodePool; nodepool \"default\": all available instance types exceed \
         limits for nodepool, cpu: 8 wanted, 4 there; raise spec.limits or free capacity (Quiet { length: 300s, sameness: Gist })"
    );
}

/// PROV-21, OBS-13: a pool that can make no node is told of, with the cause if it is a wish for variety.
#[test]
fn barren_pools_are_told_of() {
    let pool: NodePool = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p", "uid": "u"},
        "spec": {"template": {"spec": {"requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}}},
    }))
    .unwrap();
    let lack = Monotony { key: Text::from("zone"), wanted: 3, found: 2 };
    let table = [(tainted(), ""), (Refusal::TooFewValues { labels: vec![lack] }, " due to minValues incompatibility")];
    for (refusal, cause) in table {
        let notice = barren(&pool, &PoolRefusal { pool: PoolName::new("p"), refusal });
        let text = "NodePool requirements filtered out all compatible available instance types";
        let quiet = "(Quiet { length: 60s, sameness: Reason })";
        assert_eq!(told(&notice), format!("Warning NoCompatibleInstanceTypes: {text}{cause} {quiet}"));
    }
}

/// PROV-54, OBS-13: the claim, the node, or both by name; a pod is told once in two minutes.
#[test]
fn nominations_name_claim_and_node() {
    let managed = ManagedKind { group: "karpenter.kwok.sh".to_owned(), kind: "KWOKNodeClass".to_owned() };
    let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c", "uid": "c"},
        "spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "d"}},
        "status": {"providerID": "kwok://n"}});
    cluster.apply(Object::Claim(Arc::new(serde_json::from_value(claim).unwrap())));
    for (name, provider) in [("n", Some("kwok://n")), ("foreign", None)] {
        let node = json!({"metadata": {"name": name, "uid": name}, "spec": {"providerID": provider}});
        let facts = NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap();
        cluster.apply(Object::Node(Arc::new(facts)));
    }
    let table = [
        (PlaceId::Claim(ClaimName::new("c")), "nodeclaim/c"),
        (PlaceId::Node(NodeName::new("n")), "nodeclaim/c, node/n"),
        (PlaceId::Node(NodeName::new("foreign")), "node/foreign"),
    ];
    for (place, expected) in table {
        let notice = nominated(&pod(), &destination(&cluster, &place));
        let quiet = "(Quiet { length: 120s, sameness: Reason })";
        assert_eq!(told(&notice), format!("Normal Nominated: Pod should schedule on: {expected} {quiet}"));
    }
}
