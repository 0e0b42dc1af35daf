//! A slow and plain judge of plans. It knows nodes only as concrete labels and sums, and shares no code with the
//! planner beyond the words of the model.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Effect, InstanceType, Offering, Place, Plan, PlannedClaim, PodClass, PodKey, Pool, Price, Refusal, Requirement,
    Requirements, ResourceName, Resources, Snapshot, Stage, Taint, Text, Vocabulary, labels,
};

type Labels = BTreeMap<Text, Text>;
type Classes<'a> = BTreeMap<&'a PodKey, &'a PodClass>;

/// Panics with the first rule that the plan breaks.
pub(crate) fn judge(snapshot: &Snapshot, plan: &Plan) {
    let groups = snapshot.pending.iter();
    let classes: Classes<'_> =
        groups.flat_map(|group| group.pods.iter().map(|pod| (pod, group.class.as_ref()))).collect();
    every_pod_once(&classes, plan);
    for nomination in &plan.nominations {
        let place = snapshot.places.iter().find(|place| place.id == nomination.place).unwrap();
        judge_place(place, &nomination.pods, &classes);
    }
    for claim in &plan.claims {
        judge_claim(snapshot, claim, &classes);
    }
    for pool in &snapshot.pools {
        judge_limits(pool, plan);
    }
    judge_refusals(snapshot, plan);
}

fn every_pod_once(classes: &Classes<'_>, plan: &Plan) {
    let claimed = plan.claims.iter().flat_map(|claim| &claim.pods);
    let nominated = plan.nominations.iter().flat_map(|nomination| &nomination.pods);
    let unplaced = plan.unplaced.iter().flat_map(|unplaced| &unplaced.pods);
    let mut told: Vec<&PodKey> = claimed.chain(nominated).chain(unplaced).collect();
    told.sort();
    assert_eq!(told, classes.keys().copied().collect::<Vec<_>>(), "every pod appears exactly once");
}

fn tolerates(class: &PodClass, taints: &[Taint]) -> bool {
    let hard = taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule);
    hard.into_iter().all(|taint| class.tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

fn holds(requirement: &Requirement, label: Option<&Text>) -> bool {
    label.map_or_else(|| requirement.admits_absence(), |value| requirement.admits(value))
}

fn runs_on(class: &PodClass, labels: &Labels) -> bool {
    let met = |wanted: &Requirements| wanted.iter().all(|(key, requirement)| holds(requirement, labels.get(key)));
    class.alternatives.iter().any(met)
}

fn sum<'a>(classes: impl Iterator<Item = &'a PodClass>) -> Resources {
    let mut sum = Resources::none();
    classes.for_each(|class| sum.add(&class.requests));
    sum
}

fn single_values(requirements: &Requirements) -> Labels {
    let single = |(key, requirement): (&Text, &Requirement)| Some((key.clone(), requirement.single_value()?.clone()));
    requirements.iter().filter_map(single).collect()
}

fn judge_place(place: &Place, pods: &[PodKey], classes: &Classes<'_>) {
    let labels = single_values(&place.requirements);
    for pod in pods {
        assert!(tolerates(classes[pod], &place.taints), "{pod} tolerates {}", place.id);
        assert!(place.stage == Stage::Promised || runs_on(classes[pod], &labels), "{pod} runs on {}", place.id);
    }
    let needed = sum(pods.iter().map(|pod| classes[pod])).plus(&place.used);
    for (name, amount) in needed.iter() {
        assert!(amount <= place.allocatable.get(name), "{} has room for {name}", place.id);
    }
}

/// Every set of labels that a node of this type may end up with: one per offering and free choice of a custom label.
fn nodes(kind: &InstanceType, requirements: &Requirements, vocabulary: &Vocabulary) -> Vec<(Price, Labels)> {
    let admitted = |labels: &Labels| {
        labels.iter().all(|(key, value)| requirements.get(key).is_none_or(|requirement| requirement.admits(value)))
    };
    let bought = |offering: &Offering| {
        let mut labels = single_values(&kind.requirements);
        labels.extend(single_values(&offering.requirements));
        (offering.price, labels)
    };
    let on_sale = kind.offerings.iter().filter(|offering| offering.available).map(bought);
    let mut nodes: Vec<(Price, Labels)> = on_sale.filter(|(_, labels)| admitted(labels)).collect();
    for (key, requirement) in requirements.iter().filter(|(key, _)| !vocabulary.is_well_known(key)) {
        let values = if requirement.admits("anything at all") { Vec::new() } else { requirement.values().collect() };
        let with = |(price, labels): &(Price, Labels), value: &Text| {
            let mut labels = labels.clone();
            labels.insert(key.clone(), value.clone());
            (*price, labels)
        };
        if !values.is_empty() {
            nodes = nodes.iter().flat_map(|node| values.iter().map(move |value| with(node, value))).collect();
        }
    }
    for (_, labels) in &mut nodes {
        let own = [labels::REGISTERED, labels::INITIALIZED].map(|key| (Text::from(key), Text::from("true")));
        labels.extend(own);
        let pool = requirements.get(labels::NODE_POOL).and_then(Requirement::single_value);
        labels.extend(pool.map(|pool| (Text::from(labels::NODE_POOL), pool.clone())));
    }
    nodes
}

fn daemons_on(snapshot: &Snapshot, pool: &Pool, labels: &Labels) -> Resources {
    let runs = |class: &&PodClass| tolerates(class, &pool.taints) && runs_on(class, labels);
    sum(snapshot.daemons.iter().map(|daemon| daemon.class.as_ref()).filter(runs))
}

fn judge_claim(snapshot: &Snapshot, claim: &PlannedClaim, classes: &Classes<'_>) {
    let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool).unwrap();
    assert!(!claim.pods.is_empty() && !claim.types.is_empty());
    let needed = sum(claim.pods.iter().map(|pod| classes[pod]));
    let mut prices = Vec::new();
    for name in &claim.types {
        let kind = pool.types.iter().find(|kind| kind.name == *name).unwrap();
        let nodes = nodes(kind, &claim.requirements, &snapshot.vocabulary);
        prices.push(nodes.iter().map(|(price, _)| *price).min().expect("every listed type can be bought"));
        for (_, labels) in &nodes {
            for pod in &claim.pods {
                assert!(tolerates(classes[pod], &pool.taints), "{pod} tolerates {}", pool.name);
                assert!(runs_on(classes[pod], labels), "{pod} runs on {name} with {labels:?}");
            }
            let total = needed.plus(&daemons_on(snapshot, pool, labels));
            assert!(total.fit_into(&kind.allocatable).is_ok(), "{total} fits {name}");
        }
    }
    assert!(prices.is_sorted(), "types come cheapest first");
    assert_eq!(prices.first(), Some(&claim.price));
    assert!(needed.fit_into(&claim.requests).is_ok(), "requests cover the pods");
}

/// The pool stays within its limits even when every claim becomes the largest type it lists.
fn judge_limits(pool: &Pool, plan: &Plan) {
    let claims: Vec<&PlannedClaim> = plan.claims.iter().filter(|claim| claim.pool == pool.name).collect();
    for (name, limit) in pool.limits.iter().filter(|_| !claims.is_empty()) {
        let capacity = |claim: &&PlannedClaim| {
            let listed = pool.types.iter().filter(|kind| claim.types.contains(&kind.name));
            let amount = |kind: &InstanceType| kind.capacity.get(name);
            if *name == ResourceName::nodes() { 1 } else { listed.map(|kind| amount(kind)).max().unwrap() }
        };
        let used = pool.in_use.get(name) + claims.iter().map(capacity).sum::<i64>();
        assert!(used <= limit, "{} uses {used} of {limit} {name}", pool.name);
    }
}

/// Pods that fit nowhere have a reason for every pool, and no pool without a limit could have taken one of them.
fn judge_refusals(snapshot: &Snapshot, plan: &Plan) {
    for unplaced in plan.unplaced.iter().filter(|unplaced| unplaced.class.unplanned_rules.is_empty()) {
        let refusing: BTreeSet<_> = unplaced.refusals.iter().map(|refusal| &refusal.pool).collect();
        assert_eq!(refusing.len(), snapshot.pools.len(), "one reason per pool");
        for pool in snapshot.pools.iter().filter(|pool| pool.limits.is_empty()) {
            assert!(!could_take(snapshot, pool, &unplaced.class), "{} takes no {:?}", pool.name, unplaced.pods);
            let refusal = unplaced.refusals.iter().find(|refusal| refusal.pool == pool.name).unwrap();
            assert!(!matches!(refusal.refusal, Refusal::LimitReached { .. }));
        }
    }
}

fn could_take(snapshot: &Snapshot, pool: &Pool, class: &PodClass) -> bool {
    let fits = |kind: &InstanceType| {
        nodes(kind, &pool.requirements, &snapshot.vocabulary).iter().any(|(_, labels)| {
            let total = class.requests.plus(&daemons_on(snapshot, pool, labels));
            runs_on(class, labels) && total.fit_into(&kind.allocatable).is_ok()
        })
    };
    tolerates(class, &pool.taints) && pool.types.iter().any(|kind| fits(kind))
}
