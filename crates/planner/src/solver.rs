//! The state of a placement while it is worked out.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{Effect, PodTerm, PoolName, Price, Refusal, Snapshot, Text, first_untolerated};

use crate::amounts::{Amounts, ResourceTable};
use crate::bins::Bin;
use crate::cells::{Cell, cells};
use crate::classes::{Class, classes};
use crate::config::{MinValuesPolicy, PlaceConfig, ReservationPolicy};
use crate::interner::{Hashed, Want, Wants};
use crate::interrupt::{Budget, Interrupt};
use crate::menus::{MenuId, PoolView};
use crate::pack::Market;
use crate::places::PlaceView;
use crate::readings::readings;
use crate::reserved::Supply;
use crate::rules::{Looks, Rulebook, Rules};
use crate::stance::Stance;
use crate::tallies::{KeyId, Tallies, TallyId};

/// Pods of a class that get new nodes, all with the same demands.
pub(crate) struct Order {
    pub(crate) class: usize,
    pub(crate) stance: Rc<Stance>,
    pub(crate) pool: usize,
    /// The topology domains that were settled for them.
    pub(crate) pin: Want,
    /// What of the pool's types they can use.
    pub(crate) menu: MenuId,
    /// Positions in the class, in the order in which they were placed.
    pub(crate) pods: Vec<usize>,
    /// How many of them have a node by now.
    pub(crate) settled: usize,
}

impl Order {
    pub(crate) fn remaining(&self) -> i64 {
        i64::try_from(self.pods.len() - self.settled).unwrap_or(i64::MAX)
    }
}

/// Pods that fit nowhere.
pub(crate) struct Leftover {
    pub(crate) class: usize,
    pub(crate) pods: Vec<usize>,
    /// The pool whose limits had no room for them in the end.
    pub(crate) crowded_out_of: Option<usize>,
}

/// Pods, the last of their class, for which some pools turned out to have no room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barred {
    pub(crate) pods: usize,
    pub(crate) pools: BTreeSet<usize>,
}

fn soft_taints(snapshot: &Snapshot) -> bool {
    let soft = |taint: &model::Taint| taint.effect == Effect::PreferNoSchedule;
    snapshot.pools.iter().any(|pool| pool.taints.iter().any(soft))
        || snapshot.places.iter().any(|place| place.taints.iter().any(soft))
}

/// Cells by pool, menu and labels.
type CellMap = BTreeMap<(usize, MenuId, Vec<KeyId>), Rc<[Cell]>>;

/// Everything known while a placement is worked out.
pub(crate) struct Solver<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) config: &'a PlaceConfig,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) table: ResourceTable,
    pub(crate) classes: Vec<Class<'a>>,
    pub(crate) looks: Vec<Rc<Looks>>,
    pub(crate) pools: Vec<PoolView<'a>>,
    pub(crate) places: Vec<PlaceView<'a>>,
    pub(crate) tallies: Tallies<'a>,
    pub(crate) wants: Wants,
    /// Whether there are taints that only ask to stay away.
    soft_taints: bool,
    stances: Vec<Option<Rc<[Rc<Stance>]>>>,
    cells: CellMap,
    pub(crate) orders: Vec<Order>,
    pub(crate) bins: Vec<Bin>,
    /// Pods with rules about domains that nodes share, in the order in which they were placed.
    pub(crate) sequence: Vec<(usize, usize)>,
    /// Pods without rules that went to places.
    pub(crate) free_sequence: Vec<(usize, usize)>,
    /// Pods with rules about their host only.
    pub(crate) host_sequence: Vec<(usize, usize)>,
    /// The lowest limit that pods of this plan set on a place.
    pub(crate) ceilings: BTreeMap<(usize, TallyId), u32>,
    pub(crate) leftovers: Vec<Leftover>,
    /// How many pods were put into each cell.
    pub(crate) loads: BTreeMap<Want, u64>,
    /// Per pool, the lowest total price of any way to hold its orders.
    pub(crate) bounds: Vec<f64>,
    /// What one pod of an order adds at least to the price of any node that holds it; nothing is known of others.
    pub(crate) worths: BTreeMap<usize, f64>,
    /// What was useful when nodes were last packed.
    pub(crate) market: Option<Market>,
    /// While limits bind: what each type of the pool costs by what it takes of them.
    pub(crate) thrift: Option<Vec<f64>>,
    /// What the cheapest node costs that holds one pod, by pool without limits, menu and class.
    prices: Hashed<(usize, MenuId, usize), Option<Price>>,
    /// What a pod of a size costs as a part of a node, by pool and menu.
    pub(crate) parts: BTreeMap<(usize, MenuId), BTreeMap<Amounts, Price>>,
    /// What is left of each reservation.
    pub(crate) reservations: BTreeMap<Text, u32>,
    /// Classes that wait for reserved capacity, and for which.
    pub(crate) deferred: BTreeMap<usize, (PoolName, Refusal)>,
    /// What an earlier round learnt, by class.
    pub(crate) barred: BTreeMap<usize, Barred>,
    /// Pools that are closed to the pods that are being seated.
    pub(crate) closed: BTreeSet<usize>,
    /// Whether a pool's limits sent pods elsewhere or nowhere.
    pub(crate) overflowed: bool,
    /// Whether pods were read without their wishes for the sake of pods that would stay out otherwise.
    pub(crate) gave_wishes_up: bool,
    pub(crate) steps: u64,
}

impl<'a> Solver<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        config: &'a PlaceConfig,
        interrupt: &'a Interrupt,
        barred: BTreeMap<usize, Barred>,
    ) -> Self {
        let (classes, table) = classes(snapshot);
        let places = PlaceView::all(snapshot, &table);
        let mut solver = Self {
            pools: PoolView::all(snapshot, &table, config.reservations),
            tallies: Tallies::new(snapshot, &places),
            soft_taints: soft_taints(snapshot),
            places,
            wants: Wants::new(),
            stances: classes.iter().map(|_| None).collect(),
            looks: Vec::new(),
            cells: BTreeMap::new(),
            orders: Vec::new(),
            bins: Vec::new(),
            sequence: Vec::new(),
            free_sequence: Vec::new(),
            host_sequence: Vec::new(),
            ceilings: BTreeMap::new(),
            leftovers: Vec::new(),
            loads: BTreeMap::new(),
            bounds: Vec::new(),
            worths: BTreeMap::new(),
            market: None,
            thrift: None,
            prices: Hashed::default(),
            parts: BTreeMap::new(),
            reservations: BTreeMap::new(),
            deferred: BTreeMap::new(),
            overflowed: !barred.is_empty(),
            gave_wishes_up: false,
            barred,
            closed: BTreeSet::new(),
            steps: 0,
            snapshot,
            config,
            interrupt,
            table,
            classes,
        };
        solver.reservations = crate::reserved::remaining(&solver.pools);
        solver.look_around();
        solver
    }

    /// What the search for cheaper nodes may still cost.
    pub(crate) fn budget(&self) -> Budget<'a> {
        Budget { steps: self.config.steps_max.saturating_sub(self.steps), interrupt: self.interrupt }
    }

    fn rulebook(&mut self) -> (Rulebook<'_, 'a>, &[Class<'a>]) {
        let Self { tallies, places, pools, wants, classes, .. } = self;
        (Rulebook { tallies, places, pools, wants }, classes)
    }

    /// Opens all tallies and finds out how each class looks to them.
    fn look_around(&mut self) {
        let bound = &self.snapshot.bound;
        let mut terms: Vec<&PodTerm> = bound.iter().flat_map(|(kind, _)| &kind.anti_affinity).collect();
        terms.sort();
        terms.dedup();
        let (mut rulebook, classes) = self.rulebook();
        rulebook.open(classes, &terms);
        let sought = rulebook.sought(classes);
        // Classes differ in size far more often than in looks.
        let mut known = BTreeMap::new();
        let mut all = Vec::with_capacity(classes.len());
        for class in classes {
            let looks = known.entry((class.namespace, &class.labels, &class.spec.anti_affinity)).or_insert_with(|| {
                let mut looks = rulebook.looks(class.namespace, &class.labels, class.spec);
                rulebook.seek(&mut looks, &sought);
                Rc::new(looks)
            });
            all.push(Rc::clone(looks));
        }
        self.looks = all;
    }

    /// The readings of a class, worked out once.
    pub(crate) fn stances(&mut self, class: usize) -> Rc<[Rc<Stance>]> {
        if let Some(known) = &self.stances[class] {
            return Rc::clone(known);
        }
        let readings = readings(&self.classes[class], self.config.preferences, self.soft_taints);
        let looks = Rc::clone(&self.looks[class]);
        let (mut rulebook, classes) = self.rulebook();
        let mut stances = Vec::with_capacity(readings.len());
        for reading in readings {
            let rules: Rules = rulebook.rules(&classes[class], &looks, &reading);
            let want = rulebook.wants.number(&reading.requirements);
            let crate::readings::Reading { requirements, tolerations, .. } = reading;
            stances.push(Rc::new(Stance { requirements, want, tolerations, rules }));
        }
        let stances: Rc<[Rc<Stance>]> = stances.into();
        self.stances[class] = Some(Rc::clone(&stances));
        stances
    }

    /// What a pool can sell to a class, if anything that holds one pod.
    pub(crate) fn menu_for(&mut self, pool: usize, class: usize, stance: &Stance) -> Option<MenuId> {
        let menu = self.menu_of(pool, stance)?;
        self.price_for(pool, menu, class).map(|_| menu)
    }

    /// Where a class gets new nodes: the first pool that sells or has reserved something for it.
    pub(crate) fn route(&mut self, class: usize, stance: &Stance) -> Option<(usize, MenuId)> {
        for pool in 0..self.pools.len() {
            if let Some(menu) = self.menu_for(pool, class, stance) {
                return Some((pool, menu));
            }
            match self.supply(pool, class, stance) {
                Supply::Left(menu) => return Some((pool, menu)),
                Supply::Full if self.config.reservations == ReservationPolicy::Strict => {
                    self.defer(class, pool, Refusal::ReservationsFull);
                    return None;
                }
                Supply::Full | Supply::None => {}
            }
        }
        None
    }

    /// What a pool could sell to a class if it had no limits.
    pub(crate) fn menu_without_limits(&mut self, pool: usize, class: usize, stance: &Stance) -> Option<MenuId> {
        let menu = self.menu_of(pool, stance)?;
        let (view, class) = (&self.pools[pool], &self.classes[class]);
        let holds = |candidate: &crate::menus::Candidate| view.holds_alone(candidate.kind, class);
        view.menu(menu).candidates.iter().any(holds).then_some(menu)
    }

    fn menu_of(&mut self, pool: usize, stance: &Stance) -> Option<MenuId> {
        if self.closed.contains(&pool) {
            return None;
        }
        let view = &mut self.pools[pool];
        first_untolerated(&view.pool.taints, &stance.tolerations).is_none().then_some(())?;
        view.join(MenuId::OWN, stance.want, &self.wants)
    }

    /// The price of the cheapest node on a menu that holds one pod of the class within the pool's limits.
    pub(crate) fn price_for(&mut self, pool: usize, menu: MenuId, class: usize) -> Option<Price> {
        // Pods with rules ask one by one. Only what is left of limits could make the answer another one.
        if !self.pools[pool].limits.is_unlimited() {
            return self.price_found(pool, menu, class);
        }
        if let Some(known) = self.prices.get(&(pool, menu, class)) {
            return *known;
        }
        let found = self.price_found(pool, menu, class);
        self.prices.insert((pool, menu, class), found);
        found
    }

    fn price_found(&self, pool: usize, menu: MenuId, class: usize) -> Option<Price> {
        let (view, class) = (&self.pools[pool], &self.classes[class]);
        if !self.lacks_for(pool, menu, class).is_empty() {
            return None;
        }
        let holds = |candidate: &&crate::menus::Candidate| view.takes_alone(candidate.kind, class);
        view.menu(menu).candidates.iter().find(holds).map(|candidate| candidate.price)
    }

    /// Where the types that hold one pod of a class fall short of the variety that the pool insists on.
    pub(crate) fn lacks_for(&self, pool: usize, menu: MenuId, class: &Class<'_>) -> Vec<model::Monotony> {
        let view = &self.pools[pool];
        if view.variety.is_none() || self.config.min_values == MinValuesPolicy::BestEffort {
            return Vec::new();
        }
        let candidates = view.menu(menu).candidates.iter().map(|candidate| candidate.kind);
        let holding = candidates.filter(|kind| view.holds_alone(*kind, class)).take(self.config.types_per_claim_max);
        view.variety.lacks(view, menu, holding)
    }

    /// The cells of a menu for some labels.
    pub(crate) fn cells(&mut self, pool: usize, menu: MenuId, keys: &[KeyId]) -> Rc<[Cell]> {
        let key = (pool, menu, keys.to_vec());
        if let Some(known) = self.cells.get(&key) {
            return Rc::clone(known);
        }
        let found: Rc<[Cell]> = cells(&mut self.pools[pool], menu, keys, &mut self.tallies, &mut self.wants).into();
        self.cells.insert(key, Rc::clone(&found));
        found
    }

    /// Pods with rules between pods for which there was no room in the end.
    ///
    /// Others were placed as if they were there, so that their places are in doubt too.
    pub(crate) fn ruled_overflow(&self) -> BTreeMap<usize, Barred> {
        let mut missing: BTreeMap<usize, Barred> = BTreeMap::new();
        let placed: BTreeSet<(usize, usize)> = self.sequence.iter().copied().collect();
        for leftover in &self.leftovers {
            let count = leftover.pods.iter().filter(|pod| placed.contains(&(leftover.class, **pod))).count();
            if count > 0 {
                let barred = missing.entry(leftover.class).or_default();
                barred.pods += count;
                barred.pools.extend(leftover.crowded_out_of);
            }
        }
        missing
    }

    /// The price of the new nodes as they are filled now.
    pub(crate) fn new_price(&self) -> Price {
        self.bins.iter().map(|bin| bin.price.times(u64::from(bin.times))).sum()
    }

    /// What the plan would be ranked by as it stands.
    pub(crate) fn cost(&self) -> crate::search::Cost {
        let ranks = crate::search::ranks(self);
        let mut unplaced = vec![0; ranks.len()];
        for leftover in &self.leftovers {
            let priority = self.classes[leftover.class].spec.priority;
            if let Some(rank) = ranks.iter().position(|known| *known == priority) {
                unplaced[rank] += leftover.pods.len();
            }
        }
        let nodes: u64 = self.bins.iter().map(|bin| u64::from(bin.times)).sum();
        let price = self.new_price().plus(self.config.node_overhead.times(nodes));
        crate::search::Cost { unplaced, price }
    }
}
