//! The order of work.

use std::cmp::Reverse;
use std::sync::Arc;

use model::{
    Attempt, Operator, PendingGroup, Plan, PodClass, PodKey, PoolRefusal, Refusal, ResourceName, Resources, Snapshot,
    Unplaced,
};

use crate::claims::Claims;
use crate::config::PlaceConfig;
use crate::places::Places;
use crate::pools::PoolView;
use crate::refuse::{barrenness, refusal};

/// Places as many pods as it can; equal snapshots give equal plans, whatever the order of their lists.
///
/// Pods go to what is there, then to claims of this plan with room, then to new claims of the first pool that takes
/// them, sized by price. Pods that fit nowhere come back in [`Plan::unplaced`] with one refusal per pool. No claim
/// lists a type that could carry its pool over a limit. Never panics on input.
pub fn place(snapshot: &Snapshot, config: &PlaceConfig) -> Plan {
    place_counted(snapshot, config).0
}

/// The plan, and how many types were looked at for it.
fn place_counted(snapshot: &Snapshot, config: &PlaceConfig) -> (Plan, u64) {
    let mut placement = Placement {
        snapshot,
        pools: PoolView::all(snapshot),
        places: Places::of(snapshot),
        claims: Claims::new(config, &snapshot.vocabulary),
    };
    let unplaced = in_order(&snapshot.pending).into_iter().filter_map(|group| placement.place_group(group)).collect();
    let Placement { snapshot, mut pools, places, claims } = placement;
    let steps = claims.steps;
    let plan = Plan {
        revision: snapshot.revision,
        barren_pools: pools.iter().filter(|pool| pool.is_barren()).map(barrenness).collect(),
        claims: claims.finish(&mut pools),
        nominations: places.nominations(),
        unplaced,
    };
    (plan, steps)
}

/// Higher priority first, then larger pods: what is hard to place comes while there is room.
fn in_order(pending: &[PendingGroup]) -> Vec<&PendingGroup> {
    let (cpu, memory) = (ResourceName::cpu(), ResourceName::memory());
    let mut groups: Vec<&PendingGroup> = pending.iter().filter(|group| !group.pods.is_empty()).collect();
    groups.sort_by_cached_key(|group| {
        let class = &group.class;
        let size = (class.requests.get(&cpu), class.requests.get(&memory));
        (Reverse((class.priority, size)), class, &group.pods)
    });
    groups
}

/// What one reading of a class asks for.
pub(crate) struct Demand<'a> {
    pub(crate) requests: &'a Resources,
    pub(crate) attempt: &'a Attempt,
}

/// The pods of a group that have no place yet, oldest first.
pub(crate) struct Waiting<'a> {
    pods: &'a [PodKey],
}

impl Waiting<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    pub(crate) fn count(&self) -> i64 {
        i64::try_from(self.pods.len()).unwrap_or(i64::MAX)
    }

    /// The first `count` pods, or all when there are fewer; they wait no longer.
    pub(crate) fn take(&mut self, count: i64) -> Vec<PodKey> {
        let count = usize::try_from(count).unwrap_or(0).min(self.pods.len());
        let (taken, rest) = self.pods.split_at(count);
        self.pods = rest;
        taken.to_vec()
    }
}

struct Placement<'a> {
    snapshot: &'a Snapshot,
    pools: Vec<PoolView<'a>>,
    places: Places<'a>,
    claims: Claims<'a>,
}

impl Placement<'_> {
    /// Places a group; what is left over comes back with the reasons of the most relaxed reading.
    fn place_group(&mut self, group: &PendingGroup) -> Option<Unplaced> {
        let class = &group.class;
        let left_over =
            |pods: &[PodKey], refusals| Some(Unplaced { class: Arc::clone(class), pods: pods.to_vec(), refusals });
        if !class.unplanned_rules.is_empty() {
            return left_over(&group.pods, self.refusals_of_rules(class));
        }
        let mut waiting = Waiting { pods: &group.pods };
        let attempts = readings(class);
        for attempt in &attempts {
            self.place_demand(&Demand { requests: &class.requests, attempt }, &mut waiting);
            if waiting.is_empty() {
                return None;
            }
        }
        let reasons = |attempt| {
            let demand = Demand { requests: &class.requests, attempt };
            self.pools.iter().map(|pool| refusal(pool, &demand, &self.snapshot.vocabulary)).collect()
        };
        left_over(waiting.pods, attempts.last().map(reasons).unwrap_or_default())
    }

    fn place_demand(&mut self, demand: &Demand<'_>, waiting: &mut Waiting<'_>) {
        let Self { snapshot, pools, places, claims } = self;
        places.fill(demand, waiting, &snapshot.vocabulary);
        claims.fill(pools, demand, waiting);
        if waiting.is_empty() {
            return;
        }
        let new = claims.new_nodes(pools, demand);
        claims.grow(pools, demand, waiting, new.as_ref());
        if new.is_some() {
            claims.open(pools, demand, waiting);
            // Limits may have ended that early; then growing is the only way left.
            claims.grow(pools, demand, waiting, None);
        }
    }

    fn refusals_of_rules(&self, class: &PodClass) -> Vec<PoolRefusal> {
        let refuse = |pool: &PoolView<'_>| {
            let refusal = Refusal::UnplannedRules { rules: class.unplanned_rules.clone() };
            PoolRefusal { pool: pool.pool.name.clone(), refusal }
        };
        self.pools.iter().map(refuse).collect()
    }
}

/// The readings of a class without those in which a wish contradicts what the pod requires.
///
/// A contradiction leaves no value, which reads like "the label must be absent" and would be met by a node on which
/// the pod cannot run.
fn readings(class: &PodClass) -> Vec<Attempt> {
    let mut attempts = class.attempts();
    let wishes = class.preferences.iter().map(|preference| &preference.requirements);
    let stated: Vec<_> = class.alternatives.iter().chain(wishes).collect();
    attempts.retain(|attempt| {
        let empty = |requirement: &model::Requirement| requirement.operator() == Operator::DoesNotExist;
        attempt
            .requirements
            .iter()
            .filter(|(_, requirement)| empty(requirement))
            .all(|(key, _)| stated.iter().any(|requirements| requirements.get(key).is_some_and(empty)))
    });
    attempts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{InstanceType, Offering, Pool, PoolName, Price, Requirements, Revision, TypeName, Vocabulary};

    use super::*;

    /// One core and four gigabytes each step, dearer by more than size now and then, so that sizes compete.
    fn types(count: i64) -> Arc<[Arc<InstanceType>]> {
        let kind = |size: i64| {
            let capacity = Resources::none()
                .with(ResourceName::cpu(), size * 1000)
                .with(ResourceName::memory(), size << 32)
                .with(ResourceName::pods(), 110);
            let price = Price::from_dollars(size as f64 * 0.05 + (size % 7) as f64 * 0.01);
            let requirements = Requirements::none();
            let offering =
                Offering { requirements: requirements.clone(), price, available: true, reservation_capacity: None };
            InstanceType::new(
                TypeName::new(format!("t{size}")),
                requirements,
                capacity,
                Resources::none(),
                vec![offering],
            )
        };
        (1..=count).map(kind).collect()
    }

    /// The work depends on classes, pools and types, not on the number of pods.
    #[test]
    fn a_thousand_equal_pods_take_few_steps() {
        let pool = Pool {
            name: PoolName::new("default"),
            weight: 0,
            requirements: Requirements::none(),
            taints: Vec::new(),
            limits: Resources::none(),
            in_use: Resources::none(),
            types: types(144),
        };
        let class = PodClass {
            priority: 0,
            requests: Resources::none().with(ResourceName::cpu(), 1000).with(ResourceName::pods(), 1),
            alternatives: vec![Requirements::none()],
            preferences: Vec::new(),
            tolerations: Vec::new(),
            unplanned_rules: BTreeSet::new(),
        };
        let pods = (0..1000).map(|index| PodKey::new("default", format!("web-{index}"))).collect();
        let snapshot = Snapshot {
            revision: Revision(1),
            vocabulary: Arc::new(Vocabulary::core()),
            pools: vec![Arc::new(pool)],
            places: Vec::new(),
            pending: vec![PendingGroup { class: Arc::new(class), pods }],
            daemons: Vec::new(),
        };
        let (plan, steps) = place_counted(&snapshot, &PlaceConfig::default());
        assert_eq!(plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>(), 1000);
        assert!(steps <= 10 * 144, "{steps} looks at types");
    }
}
