//! DaemonSets and their newest pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::lower::{ControllerKind, DaemonFacts, PodFacts};
use jiff::Timestamp;
use model::{Daemon, PodClass, PodKey, Resources, Text};

/// What comes with every node, kept up to date set by set and pod by pod.
#[derive(Debug, Default)]
pub(crate) struct Daemons {
    pub(crate) sets: BTreeMap<Text, Arc<DaemonFacts>>,
    pods: BTreeMap<Text, BTreeMap<(Timestamp, PodKey), Arc<PodClass>>>,
    planned: BTreeMap<Text, Arc<Daemon>>,
}

impl Daemons {
    /// What the next pod of each set will look like.
    pub(crate) fn planned(&self) -> impl Iterator<Item = &Arc<Daemon>> {
        self.planned.values()
    }

    /// What one pod of each set asks for together.
    pub(crate) fn requests(&self) -> Resources {
        let mut sum = Resources::none();
        self.planned.values().for_each(|daemon| sum.add(&daemon.class.requests));
        sum
    }

    /// Folds a set; whether anything changed for new nodes.
    pub(crate) fn apply(&mut self, set: Arc<DaemonFacts>) -> bool {
        let name = Text::clone(&set.name);
        self.sets.insert(Text::clone(&name), set);
        self.refresh(&name)
    }

    /// Forgets a set; whether anything changed for new nodes.
    pub(crate) fn remove(&mut self, name: &Text) -> bool {
        self.sets.remove(name);
        self.refresh(name)
    }

    /// Folds a pod that perhaps belongs to a set; whether anything changed for new nodes.
    pub(crate) fn add_pod(&mut self, pod: &PodFacts) -> bool {
        let Some(set) = set_of(pod) else { return false };
        let pods = self.pods.entry(Text::clone(&set)).or_default();
        pods.insert((pod.created, pod.key.clone()), Arc::clone(&pod.class));
        let is_newest = pods.last_key_value().is_some_and(|((_, key), _)| *key == pod.key);
        is_newest && self.refresh(&set)
    }

    /// Forgets a pod that perhaps belonged to a set; whether anything changed for new nodes.
    pub(crate) fn remove_pod(&mut self, pod: &PodFacts) -> bool {
        let Some(set) = set_of(pod) else { return false };
        let Some(pods) = self.pods.get_mut(&set) else { return false };
        pods.remove(&(pod.created, pod.key.clone()));
        if pods.is_empty() {
            self.pods.remove(&set);
        }
        self.refresh(&set)
    }

    fn refresh(&mut self, name: &Text) -> bool {
        let newest = self.pods.get(name).and_then(|pods| pods.last_key_value()).map(|(_, class)| class);
        let class = self.sets.get(name).and_then(|set| set.next_pod(newest));
        if self.planned.get(name).map(|planned| &planned.class) == class.as_ref() {
            return false;
        }
        match class {
            Some(class) => {
                let daemon = Daemon { name: Text::clone(name), class };
                self.planned.insert(Text::clone(name), Arc::new(daemon));
            }
            None => {
                self.planned.remove(name);
            }
        }
        true
    }
}

/// The DaemonSet that looks after a pod, as `namespace/name`.
fn set_of(pod: &PodFacts) -> Option<Text> {
    let controller = pod.controller.as_ref().filter(|controller| controller.kind == ControllerKind::DaemonSet)?;
    Some(Text::from(format!("{}/{}", pod.key.namespace, controller.name)))
}
