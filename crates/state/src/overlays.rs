//! What is for sale, and what overlays make of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::NodePool;
use api::lower::{OverlayFacts, OverlayFault};
use model::{
    Assortment, InstanceType, Overlaid, OverlayConflict, OverlayMarks, PoolName, Requirement, Requirements, Text,
    TypeName, labels, overlay,
};

use crate::change::Wake;
use crate::cluster::{Cluster, Version};
use crate::pools::{own_labels, template_labels};

/// Overlays by name. They are evaluated when something about them or about what is for sale changes, and not when
/// somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Overlays {
    used: bool,
    known: BTreeMap<Text, Arc<OverlayFacts>>,
    conflicts: BTreeMap<Text, OverlayConflict>,
    /// The types that they touch.
    marks: BTreeMap<PoolName, BTreeMap<TypeName, OverlayMarks>>,
}

impl Overlays {
    /// Whether overlays are looked at at all.
    pub(crate) fn are_used(&self) -> bool {
        self.used
    }

    /// The names of all known overlays.
    pub(crate) fn names(&self) -> impl Iterator<Item = Text> + '_ {
        self.known.keys().cloned()
    }
}

/// What became of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverlayVerdict {
    /// It is applied wherever it selects something.
    Applied,
    /// It makes no sense, and is not applied.
    Invalid(Vec<OverlayFault>),
    /// It meets another one of its weight, and is not applied.
    Conflict(OverlayConflict),
}

impl OverlayVerdict {
    /// The reason of the overlay's condition; nothing if all is well.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Applied => None,
            Self::Invalid(_) => Some("RuntimeValidation"),
            Self::Conflict(_) => Some("Conflict"),
        }
    }

    /// What the condition says.
    pub fn message(&self) -> String {
        match self {
            Self::Applied => String::new(),
            Self::Invalid(faults) => faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Self::Conflict(conflict) => conflict.to_string(),
        }
    }
}

impl Cluster {
    /// The same cluster with overlays in use; without this they are not even listed.
    #[must_use]
    pub fn with_overlays(mut self) -> Self {
        self.overlays.used = true;
        self
    }

    /// What a provider sells to a pool.
    pub fn set_types(&mut self, pool: PoolName, types: Arc<[Arc<InstanceType>]>) {
        self.revision += 1;
        self.known_places.set_limits(&pool, &types);
        if self.overlays.known.is_empty() {
            self.types.insert(pool.clone(), Arc::clone(&types));
            self.sold.insert(pool, types);
            return;
        }
        // Providers that keep their answer hand out the same one again and again.
        let is_known = |known: &Arc<[_]>| Arc::ptr_eq(known, &types) || *known == types;
        if !self.sold.get(&pool).is_some_and(is_known) {
            self.sold.insert(pool, types);
            self.overlay_types();
        }
    }

    /// What the provider sells to a pool, as last heard, with overlays applied.
    pub fn types(&self, pool: &PoolName) -> Option<&Arc<[Arc<InstanceType>]>> {
        self.types.get(pool)
    }

    /// What became of each overlay.
    pub fn overlay_verdicts(&self) -> impl Iterator<Item = (&Arc<OverlayFacts>, OverlayVerdict)> {
        self.overlays.known.iter().map(|(name, facts)| {
            let verdict = match (&facts.overlay, self.overlays.conflicts.get(name)) {
                (Err(faults), _) => OverlayVerdict::Invalid(faults.clone()),
                (Ok(_), Some(conflict)) => OverlayVerdict::Conflict(conflict.clone()),
                (Ok(_), None) => OverlayVerdict::Applied,
            };
            (facts, verdict)
        })
    }

    /// What overlays changed about any of these types of a pool.
    pub fn overlay_marks(&self, pool: &PoolName, types: &[TypeName]) -> OverlayMarks {
        let touched = self.overlays.marks.get(pool);
        let marks = types.iter().filter_map(|kind| touched?.get(kind).copied());
        marks.fold(OverlayMarks::default(), OverlayMarks::or)
    }

    pub(crate) fn apply_overlay(&mut self, overlay: Arc<OverlayFacts>) -> Vec<Wake> {
        let version = |facts: &OverlayFacts| Version::new(Some(&facts.uid), Some(&facts.resource_version));
        let known = self.overlays.known.get(&overlay.name).map(|known| version(known));
        if !self.overlays.used || !self.is_news(known, version(&overlay)) {
            return Vec::new();
        }
        let before = self.overlays.known.insert(Text::clone(&overlay.name), Arc::clone(&overlay));
        // What we write about an overlay changes nothing about what it says.
        let is_same = |before: &OverlayFacts| {
            before.uid == overlay.uid && before.generation == overlay.generation && before.overlay == overlay.overlay
        };
        if before.is_some_and(|before| is_same(&before)) {
            return Vec::new();
        }
        self.overlays_changed()
    }

    pub(crate) fn remove_overlay(&mut self, name: &Text) -> Vec<Wake> {
        let Some(overlay) = self.overlays.known.remove(name) else { return Vec::new() };
        self.gone.remember(&overlay.uid);
        self.overlays_changed()
    }

    /// Pods that found nothing may find something at another price or with other resources, and nodes that were worth
    /// keeping may no longer be.
    fn overlays_changed(&mut self) -> Vec<Wake> {
        self.overlay_types();
        [Wake::Overlays].into_iter().chain(self.waiting.iter().cloned().map(Wake::Waiting)).collect()
    }

    /// Something changed that overlays select by; nobody is concerned where there are none.
    pub(crate) fn overlays_concerned(&self) -> Option<Wake> {
        (!self.overlays.known.is_empty()).then_some(Wake::Overlays)
    }

    /// A pool is new or has changed; overlays may select it by its labels.
    pub(crate) fn relabelled(&mut self, pool: &NodePool, before: Option<&NodePool>) {
        if !self.overlays.known.is_empty() && before.map(own_labels) != Some(own_labels(pool)) {
            self.overlay_types();
        }
    }

    pub(crate) fn forget_types(&mut self, pool: &PoolName) {
        self.known_places.set_limits(pool, &[]);
        if self.sold.remove(pool).is_some() {
            self.overlay_types();
        }
    }

    fn overlay_types(&mut self) {
        if self.overlays.known.is_empty() {
            self.overlays.conflicts.clear();
            self.overlays.marks.clear();
            self.types.clone_from(&self.sold);
            return;
        }
        let assortment = |(name, types): (&PoolName, &Arc<[Arc<InstanceType>]>)| {
            let bare = || Requirements::none().with(labels::NODE_POOL, Requirement::is(name.text()));
            let labels = self.pools.get(name).map_or_else(bare, |pool| template_labels(name, pool));
            (name.clone(), Assortment { labels, types: Arc::clone(types) })
        };
        let pools: BTreeMap<PoolName, Assortment> = self.sold.iter().map(assortment).collect();
        let valid = self.overlays.known.values().filter_map(|facts| facts.overlay.as_ref().ok());
        let Overlaid { types, marks, conflicts } = overlay(&pools, valid);
        self.types = types;
        self.overlays.marks = marks;
        let by_name = |conflict: OverlayConflict| (Text::clone(&conflict.overlay), conflict);
        self.overlays.conflicts = conflicts.into_iter().map(by_name).collect();
    }
}
