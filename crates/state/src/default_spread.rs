//! The cluster's default spread constraints, for pods that state none.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::lower::{ControllerKind, GroupingFacts, GroupingKind, PodFacts};
use api::scheduler_config::DefaultSpread;
use model::{LabelRequirement, PodClass, Selector, SpreadConstraint, Text};

/// What the scheduler is configured with, and what it deduces selectors from.
#[derive(Debug, Default)]
pub(crate) struct Groupings {
    pub(crate) defaults: DefaultSpread,
    pub(crate) known: BTreeMap<(Text, GroupingKind, Text), Arc<GroupingFacts>>,
}

impl Groupings {
    /// The requirements by which the kube-scheduler counts pods like this one: those of all Services that select it,
    /// and of the object that made it. Of several requirements for one label the last Service has the word, then a
    /// ReplicationController; ReplicaSets and StatefulSets add theirs.
    fn selector_of(&self, pod: &PodFacts) -> Option<Selector> {
        let mut equal: BTreeMap<&Text, &LabelRequirement> = BTreeMap::new();
        for service in self.services(&pod.key.namespace) {
            if service.selector.matches(pod.labels()) {
                equal.extend(requirements(service).iter().map(|one| (&one.key, one)));
            }
        }
        let maker = self.maker_of(pod);
        let mut added: &[LabelRequirement] = &[];
        match maker.map(|maker| (maker.kind, requirements(maker))) {
            Some((GroupingKind::ReplicationController, own)) => equal.extend(own.iter().map(|one| (&one.key, one))),
            Some((_, own)) => added = own,
            None => {}
        }
        let mut all: Vec<LabelRequirement> = equal.into_values().chain(added).cloned().collect();
        all.sort();
        all.dedup();
        (!all.is_empty()).then_some(Selector::All(all))
    }

    fn services(&self, namespace: &Text) -> impl Iterator<Item = &GroupingFacts> {
        let first = (Text::clone(namespace), GroupingKind::Service, Text::from(""));
        let own = self.known.range(first..).map(|(_, found)| found.as_ref());
        own.take_while(move |found| found.namespace == *namespace && found.kind == GroupingKind::Service)
    }

    fn maker_of(&self, pod: &PodFacts) -> Option<&GroupingFacts> {
        let controller = pod.controller.as_ref()?;
        let kind = match controller.kind {
            ControllerKind::DaemonSet | ControllerKind::Job => return None,
            ControllerKind::ReplicaSet => GroupingKind::ReplicaSet,
            ControllerKind::ReplicationController => GroupingKind::ReplicationController,
            ControllerKind::StatefulSet => GroupingKind::StatefulSet,
        };
        self.known.get(&(Text::clone(&pod.key.namespace), kind, Text::clone(&controller.name))).map(Arc::as_ref)
    }
}

fn requirements(facts: &GroupingFacts) -> &[LabelRequirement] {
    match &facts.selector {
        Selector::Nothing => &[],
        Selector::All(requirements) => requirements,
    }
}

/// Classes with the defaults, each made once.
pub(crate) struct Spreader<'a> {
    groupings: &'a Groupings,
    made: BTreeMap<(Arc<PodClass>, Selector), Arc<PodClass>>,
}

impl<'a> Spreader<'a> {
    pub(crate) fn new(groupings: &'a Groupings) -> Self {
        Self { groupings, made: BTreeMap::new() }
    }

    /// The pod's class as the scheduler sees it.
    pub(crate) fn class_of(&mut self, pod: &PodFacts) -> Arc<PodClass> {
        let defaults = &self.groupings.defaults;
        let states_own = !pod.class.spread.is_empty() || !pod.class.soft_spread.is_empty();
        if defaults.is_empty() || states_own {
            return Arc::clone(&pod.class);
        }
        let Some(selector) = self.groupings.selector_of(pod) else { return Arc::clone(&pod.class) };
        let make = |(class, selector): &(Arc<PodClass>, Selector)| {
            let with = |one: &SpreadConstraint| SpreadConstraint { selector: selector.clone(), ..one.clone() };
            let (spread, soft_spread) =
                (defaults.hard.iter().map(with).collect(), defaults.soft.iter().map(with).collect());
            Arc::new(PodClass { spread, soft_spread, ..PodClass::clone(class) })
        };
        let key = (Arc::clone(&pod.class), selector);
        Arc::clone(self.made.entry(key).or_insert_with_key(make))
    }
}
