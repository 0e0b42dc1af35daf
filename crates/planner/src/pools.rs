//! Pools prepared for planning: their types with what daemons leave of them, and which types meet which demands.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use model::{
    Attempt, Daemon, InstanceType, Pool, Price, Requirements, Resources, Snapshot, Undefined, Vocabulary,
    first_untolerated,
};

use crate::daemons::{PoolDaemons, once_usable};
use crate::limits::Limits;

/// An instance type as one pool sees it.
pub(crate) struct TypeView<'a> {
    pub(crate) kind: &'a InstanceType,
    /// What daemons take.
    pub(crate) overhead: Rc<Resources>,
    /// What is left for other pods.
    pub(crate) room: Resources,
    /// What a node of this type takes of the pool's limits.
    pub(crate) footprint: Resources,
}

/// A type that meets some demands, and its lowest price under them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) price: Price,
    /// Position in [`PoolView::types`], which are in the order of their names.
    pub(crate) index: usize,
}

/// A pool with everything that planning asks of it again and again.
pub(crate) struct PoolView<'a> {
    pub(crate) pool: &'a Pool,
    /// What its nodes will satisfy once they are usable.
    pub(crate) requirements: Requirements,
    pub(crate) types: Vec<TypeView<'a>>,
    pub(crate) limits: Limits,
    /// The types that the pool's own demands leave.
    own: Rc<[Candidate]>,
    /// Earlier answers; most classes of a cluster make the same few demands.
    answers: BTreeMap<Requirements, Rc<[Candidate]>>,
}

impl<'a> PoolView<'a> {
    /// The pools of a snapshot in the order in which they are tried: heavier first, then by name backwards.
    pub(crate) fn all(snapshot: &'a Snapshot) -> Vec<Self> {
        let mut pools: Vec<&Pool> = snapshot.pools.iter().map(Arc::as_ref).collect();
        pools.sort_by(|left, right| (right.weight, &right.name).cmp(&(left.weight, &left.name)));
        pools.into_iter().map(|pool| Self::new(pool, &snapshot.daemons, &snapshot.vocabulary)).collect()
    }

    fn new(pool: &'a Pool, daemons: &[Arc<Daemon>], vocabulary: &Vocabulary) -> Self {
        let requirements = once_usable(&pool.requirements);
        let limits = Limits::of(pool);
        let mut daemons = PoolDaemons::of(pool, &requirements, daemons, vocabulary);
        let mut kinds: Vec<&InstanceType> = pool.types.iter().map(Arc::as_ref).collect();
        kinds.sort_by(|left, right| left.name.cmp(&right.name));
        let view = |kind: &'a InstanceType| {
            let overhead = daemons.overhead_on(kind);
            let room = kind.allocatable.minus(&overhead);
            TypeView { kind, overhead, room, footprint: limits.footprint(&kind.capacity) }
        };
        let types = kinds.into_iter().map(view).collect();
        let mut pool = Self { pool, requirements, types, limits, own: Rc::from([]), answers: BTreeMap::new() };
        pool.own = pool.meeting(0..pool.types.len(), &pool.requirements).into();
        pool
    }

    /// Whether no node at all can be made from this pool.
    pub(crate) fn is_barren(&self) -> bool {
        self.own.is_empty()
    }

    /// Those of the given types that meet demands and are for sale under them, cheapest first.
    pub(crate) fn meeting(
        &self,
        indices: impl IntoIterator<Item = usize>,
        requirements: &Requirements,
    ) -> Vec<Candidate> {
        let priced = |index: usize| {
            let kind = self.types.get(index)?.kind;
            kind.requirements.intersect(requirements).ok()?;
            kind.cheapest_price(requirements).map(|price| Candidate { price, index })
        };
        let mut candidates: Vec<Candidate> = indices.into_iter().filter_map(priced).collect();
        candidates.sort_unstable();
        candidates
    }

    /// The types a new node for this reading may have, cheapest first; none when the pool does not go with it.
    pub(crate) fn candidates(&mut self, attempt: &Attempt, vocabulary: &Vocabulary) -> Rc<[Candidate]> {
        if first_untolerated(&self.pool.taints, &attempt.tolerations).is_some() {
            return Rc::from([]);
        }
        if let Some(known) = self.answers.get(&attempt.requirements) {
            return Rc::clone(known);
        }
        let goes = self.requirements.satisfy(&attempt.requirements, Undefined::MayBeGiven(vocabulary)).is_ok();
        let found: Rc<[Candidate]> = if goes {
            let own = self.own.iter().map(|candidate| candidate.index);
            self.meeting(own, &self.requirements.and(&attempt.requirements)).into()
        } else {
            Rc::from([])
        };
        self.answers.insert(attempt.requirements.clone(), Rc::clone(&found));
        found
    }
}
