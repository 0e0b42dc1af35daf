//! New nodes in the making.

use std::rc::Rc;

use model::{HostPort, Price};

use crate::amounts::{Amounts, add_times, copies_beside, holds};
use crate::attached::Attached;
use crate::config::MinValuesPolicy;
use crate::interner::Want;
use crate::menus::{MenuId, PoolView};
use crate::rules::HostLimit;
use crate::solver::{Order, Solver};
use crate::stance::Stance;
use crate::tallies::{Domain, KeyId, TallyId};
use crate::variety::Variety;

/// Pods with rules about their host, counted on one node.
///
/// The kube-scheduler looks at these rules pod by pod, and the order among pods of different classes is not settled
/// when nodes are filled. So every rule must hold against all of them, whoever comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostBook(Vec<HostEntry>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HostEntry {
    tally: TallyId,
    count: u32,
    /// The lowest limit that any pod of the node sets.
    most: u32,
}

impl HostBook {
    fn entry(&self, tally: TallyId) -> Option<&HostEntry> {
        self.0.iter().find(|entry| entry.tally == tally)
    }

    fn entry_mut(&mut self, tally: TallyId) -> &mut HostEntry {
        let position = self.0.iter().position(|entry| entry.tally == tally).unwrap_or_else(|| {
            self.0.push(HostEntry { tally, count: 0, most: u32::MAX });
            self.0.len() - 1
        });
        &mut self.0[position]
    }

    pub(crate) fn count(&self, tally: TallyId) -> u32 {
        self.entry(tally).map_or(0, |entry| entry.count)
    }

    /// How many pods with these looks and limits may still come.
    fn copies(&self, counted: &[TallyId], limits: &[HostLimit]) -> i64 {
        let mut most = i64::MAX;
        for limit in limits {
            let left = i64::from(limit.most) - i64::from(self.count(limit.tally));
            if left < i64::from(limit.counts_itself) {
                return 0;
            }
            if limit.counts_itself {
                most = most.min(left);
            }
        }
        for entry in self.0.iter().filter(|entry| counted.contains(&entry.tally)) {
            most = most.min(i64::from(entry.most) - i64::from(entry.count));
        }
        most.max(0)
    }

    fn add(&mut self, counted: &[TallyId], limits: &[HostLimit], pods: u32) {
        for tally in counted {
            self.entry_mut(*tally).count += pods;
        }
        for limit in limits {
            let entry = self.entry_mut(limit.tally);
            entry.most = entry.most.min(limit.most);
        }
    }
}

/// Pods of one order on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) order: usize,
    pub(crate) pods: u32,
}

/// A new node, or several alike.
#[derive(Clone, Debug)]
pub(crate) struct Bin {
    pub(crate) pool: usize,
    pub(crate) menu: MenuId,
    /// The type that it is filled for.
    pub(crate) kind: Option<usize>,
    pub(crate) price: Price,
    pub(crate) used: Amounts,
    pub(crate) loads: Vec<Load>,
    pub(crate) hosts: HostBook,
    pub(crate) host_ports: Vec<HostPort>,
    pub(crate) attached: Attached,
    /// The pin of its pods; nothing while all of them go anywhere.
    pub(crate) pin: Want,
    pub(crate) domains: Vec<(KeyId, Domain)>,
    /// The variety of types that it keeps; none until it has pods.
    pub(crate) variety: Option<Variety>,
    /// Whether pods that wish to share a host may still come, so that its type is not settled.
    pub(crate) is_open: bool,
    /// How many such nodes there are.
    pub(crate) times: u32,
}

impl Bin {
    pub(crate) fn opened(pool: usize, menu: MenuId, domains: Vec<(KeyId, Domain)>, resources: usize) -> Self {
        Self {
            pool,
            menu,
            kind: None,
            price: Price::ZERO,
            used: vec![0; resources].into(),
            loads: Vec::new(),
            hosts: HostBook::default(),
            host_ports: Vec::new(),
            attached: Attached::default(),
            pin: Want::NOTHING,
            domains,
            variety: None,
            is_open: false,
            times: 1,
        }
    }

    /// Whether its pods have neither ports of the host nor volumes.
    pub(crate) fn is_plain(&self) -> bool {
        self.host_ports.is_empty() && self.attached.by_driver.is_empty()
    }

    pub(crate) fn load(&mut self, order: usize, pods: u32) {
        match self.loads.iter_mut().find(|load| load.order == order) {
            Some(load) => load.pods += pods,
            None => self.loads.push(Load { order, pods }),
        }
    }
}

/// What it would take to add pods of an order to a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    pub(crate) copies: i64,
    pub(crate) menu: MenuId,
    /// What the node will cost then, as the type it is filled for.
    pub(crate) price: Price,
}

impl Solver<'_> {
    /// The menu of a node after a pod of a reading came to it.
    pub(crate) fn joined(&mut self, pool: usize, menu: MenuId, stance: &Stance) -> Option<MenuId> {
        let taints = &self.pools[pool].pool.taints;
        model::first_untolerated(taints, &stance.tolerations).is_none().then_some(())?;
        self.pools[pool].join(menu, stance.want, &self.wants)
    }

    /// The menu of a node after pods of an order came to it.
    fn joined_menu(&mut self, pool: usize, menu: MenuId, stance: &Stance, pin: Want) -> Option<MenuId> {
        let menu = self.joined(pool, menu, stance)?;
        self.pools[pool].join(menu, pin, &self.wants)
    }

    /// How many of `most` pods of an order can join a node that is filled for a type, rules about labels last.
    pub(crate) fn joining(&mut self, bin: &Bin, kind: usize, order: usize, most: i64) -> Option<Joining> {
        let Order { class, pin, .. } = self.orders[order];
        if bin.pin != pin && bin.pin != Want::NOTHING && pin != Want::NOTHING {
            return None;
        }
        // Whatever else is asked of the node, its type must be one that these pods can use by themselves.
        self.pools[bin.pool].menu(self.orders[order].menu).price_of(kind)?;
        let stance = Rc::clone(&self.orders[order].stance);
        let (class, looks) = (&self.classes[class], &self.looks[class]);
        let view = &self.pools[bin.pool].kinds[kind];
        let mut copies = copies_beside(&class.demand, &bin.used, &self.pools[bin.pool].rooms[kind]).min(most);
        if copies <= 0 {
            return None;
        }
        if !stance.rules.host.is_empty() {
            copies = copies.min(bin.hosts.copies(&looks.counted_by_host, &stance.rules.host));
        } else if !stance.rules.is_free() && !looks.counted_by_host.is_empty() {
            copies = copies.min(bin.hosts.copies(&looks.counted_by_host, &[]));
        }
        let ports = &class.spec.host_ports;
        if !ports.is_empty() {
            let taken = |port: &HostPort| bin.host_ports.iter().any(|taken| taken.collides_with(port));
            let free = !ports.iter().any(taken) && !view.ports_collide(ports);
            copies = copies.min(i64::from(free));
        }
        copies = copies.min(bin.attached.copies(&class.attaching, &view.kind.attach_limits).unwrap_or(0));
        if copies == 0 {
            return None;
        }
        let menu = self.joined_menu(bin.pool, bin.menu, &stance, pin)?;
        let price = self.pools[bin.pool].price_on(menu, kind)?;
        let copies = self.varied_copies(bin, menu, order, copies);
        (copies > 0).then_some(Joining { copies, menu, price })
    }

    /// How many of some pods leave enough different types that hold the node.
    fn varied_copies(&self, bin: &Bin, menu: MenuId, order: usize, copies: i64) -> i64 {
        let pool = &self.pools[bin.pool];
        let variety = match (&bin.variety, self.config.min_values) {
            _ if pool.variety.is_none() => return copies,
            (Some(variety), _) => variety,
            (None, MinValuesPolicy::Strict) => &pool.variety,
            // The first pod of a node takes what variety there is.
            (None, MinValuesPolicy::BestEffort) => return copies.min(1),
        };
        let demand = &self.classes[self.orders[order].class].demand;
        let enough = |copies: i64| {
            let mut filled = bin.used.clone();
            add_times(&mut filled, demand, copies);
            let candidates = pool.menu(menu).candidates.iter().map(|candidate| candidate.kind);
            let holding = candidates.filter(|kind| holds(&pool.rooms[*kind], &filled));
            variety.lacks(pool, menu, holding.take(self.config.types_per_claim_max)).is_empty()
        };
        // More pods never leave more types.
        let (mut least, mut most) = (0, copies);
        while least < most {
            let middle = least + (most - least + 1) / 2;
            if enough(middle) { least = middle } else { most = middle - 1 }
        }
        least
    }

    /// The variety that a node keeps from its first pods on.
    fn settle_variety(&self, bin: &mut Bin) {
        let pool = &self.pools[bin.pool];
        if pool.variety.is_none() || bin.variety.is_some() {
            return;
        }
        let candidates = pool.menu(bin.menu).candidates.iter().map(|candidate| candidate.kind);
        let holding = candidates.filter(|kind| holds_bin(pool, bin, *kind)).take(self.config.types_per_claim_max);
        let lacks = pool.variety.lacks(pool, bin.menu, holding);
        bin.variety = Some(pool.variety.lowered(&lacks));
    }

    /// Adds waiting pods of an order to one node.
    pub(crate) fn add_to(&mut self, bin: &mut Bin, order: usize, pods: i64, joining: Joining) {
        self.move_to(bin, order, pods, joining);
        self.orders[order].settled += usize::try_from(pods).unwrap_or(0);
    }

    /// Adds pods of an order that have a node already to another one.
    pub(crate) fn move_to(&self, bin: &mut Bin, order: usize, pods: i64, joining: Joining) {
        self.put(bin, order, u32::try_from(pods).unwrap_or(u32::MAX));
        bin.menu = joining.menu;
        bin.price = joining.price;
        self.settle_variety(bin);
    }

    pub(crate) fn put(&self, bin: &mut Bin, order: usize, count: u32) {
        let entry = &self.orders[order];
        let (class, looks) = (&self.classes[entry.class], &self.looks[entry.class]);
        add_times(&mut bin.used, &class.demand, i64::from(count));
        if !entry.stance.rules.is_free() {
            bin.hosts.add(&looks.counted_by_host, &entry.stance.rules.host, count);
        }
        bin.host_ports.extend(class.spec.host_ports.iter().cloned());
        bin.attached.add(&class.attaching, count);
        if entry.pin != Want::NOTHING {
            bin.pin = entry.pin;
        }
        bin.load(order, count);
    }

    /// Whether a node opened by pods that share a host takes one more.
    pub(crate) fn bin_takes(&mut self, bin: usize, class: usize, stance: &Stance) -> bool {
        let pool = self.bins[bin].pool;
        let Some(menu) = self.joined_menu(pool, self.bins[bin].menu, stance, Want::NOTHING) else { return false };
        let (bin, class, looks) = (&self.bins[bin], &self.classes[class], &self.looks[class]);
        if bin.hosts.copies(&looks.counted_by_host, &stance.rules.host) == 0 {
            return false;
        }
        let ports = &class.spec.host_ports;
        if ports.iter().any(|port| bin.host_ports.iter().any(|taken| taken.collides_with(port))) {
            return false;
        }
        let pool = &self.pools[pool];
        pool.menu(menu).candidates.iter().any(|candidate| {
            let view = &pool.kinds[candidate.kind];
            let room = &pool.rooms[candidate.kind];
            copies_beside(&class.demand, &bin.used, room) > 0
                && holds(room, &bin.used)
                && !view.ports_collide(ports)
                && bin.attached.copies(&class.attaching, &view.kind.attach_limits).is_ok()
        })
    }

    /// Puts one pod that wants to share a host onto a node of its group.
    pub(crate) fn bin_take(&mut self, bin: usize, class: usize, stance: &Rc<Stance>, pod: usize) {
        let pool = self.bins[bin].pool;
        let menu = self.joined_menu(pool, self.bins[bin].menu, stance, Want::NOTHING);
        let same = |load: &&Load| {
            let order = &self.orders[load.order];
            order.class == class && Rc::ptr_eq(&order.stance, stance)
        };
        let known = self.bins[bin].loads.iter().find(same).map(|load| load.order);
        let menu = menu.unwrap_or(self.bins[bin].menu);
        let order = known.unwrap_or_else(|| {
            let stance = Rc::clone(stance);
            self.orders.push(Order { class, stance, pool, pin: Want::NOTHING, menu, pods: Vec::new(), settled: 0 });
            self.orders.len() - 1
        });
        self.orders[order].pods.push(pod);
        self.orders[order].settled += 1;
        let mut filled = self.bins[bin].clone();
        self.put(&mut filled, order, 1);
        filled.menu = menu;
        self.settle_variety(&mut filled);
        self.bins[bin] = filled;
    }
}

/// The cheapest type of a node's menu that holds what is on it, limits aside.
pub(crate) fn cheapest_holding(pool: &PoolView<'_>, bin: &Bin) -> Option<crate::menus::Candidate> {
    let fits = |candidate: &&crate::menus::Candidate| holds_bin(pool, bin, candidate.kind);
    pool.menu(bin.menu).candidates.iter().find(fits).copied()
}

/// Whether a node of a type holds what is on a bin.
pub(crate) fn holds_bin(pool: &PoolView<'_>, bin: &Bin, kind: usize) -> bool {
    if !holds(&pool.rooms[kind], &bin.used) {
        return false;
    }
    // Most nodes have neither, and hundreds of types are asked about each.
    if bin.is_plain() {
        return true;
    }
    let view = &pool.kinds[kind];
    let attaches =
        |(driver, count): (&model::Text, &u32)| view.kind.attach_limits.get(driver).is_none_or(|limit| count <= limit);
    !view.ports_collide(&bin.host_ports) && bin.attached.by_driver.iter().all(attaches)
}
