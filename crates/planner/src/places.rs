//! Places that are there or on their way.

use std::borrow::Cow;
use std::sync::Arc;

use model::{
    HostPort, Place, PodClass, PodKey, Refusal, Requirements, Shortfall, Snapshot, Stage, Undefined, Vocabulary,
    first_untolerated,
};

use crate::amounts::{Amounts, ResourceTable, add_times, copies, holds};
use crate::attached::Attached;
use crate::classes::Class;
use crate::daemons::still_to_come;
use crate::stance::Stance;

/// A place as this plan has filled it so far.
pub(crate) struct PlaceView<'a> {
    pub(crate) place: &'a Place,
    /// Of a promised place, what pods of this plan already rely on as well.
    requirements: Cow<'a, Requirements>,
    free: Amounts,
    /// What was free before this plan.
    pub(crate) before: Amounts,
    /// More is used than there is of something; nothing fits then, whatever it asks for.
    overdrawn: Option<Shortfall>,
    pub(crate) host_ports: Vec<HostPort>,
    pub(crate) attached: Attached,
    pub(crate) pods: Vec<&'a PodKey>,
}

impl<'a> PlaceView<'a> {
    /// All places, in the order in which they are filled: usable nodes, joining ones, promised ones, each by name;
    /// those that are going come last and are never filled.
    pub(crate) fn all(snapshot: &'a Snapshot, table: &ResourceTable) -> Vec<Self> {
        let mut places: Vec<&Place> = snapshot.places.iter().map(Arc::as_ref).collect();
        places.sort_by(|left, right| (left.stage, &left.id).cmp(&(right.stage, &right.id)));
        places.into_iter().map(|place| Self::new(place, snapshot, table)).collect()
    }

    fn new(place: &'a Place, snapshot: &'a Snapshot, table: &ResourceTable) -> Self {
        let (daemons, ports) = still_to_come(place, &snapshot.daemons, &snapshot.vocabulary);
        // Only what the place announces counts: pods may hold a device that is announced no more, and a daemon
        // that wants one the place never had will not start there, which is no reason to keep others away.
        let overdrawn = place.allocatable.iter().find_map(|(name, amount)| {
            let (wanted, available) = (place.used.get(name).saturating_add(daemons.get(name)), amount);
            (wanted > available).then(|| Shortfall { resource: name.clone(), wanted, available })
        });
        let (all, used) = (table.amounts(&place.allocatable), table.amounts(&place.used));
        let taken = used.iter().zip(table.amounts(&daemons)).map(|(used, daemons)| used.saturating_add(daemons));
        let free: Amounts = all.iter().zip(taken).map(|(all, taken)| all.saturating_sub(taken)).collect();
        Self {
            place,
            requirements: Cow::Borrowed(&place.requirements),
            before: if overdrawn.is_some() || place.stage == Stage::Going {
                vec![0; free.len()].into()
            } else {
                free.clone()
            },
            free,
            overdrawn,
            host_ports: place.host_ports.iter().chain(&ports).cloned().collect(),
            attached: Attached::of(&place.attached),
            pods: Vec::new(),
        }
    }

    /// Whether any pod may be put here. What is going is only there to be counted.
    pub(crate) fn is_open(&self) -> bool {
        self.place.stage != Stage::Going
    }

    /// Whether a pod of the class fits by its size alone: the cheapest question, asked first.
    pub(crate) fn has_room(&self, class: &Class<'_>) -> bool {
        holds(&self.free, &class.demand) && self.overdrawn.is_none() && self.is_open()
    }

    /// Whether the place could take a pod of the class if this plan had put nobody there, rules between pods aside.
    pub(crate) fn could_take(&self, class: &Class<'_>, stance: &Stance, vocabulary: &Vocabulary) -> bool {
        copies(&class.demand, &self.before) > 0
            && first_untolerated(&self.place.taints, &stance.tolerations).is_none()
            && self.place.requirements.satisfy(&stance.requirements, self.undefined(vocabulary)).is_ok()
    }

    /// How many pods of the class this place takes, rules between pods aside.
    pub(crate) fn takes(&self, class: &Class<'_>, stance: &Stance, vocabulary: &Vocabulary) -> i64 {
        if !self.has_room(class) || !self.goes_with(stance, vocabulary) || self.taken_port(class).is_some() {
            return 0;
        }
        let by_ports = if class.spec.host_ports.is_empty() { i64::MAX } else { 1 };
        let by_volumes = self.attached.copies(&class.attaching, &self.place.attach_limits).unwrap_or(0);
        copies(&class.demand, &self.free).min(by_ports).min(by_volumes)
    }

    /// Whether this place takes a pod of the class, rules between pods aside.
    pub(crate) fn takes_one(&self, class: &Class<'_>, stance: &Stance, vocabulary: &Vocabulary) -> bool {
        self.has_room(class)
            && self.goes_with(stance, vocabulary)
            && self.taken_port(class).is_none()
            && self.attached.copies(&class.attaching, &self.place.attach_limits).is_ok()
    }

    /// Whether pods like this may be here at all, rules between pods aside.
    pub(crate) fn admits(&self, spec: &PodClass, vocabulary: &Vocabulary) -> bool {
        let undefined = self.undefined(vocabulary);
        let meets = |wanted: &Requirements| self.place.requirements.satisfy(wanted, undefined).is_ok();
        first_untolerated(&self.place.taints, &spec.tolerations).is_none() && spec.alternatives.iter().any(meets)
    }

    fn taken_port(&self, class: &Class<'_>) -> Option<&HostPort> {
        if class.spec.host_ports.is_empty() {
            return None;
        }
        let collides = |port: &&HostPort| class.spec.host_ports.iter().any(|own| own.collides_with(port));
        self.host_ports.iter().find(collides)
    }

    fn undefined<'v>(&self, vocabulary: &'v Vocabulary) -> Undefined<'v> {
        match self.place.stage {
            Stage::Ready | Stage::Joining | Stage::Going => Undefined::IsAbsent,
            Stage::Promised => Undefined::MayBeGiven(vocabulary),
        }
    }

    fn goes_with(&self, stance: &Stance, vocabulary: &Vocabulary) -> bool {
        let (wanted, undefined) = (&stance.requirements, self.undefined(vocabulary));
        // Pods narrow a promised place, but they do not give it labels that it would not have had without them.
        first_untolerated(&self.place.taints, &stance.tolerations).is_none()
            && (wanted.is_empty()
                || (self.place.requirements.satisfy(wanted, undefined).is_ok()
                    && (self.place.stage != Stage::Promised || self.requirements.satisfy(wanted, undefined).is_ok())))
    }

    /// Puts pods here; whoever asks has asked whether they fit.
    pub(crate) fn take(&mut self, class: &Class<'a>, stance: &Stance, pods: impl Iterator<Item = usize>) {
        let before = self.pods.len();
        self.pods.extend(pods.map(|pod| &class.pods[pod].key));
        let count = self.pods.len() - before;
        add_times(&mut self.free, &class.demand, -i64::try_from(count).unwrap_or(i64::MAX));
        self.attached.add(&class.attaching, u32::try_from(count).unwrap_or(u32::MAX));
        self.host_ports.extend(class.spec.host_ports.iter().cloned());
        if self.place.stage == Stage::Promised {
            self.requirements.to_mut().add_all(&stance.requirements);
        }
    }

    /// The first reason, in the order of the checks, why this place takes no pod of the class.
    pub(crate) fn refusal(
        &self,
        class: &Class<'_>,
        stance: &Stance,
        table: &ResourceTable,
        vocabulary: &Vocabulary,
    ) -> Option<Refusal> {
        if let Some(taint) = first_untolerated(&self.place.taints, &stance.tolerations) {
            return Some(Refusal::Untolerated { taint: taint.clone() });
        }
        if let Err(driver) = self.attached.copies(&class.attaching, &self.place.attach_limits) {
            let limit = self.place.attach_limits.get(&driver).copied().unwrap_or(0);
            let wanted = self.attached.by_driver.get(&driver).copied().unwrap_or(0) + 1;
            return Some(Refusal::TooManyVolumes { driver, wanted, limit });
        }
        if let Some(port) = self.taken_port(class) {
            return Some(Refusal::PortTaken { port: port.clone() });
        }
        let short = self.overdrawn.clone().or_else(|| table.shortfall(&class.demand, &self.free));
        if let Some(shortfall) = short {
            return Some(Refusal::TooFull { shortfall });
        }
        let undefined = self.undefined(vocabulary);
        let first = self.place.requirements.satisfy(&stance.requirements, undefined);
        let mismatch = first.and_then(|()| self.requirements.satisfy(&stance.requirements, undefined)).err();
        mismatch.map(|mismatch| Refusal::Incompatible { mismatch })
    }
}
