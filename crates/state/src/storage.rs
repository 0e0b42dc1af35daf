//! Volumes: what those of a pod mean for its place, and what has to be attached there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::lower::{
    CsiNodeFacts, PodFacts, PodFault, StorageClassFacts, UnsupportedVolumes, VolumeClaimFacts, VolumeFacts, VolumeFault,
};
use model::{AttachLimits, Attachment, NodeName, PodKey, PodVolumes, Requirements, Text};

/// Namespace and name of a PersistentVolumeClaim.
pub(crate) type ClaimKey = (Text, Text);

/// Claims, volumes and storage classes, and which pods use them.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) claims: BTreeMap<ClaimKey, Arc<VolumeClaimFacts>>,
    pub(crate) volumes: BTreeMap<Text, Arc<VolumeFacts>>,
    pub(crate) classes: BTreeMap<Text, Arc<StorageClassFacts>>,
    pub(crate) nodes: BTreeMap<NodeName, Arc<CsiNodeFacts>>,
    pub(crate) unsupported: UnsupportedVolumes,
    users: BTreeMap<ClaimKey, BTreeSet<PodKey>>,
    claims_by_volume: BTreeMap<Text, BTreeSet<ClaimKey>>,
    none: Arc<PodVolumes>,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            claims: BTreeMap::new(),
            volumes: BTreeMap::new(),
            classes: BTreeMap::new(),
            nodes: BTreeMap::new(),
            unsupported: UnsupportedVolumes::default(),
            users: BTreeMap::new(),
            claims_by_volume: BTreeMap::new(),
            none: Arc::new(PodVolumes::none()),
        }
    }
}

impl Storage {
    pub(crate) fn add_user(&mut self, pod: &PodFacts) {
        for claim in &pod.volume_claims {
            self.users.entry(claim_key(pod, claim)).or_default().insert(pod.key.clone());
        }
    }

    pub(crate) fn remove_user(&mut self, pod: &PodFacts) {
        for claim in &pod.volume_claims {
            remove_from(&mut self.users, &claim_key(pod, claim), &pod.key);
        }
    }

    /// Folds a claim; the pods that use it.
    pub(crate) fn apply_claim(&mut self, claim: Arc<VolumeClaimFacts>) -> Vec<PodKey> {
        let key = (Text::clone(&claim.namespace), Text::clone(&claim.name));
        if let Some(volume) = &claim.volume {
            self.claims_by_volume.entry(Text::clone(volume)).or_default().insert(key.clone());
        }
        let volume = claim.volume.clone();
        let before = self.claims.insert(key.clone(), claim);
        if let Some(old) = before.and_then(|before| before.volume.clone()).filter(|old| Some(old) != volume.as_ref()) {
            remove_from(&mut self.claims_by_volume, &old, &key);
        }
        self.users_of(&key)
    }

    /// Forgets a claim; the pods that use it.
    pub(crate) fn remove_claim(&mut self, key: &ClaimKey) -> Vec<PodKey> {
        if let Some(volume) = self.claims.remove(key).and_then(|claim| claim.volume.clone()) {
            remove_from(&mut self.claims_by_volume, &volume, key);
        }
        self.users_of(key)
    }

    fn users_of(&self, key: &ClaimKey) -> Vec<PodKey> {
        self.users.get(key).into_iter().flatten().cloned().collect()
    }

    /// Pods that use a volume.
    pub(crate) fn users_of_volume(&self, volume: &Text) -> Vec<PodKey> {
        let claims = self.claims_by_volume.get(volume).into_iter().flatten();
        claims.flat_map(|key| self.users_of(key)).collect()
    }

    /// All pods that use any volume.
    pub(crate) fn all_users(&self) -> Vec<PodKey> {
        let users: BTreeSet<&PodKey> = self.users.values().flatten().collect();
        users.into_iter().cloned().collect()
    }

    /// What a pod's volumes mean for its place; or what is wrong with the first one that cannot be used.
    pub(crate) fn resolve(&self, pod: &PodFacts) -> Result<Arc<PodVolumes>, PodFault> {
        if pod.volume_claims.is_empty() {
            return Ok(Arc::clone(&self.none));
        }
        let mut resolved = PodVolumes::none();
        for name in &pod.volume_claims {
            let claim = self.claims.get(&claim_key(pod, name)).map(Arc::as_ref);
            let fault = |fault| PodFault::Volume { claim: Text::clone(name), fault };
            let claim = claim.ok_or(VolumeFault::ClaimMissing).map_err(fault)?;
            let alternatives = self.alternatives_of(claim).map_err(fault)?;
            resolved.alternatives = combined(&resolved.alternatives, alternatives);
        }
        resolved.attachments = self.attachments_of(pod).collect();
        Ok(Arc::new(resolved))
    }

    /// The kube-scheduler refuses pods for the same reasons: a node would not help them.
    fn alternatives_of(&self, claim: &VolumeClaimFacts) -> Result<&[Requirements], VolumeFault> {
        if claim.is_going {
            return Err(VolumeFault::ClaimGoing);
        }
        if claim.is_lost {
            return Err(VolumeFault::ClaimLost);
        }
        let alternatives = match &claim.volume {
            Some(volume) => self.reach_of_volume(claim, volume)?,
            None => self.reach_of_class(claim)?,
        };
        match self.driver_of(claim).filter(|driver| self.unsupported.drivers.contains(*driver)) {
            Some(driver) => Err(VolumeFault::UnsupportedDriver { driver: Text::clone(driver) }),
            None => Ok(alternatives),
        }
    }

    fn reach_of_volume(&self, claim: &VolumeClaimFacts, name: &Text) -> Result<&[Requirements], VolumeFault> {
        let volume = || Text::clone(name);
        let found = self.volumes.get(name).ok_or_else(|| VolumeFault::VolumeMissing { volume: volume() })?;
        if found.is_going {
            return Err(VolumeFault::VolumeGoing { volume: volume() });
        }
        if !claim.is_bound {
            return Err(VolumeFault::BindingUnfinished { volume: volume() });
        }
        Ok(&found.alternatives)
    }

    fn reach_of_class(&self, claim: &VolumeClaimFacts) -> Result<&[Requirements], VolumeFault> {
        let name = claim.storage_class.as_ref().ok_or(VolumeFault::NoStorageClass)?;
        let storage_class = || Text::clone(name);
        let missing = || VolumeFault::StorageClassMissing { storage_class: storage_class() };
        let found = self.classes.get(name).ok_or_else(missing)?;
        if found.binds_at_once {
            return Err(VolumeFault::BindsAtOnce { storage_class: storage_class() });
        }
        let mut keys = found.alternatives.iter().flat_map(|one| one.iter().map(|(key, _)| key));
        match keys.find(|key| self.unsupported.topology_keys.contains(*key)) {
            Some(key) => {
                Err(VolumeFault::UnsupportedTopology { storage_class: storage_class(), key: Text::clone(key) })
            }
            None => Ok(&found.alternatives),
        }
    }

    /// What a pod attaches, as far as anybody counts it.
    pub(crate) fn attachments_of(&self, pod: &PodFacts) -> impl Iterator<Item = Attachment> {
        pod.volume_claims.iter().filter_map(|name| {
            let claim = self.claims.get(&claim_key(pod, name))?;
            let handle = Text::from(format!("{}/{name}", pod.key.namespace));
            Some(Attachment { driver: Text::clone(self.driver_of(claim)?), handle })
        })
    }

    /// The driver of the volume, or of the class that will make it.
    fn driver_of(&self, claim: &VolumeClaimFacts) -> Option<&Text> {
        match &claim.volume {
            Some(volume) => self.volumes.get(volume)?.driver.as_ref(),
            None => Some(&self.classes.get(claim.storage_class.as_ref()?)?.driver),
        }
    }

    /// What a node can attach: as its drivers say, and for drivers that have said nothing as its type says.
    pub(crate) fn limits_of(&self, node: &NodeName, of_type: Option<&AttachLimits>) -> AttachLimits {
        let mut limits = of_type.cloned().unwrap_or_default();
        for (driver, limit) in self.nodes.get(node).into_iter().flat_map(|node| &node.limits) {
            match limit {
                Some(limit) => limits.insert(Text::clone(driver), *limit),
                None => limits.remove(driver),
            };
        }
        limits
    }
}

fn claim_key(pod: &PodFacts, name: &Text) -> ClaimKey {
    (Text::clone(&pod.key.namespace), Text::clone(name))
}

pub(crate) fn remove_from<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    let Some(values) = index.get_mut(key) else { return };
    values.remove(value);
    if values.is_empty() {
        index.remove(key);
    }
}

/// One more volume: each way to reach the others with each way to reach it, as far as they go together. If none do,
/// all are kept, and the pod is refused with the labels they part on.
fn combined(others: &[Requirements], own: &[Requirements]) -> Vec<Requirements> {
    if own.is_empty() {
        return others.to_vec();
    }
    let pairs = || others.iter().flat_map(|other| own.iter().map(move |own| (other, own)));
    let fitting: BTreeSet<Requirements> =
        pairs().filter(|(other, own)| other.intersect(own).is_ok()).map(|(other, own)| other.and(own)).collect();
    match fitting.is_empty() {
        true => pairs().map(|(other, own)| other.and(own)).collect(),
        false => fitting.into_iter().collect(),
    }
}
