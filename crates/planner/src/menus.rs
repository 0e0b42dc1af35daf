//! Pools prepared for planning, and their menus: which types meet which demands, at which price.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use model::{
    Attachment, CapacityType, HostPort, InstanceType, Mismatch, Offering, Pool, Price, Requirement, Requirements,
    Snapshot, Text, Undefined, Vocabulary,
};

use crate::amounts::{ResourceTable, Rooms, holds};
use crate::answers::{Agreeing, Answers, NOT_SOLD, Prices};
use crate::attached::Attached;
use crate::classes::Class;
use crate::config::ReservationPolicy;
use crate::daemons::{Burden, PoolDaemons, once_usable};
use crate::interner::{Hashed, Index, Want, Wants};
use crate::kinds::{Pricing, offered_keys};
use crate::limits::{Footprint, Limits};
use crate::reserved::{Reserved, from_reservation};
use crate::variety::Variety;

/// An instance type as one pool sees it.
pub(crate) struct KindView<'a> {
    pub(crate) kind: &'a InstanceType,
    /// Its position in [`PoolView::kinds`].
    pub(crate) position: usize,
    /// What daemons take.
    pub(crate) burden: Rc<Burden>,
    /// What a node of this type takes of the pool's limits.
    pub(crate) footprint: Footprint,
}

impl KindView<'_> {
    /// Whether a daemon has one of these ports.
    pub(crate) fn ports_collide(&self, ports: &[HostPort]) -> bool {
        ports.iter().any(|port| self.burden.host_ports.iter().any(|taken| taken.collides_with(port)))
    }
}

/// A type on a menu, and its lowest price there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) price: Price,
    /// Position in [`PoolView::kinds`], which are in the order of their prices, then of their names.
    pub(crate) kind: usize,
}

/// A menu of a pool, by number. The first is what the pool's own demands leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MenuId(usize);

impl MenuId {
    pub(crate) const OWN: Self = Self(0);
}

/// The types that meet certain demands.
pub(crate) struct Menu {
    pub(crate) requirements: Arc<Requirements>,
    /// Cheapest first.
    pub(crate) candidates: Vec<Candidate>,
    /// By position of the type; [`NOT_SOLD`] where it is not on the menu.
    prices: Vec<Price>,
}

impl Menu {
    pub(crate) fn price_of(&self, kind: usize) -> Option<Price> {
        Some(self.prices[kind]).filter(|price| *price != NOT_SOLD)
    }
}

/// Some demands, and the types that meet them once somebody asks for all of these. A node that fills up passes through
/// many demands of which only the last are asked for.
struct Page {
    requirements: Arc<Requirements>,
    /// The menu that this is a part of.
    from: MenuId,
    /// By type, whether it agrees about each of the labels about which this demands more than that one.
    agreeing: Vec<Agreeing>,
    /// By type, its price under all demands if those labels can change it.
    prices: Option<Prices>,
    menu: OnceCell<Menu>,
}

/// A pool with everything that planning asks of it again and again.
pub(crate) struct PoolView<'a> {
    pub(crate) pool: &'a Pool,
    /// What its nodes will satisfy once they are usable.
    pub(crate) requirements: Requirements,
    pub(crate) kinds: Vec<KindView<'a>>,
    /// What daemons leave of each type for other pods.
    pub(crate) rooms: Rooms,
    pub(crate) limits: Limits,
    pub(crate) variety: Variety,
    /// Offerings that are paid for already.
    pub(crate) reserved: Vec<Reserved>,
    pages: Vec<Page>,
    /// The number of the menu for some demands.
    numbers: Index<Arc<Requirements>>,
    answers: Answers<'a>,
    joins: Hashed<(MenuId, Want), Option<MenuId>>,
    values: BTreeMap<(MenuId, Text), Rc<BTreeSet<Text>>>,
    vocabulary: &'a Vocabulary,
}

impl<'a> PoolView<'a> {
    /// The pools of a snapshot in the order in which they are tried: heavier first, then by name backwards.
    pub(crate) fn all(snapshot: &'a Snapshot, table: &ResourceTable, policy: ReservationPolicy) -> Vec<Self> {
        let mut pools: Vec<&Pool> = snapshot.pools.iter().map(Arc::as_ref).collect();
        pools.sort_by(|left, right| (right.weight, &right.name).cmp(&(left.weight, &left.name)));
        pools.into_iter().map(|pool| Self::new(pool, snapshot, table, policy)).collect()
    }

    fn new(pool: &'a Pool, snapshot: &'a Snapshot, table: &ResourceTable, policy: ReservationPolicy) -> Self {
        let vocabulary = snapshot.vocabulary.as_ref();
        let requirements = once_usable(&pool.requirements);
        let limits = Limits::of(pool);
        let mut daemons = PoolDaemons::of(pool, &requirements, &snapshot.daemons, vocabulary);
        let label = vocabulary.reservation_label().filter(|_| policy != ReservationPolicy::Ignored);
        let offered = label.map(|label| reserved_offerings(pool, &requirements, label)).unwrap_or_default();
        // What is reserved is given out by count, and is not part of what can be bought in any number.
        let for_sale = if offered.is_empty() { requirements.clone() } else { unreserved(&requirements) };
        let offered_keys = offered_keys(pool.types.iter().map(Arc::as_ref));
        let mut pricing = Pricing::of(&for_sale, &offered_keys);
        let is_offered = |kind: &InstanceType| offered.iter().any(|(own, _, _)| std::ptr::eq(*own, kind));
        // Only types that can be had at all are worth a look; the others are told of when a pool is barren.
        let priced = pool.types.iter().map(Arc::as_ref).map(|kind| (kind, pricing.price(kind)));
        let mut kinds: Vec<(&InstanceType, Option<Price>)> =
            priced.filter(|(kind, price)| price.is_some() || is_offered(kind)).collect();
        kinds.sort_unstable_by(|left, right| left.1.cmp(&right.1).then_with(|| left.0.name.cmp(&right.0.name)));
        let prices: Vec<Option<Price>> = kinds.iter().map(|(_, price)| *price).collect();
        let mut rooms = Rooms::new(table);
        let view = |(position, (kind, _)): (usize, (&'a InstanceType, Option<Price>))| {
            let burden = daemons.burden_on(kind);
            rooms.push(table, &kind.allocatable, &burden.requests);
            KindView { kind, position, burden, footprint: limits.footprint(&kind.capacity) }
        };
        let kinds: Vec<KindView<'a>> = kinds.into_iter().enumerate().map(view).collect();
        let mut view = Self {
            variety: Variety::of(&requirements),
            pool,
            requirements,
            kinds,
            rooms,
            limits,
            reserved: Vec::new(),
            pages: Vec::new(),
            numbers: Index::default(),
            answers: Answers::new(offered_keys),
            joins: Hashed::default(),
            values: BTreeMap::new(),
            vocabulary,
        };
        let own = prices.into_iter().enumerate().filter_map(|(kind, price)| Some(Candidate { price: price?, kind }));
        let own = view.written(own.collect(), for_sale);
        view.number(own);
        view.add_reserved(&offered);
        view
    }

    fn add_reserved(&mut self, offered: &[(&InstanceType, &Offering, Text)]) {
        let Some(label) = self.vocabulary.reservation_label() else { return };
        for (kind, offering, id) in offered {
            let Some(kind) = self.kinds.iter().position(|view| std::ptr::eq(view.kind, *kind)) else { continue };
            let requirements = self.requirements.and(&from_reservation(label, id));
            let menu = MenuId(self.pages.len());
            self.pages.push(self.written(vec![Candidate { price: offering.price, kind }], requirements));
            let capacity = offering.reservation_capacity.unwrap_or(0);
            self.reserved.push(Reserved { kind, id: Text::clone(id), capacity, menu });
        }
    }

    /// Whether no node at all can be made from this pool.
    pub(crate) fn is_barren(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(crate) fn menu(&self, menu: MenuId) -> &Menu {
        let page = &self.pages[menu.0];
        page.menu.get_or_init(|| self.menu_of(self.sold(page).collect(), Arc::clone(&page.requirements)))
    }

    fn menu_of(&self, mut candidates: Vec<Candidate>, requirements: Arc<Requirements>) -> Menu {
        candidates.sort_unstable();
        let mut prices = vec![NOT_SOLD; self.kinds.len()];
        candidates.iter().for_each(|candidate| prices[candidate.kind] = candidate.price);
        Menu { requirements, candidates, prices }
    }

    /// A page whose types are known.
    fn written(&self, candidates: Vec<Candidate>, requirements: Requirements) -> Page {
        let requirements = Arc::new(requirements);
        let menu = OnceCell::from(self.menu_of(candidates, Arc::clone(&requirements)));
        Page { requirements, from: MenuId::OWN, agreeing: Vec::new(), prices: None, menu }
    }

    /// A page and those before it, back to the first of which all types are known, and these types.
    fn basis<'p>(&'p self, page: &'p Page) -> (Vec<&'p Page>, &'p Menu) {
        let mut pages = Vec::new();
        let mut last = page;
        loop {
            if let Some(menu) = last.menu.get() {
                return (pages, menu);
            }
            pages.push(last);
            last = &self.pages[last.from.0];
        }
    }

    /// The types that meet the demands of a page.
    fn sold<'p>(&'p self, page: &'p Page) -> impl Iterator<Item = Candidate> + 'p {
        let (pages, menu) = self.basis(page);
        let prices = pages.iter().find_map(|page| page.prices.as_deref());
        let agreeing: Vec<&[bool]> = pages.iter().flat_map(|page| &page.agreeing).map(AsRef::as_ref).collect();
        menu.candidates.iter().filter_map(move |candidate| {
            let kind = candidate.kind;
            let agrees = agreeing.iter().all(|agreeing| agreeing[kind]);
            let price = prices.map_or(candidate.price, |prices| prices[kind]);
            (agrees && price != NOT_SOLD).then_some(Candidate { price, kind })
        })
    }

    /// The price of one type on a menu, of which nobody may ever ask for the others.
    pub(crate) fn price_on(&self, menu: MenuId, kind: usize) -> Option<Price> {
        let mut page = &self.pages[menu.0];
        let mut repriced = None;
        loop {
            if let Some(menu) = page.menu.get() {
                let price = menu.price_of(kind)?;
                return Some(repriced.unwrap_or(price)).filter(|price| *price != NOT_SOLD);
            }
            if !page.agreeing.iter().all(|agreeing| agreeing[kind]) {
                return None;
            }
            repriced = repriced.or_else(|| page.prices.as_ref().map(|prices| prices[kind]));
            page = &self.pages[page.from.0];
        }
    }

    /// What the pool's nodes say to a demand: labels it defines must agree, and others must be given later.
    pub(crate) fn satisfies(&self, wanted: &Requirements) -> Result<(), Mismatch> {
        self.requirements.satisfy(wanted, Undefined::MayBeGiven(self.vocabulary))
    }

    /// The part of a menu that meets one more demand; none when nothing does.
    pub(crate) fn join(&mut self, menu: MenuId, want: Want, wants: &Wants) -> Option<MenuId> {
        if want == Want::NOTHING {
            return (menu != MenuId::OWN || !self.menu(menu).candidates.is_empty()).then_some(menu);
        }
        if let Some(known) = self.joins.get(&(menu, want)) {
            return *known;
        }
        let joined = self.joined(menu, wants.get(want));
        let number = joined.map(|joined| self.number(joined));
        self.joins.insert((menu, want), number);
        number
    }

    /// The number of a menu. Two ways to the same demands are one menu, so that nodes with equal pods look alike.
    fn number(&mut self, page: Page) -> MenuId {
        let next = self.pages.len();
        let number = *self.numbers.entry(Arc::clone(&page.requirements)).or_insert(next);
        if number == next {
            self.pages.push(page);
        }
        MenuId(number)
    }

    fn joined(&mut self, menu: MenuId, wanted: &Requirements) -> Option<Page> {
        self.satisfies(wanted).ok()?;
        let before = &self.pages[menu.0].requirements;
        before.intersect(wanted).ok()?;
        let requirements = before.and(wanted);
        if requirements.contradiction().is_some() {
            return None;
        }
        let page = self.page(menu, requirements, wanted);
        let is_met = self.sold(&page).next().is_some();
        is_met.then_some(page)
    }

    /// The part of a menu that meets some demands, which are more than its own about the wanted labels.
    fn page(&mut self, from: MenuId, requirements: Requirements, wanted: &Requirements) -> Page {
        let kinds = || self.kinds.iter().map(|view| view.kind);
        let prices = self.answers.prices(&requirements, wanted, kinds());
        let wanted = wanted.iter().filter_map(|(key, _)| Some((key, requirements.get(key)?)));
        let agreeing = wanted.filter_map(|(key, requirement)| self.answers.agreeing(key, requirement, kinds()));
        let agreeing = agreeing.collect();
        Page { requirements: Arc::new(requirements), from, agreeing, prices, menu: OnceCell::new() }
    }

    /// The values that a label can have on a new node of a menu.
    pub(crate) fn values(&mut self, menu: MenuId, key: &Text) -> Rc<BTreeSet<Text>> {
        if let Some(known) = self.values.get(&(menu, Text::clone(key))) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.values_found(menu, key));
        self.values.insert((menu, Text::clone(key)), Rc::clone(&found));
        found
    }

    fn values_found(&self, menu: MenuId, key: &Text) -> BTreeSet<Text> {
        let Menu { requirements, candidates, .. } = self.menu(menu);
        let own = requirements.get(key);
        let admitted = |value: &&Text| own.is_none_or(|own| own.admits(value));
        let mut values = BTreeSet::new();
        for candidate in candidates {
            let kind = self.kinds[candidate.kind].kind;
            let mut is_stated = false;
            for offering in kind.offerings_for(requirements) {
                if let Some(value) = offering.requirements.get(key).and_then(Requirement::single_value) {
                    is_stated = true;
                    values.extend(Some(value).filter(&admitted).cloned());
                }
            }
            if let Some(stated) = kind.requirements.get(key).filter(|_| !is_stated) {
                is_stated = true;
                values.extend(stated.values().filter(&admitted).cloned());
            }
            if let Some(own) = own.filter(|_| !is_stated && !self.vocabulary.is_well_known(key))
                && own.operator() == model::Operator::In
            {
                values.extend(own.values().cloned());
            }
        }
        values
    }

    /// Whether an empty node of a type holds one pod of a class, within what the pool's limits leave.
    pub(crate) fn takes_alone(&self, kind: usize, class: &Class<'_>) -> bool {
        let footprint = &self.kinds[kind].footprint;
        self.holds_alone(kind, class)
            && (self.limits.is_unlimited() || self.limits.admit(footprint, &Footprint::none()).is_ok())
    }

    /// Whether an empty node of a type holds one pod of a class.
    pub(crate) fn holds_alone(&self, kind: usize, class: &Class<'_>) -> bool {
        let view = &self.kinds[kind];
        holds(&self.rooms[kind], &class.demand)
            && !view.ports_collide(&class.spec.host_ports)
            && (class.attaching.is_nothing()
                || Attached::default().copies(&class.attaching, &view.kind.attach_limits).is_ok())
    }
}

/// The reserved offerings that a pool's demands admit, those without instances left among them.
fn reserved_offerings<'p>(
    pool: &'p Pool,
    requirements: &Requirements,
    label: &str,
) -> Vec<(&'p InstanceType, &'p Offering, Text)> {
    let mut found = Vec::new();
    for kind in pool.types.iter().filter(|kind| kind.offerings.iter().any(|one| one.reservation_capacity.is_some())) {
        let is_reserved = |one: &&Offering| one.available && one.capacity_type() == CapacityType::Reserved;
        for offering in kind.offerings.iter().filter(is_reserved) {
            let admitted = kind.requirements.intersect(requirements).is_ok()
                && offering.requirements.intersect(requirements).is_ok();
            let id = offering.requirements.get(label).and_then(Requirement::single_value).filter(|_| admitted);
            found.extend(id.map(|id| (kind.as_ref(), offering, Text::clone(id))));
        }
    }
    found
}

/// The same demands without reserved capacity.
fn unreserved(requirements: &Requirements) -> Requirements {
    let others = Requirement::new(model::Operator::NotIn, [CapacityType::Reserved.as_str()]);
    others
        .map_or_else(|| requirements.clone(), |others| requirements.clone().with(model::labels::CAPACITY_TYPE, others))
}

/// How many volumes of each driver there are, shared ones once.
pub(crate) fn count_by_driver<'a>(attachments: impl Iterator<Item = &'a Attachment>) -> BTreeMap<Text, u32> {
    let mut counts = BTreeMap::new();
    for attachment in attachments {
        *counts.entry(Text::clone(&attachment.driver)).or_insert(0) += 1;
    }
    counts
}
