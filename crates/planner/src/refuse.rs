//! Why a pod gets no node.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    InstanceType, Mismatch, PlaceRefusal, Pool, PoolRefusal, Refusal, Requirement, Requirements, Resources, Shortfall,
    Spreading, Text, TypeFit, TypeGap, TypeSearch, first_untolerated, labels,
};

use crate::amounts::Rooms;
use crate::config::MinValuesPolicy;
use crate::limits::Footprint;
use crate::menus::{KindView, MenuId, PoolView};
use crate::rules::Rules;
use crate::solver::Solver;
use crate::stance::Stance;
use crate::tallies::Tallies;

/// Why no type of a pool can be bought under the pool's own demands, whatever the size.
fn no_type(pool: &Pool, requirements: &Requirements, requests: Resources) -> Refusal {
    let kinds: Vec<&InstanceType> = pool.types.iter().map(Arc::as_ref).collect();
    let fits = kinds.iter().map(|kind| type_fit(kind, requirements, true));
    let search = Box::new(TypeSearch::new(TypeGap::of(fits), requirements.clone(), requests));
    if kinds.iter().any(|kind| kind.requirements.intersect(requirements).is_ok()) {
        return not_for_sale(search, &kinds);
    }
    no_labels(search, &kinds)
}

/// What a type has of what is wanted.
fn type_fit(kind: &InstanceType, requirements: &Requirements, size: bool) -> TypeFit {
    let labels = kind.requirements.intersect(requirements).is_ok();
    TypeFit { labels, size, sale: kind.cheapest_price(requirements).is_some() }
}

fn no_labels(search: Box<TypeSearch>, kinds: &[&InstanceType]) -> Refusal {
    match closest_mismatch(kinds, &search.requirements) {
        Some(mismatch) => Refusal::NoTypeWithLabels { search, mismatch },
        None => not_for_sale(search, kinds),
    }
}

impl Solver<'_> {
    /// The pools whose own demands leave them without any type, or with too few different ones, and why.
    pub(crate) fn barren_pools(&self) -> Vec<PoolRefusal> {
        let strict = self.config.min_values == MinValuesPolicy::Strict;
        let barrenness = |view: &PoolView<'_>| {
            if view.is_barren() {
                return Some(no_type(view.pool, &view.requirements, Resources::none()));
            }
            let labels = view.variety.lacks(view, MenuId::OWN, 0..view.kinds.len());
            (strict && !labels.is_empty()).then_some(Refusal::TooFewValues { labels })
        };
        let refused = |view| Some((view, barrenness(view)?));
        let pools = self.pools.iter().filter_map(refused);
        pools.map(|(view, refusal)| PoolRefusal { pool: view.pool.name.clone(), refusal }).collect()
    }

    /// The reason of every pool, and of every kind of place, why a pod of the class finds nothing there.
    pub(crate) fn reasons(&mut self, class: usize) -> (Vec<PoolRefusal>, Vec<PlaceRefusal>) {
        let spec = &self.classes[class].spec;
        if !spec.unplanned_rules.is_empty() {
            let refusal = Refusal::UnplannedRules { rules: spec.unplanned_rules.clone() };
            let refuse = |pool: &PoolView<'_>| PoolRefusal { pool: pool.pool.name.clone(), refusal: refusal.clone() };
            return (self.pools.iter().map(refuse).collect(), Vec::new());
        }
        // The most relaxed reading speaks: what it cannot have, no stricter one can.
        let Some(stance) = self.stances(class).last().cloned() else { return (self.contradictions(class), Vec::new()) };
        let pools = (0..self.pools.len()).map(|pool| self.pool_refusal(pool, class, &stance)).collect();
        (pools, self.place_refusals(class, &stance))
    }

    /// What the pod demands and what its volumes demand leaves no reading at all.
    fn contradictions(&self, class: usize) -> Vec<PoolRefusal> {
        let class = &self.classes[class];
        let mismatch = |(own, volume): (&Requirements, &Requirements)| volume.intersect(own).err();
        let Some(mismatch) = class.spec.alternatives.iter().zip(class.volumes).find_map(mismatch) else {
            return Vec::new();
        };
        let refusal = Refusal::VolumeElsewhere { mismatch };
        let refuse = |pool: &PoolView<'_>| PoolRefusal { pool: pool.pool.name.clone(), refusal: refusal.clone() };
        self.pools.iter().map(refuse).collect()
    }

    fn pool_refusal(&mut self, pool: usize, class: usize, stance: &Stance) -> PoolRefusal {
        let view = &self.pools[pool];
        let name = view.pool.name.clone();
        let refusal = if let Some(taint) = first_untolerated(&view.pool.taints, &stance.tolerations) {
            Refusal::Untolerated { taint: taint.clone() }
        } else if let Err(mismatch) = view.satisfies(&stance.requirements) {
            self.label_refusal(class, mismatch)
        } else if let Some(refusal) = self.type_refusal(pool, class, stance) {
            refusal
        } else if let Some(refusal) = self.variety_refusal(pool, class, stance) {
            refusal
        } else {
            self.rule_refusal(pool, class, stance)
        };
        PoolRefusal { pool: name, refusal }
    }

    /// Labels that only a volume asks for are told of as such.
    fn label_refusal(&self, class: usize, mismatch: Mismatch) -> Refusal {
        let key = match &mismatch {
            Mismatch::Undefined { key, .. } | Mismatch::Disjoint { key, .. } => key,
        };
        let class = &self.classes[class];
        let asked = class.spec.alternatives.iter().any(|alternative| alternative.get(key).is_some());
        if !asked && class.volumes.iter().any(|volume| volume.get(key).is_some()) {
            Refusal::VolumeElsewhere { mismatch }
        } else {
            Refusal::Incompatible { mismatch }
        }
    }

    /// What keeps every single type of the pool from holding one such pod on an empty node.
    fn type_refusal(&mut self, pool: usize, class: usize, stance: &Stance) -> Option<Refusal> {
        let menu = self.pools[pool].join(MenuId::OWN, stance.want, &self.wants);
        let (view, class) = (&self.pools[pool], &self.classes[class]);
        if view.is_barren() {
            return Some(no_type(view.pool, &view.requirements, class.spec.requests.clone()));
        }
        // Most often there are types, and only limits are in the way: no need to ask every type anew.
        let candidates = menu.iter().flat_map(|menu| &view.menu(*menu).candidates).map(|candidate| candidate.kind);
        let holding = candidates.filter(|kind| view.holds_alone(*kind, class)).map(|kind| &view.kinds[kind]);
        let holding: Vec<&KindView<'_>> = holding.collect();
        if !holding.is_empty() {
            return smallest_excess(view, &holding).map(|shortfall| Refusal::LimitReached { shortfall });
        }
        let requirements = view.requirements.and(&stance.requirements);
        let labelled = |kind: &&KindView<'_>| kind.kind.requirements.intersect(&requirements).is_ok();
        let labelled: Vec<&KindView<'_>> = view.kinds.iter().filter(labelled).collect();
        let holds = |kind: &KindView<'_>| self.table.shortfall(&class.demand, &view.rooms[kind.position]).is_none();
        let search = || {
            let gap = TypeGap::of(view.kinds.iter().map(|kind| type_fit(kind.kind, &requirements, holds(kind))));
            Box::new(TypeSearch::new(gap, requirements.clone(), class.spec.requests.clone()))
        };
        if labelled.is_empty() {
            let all: Vec<&InstanceType> = view.kinds.iter().map(|kind| kind.kind).collect();
            return Some(no_labels(search(), &all));
        }
        let large: Vec<&KindView<'_>> = labelled.iter().copied().filter(|kind| holds(kind)).collect();
        if large.is_empty() {
            let shortfall = self.smallest_shortfall(&view.rooms, &labelled, &class.demand)?;
            return Some(Refusal::NoTypeLargeEnough { search: search(), shortfall });
        }
        if large.iter().all(|kind| kind.ports_collide(&class.spec.host_ports)) {
            let port = class.spec.host_ports.first()?.clone();
            return Some(Refusal::PortTaken { port });
        }
        let attached = crate::attached::Attached::default();
        let attach = |kind: &&KindView<'_>| attached.copies(&class.attaching, &kind.kind.attach_limits).err();
        let drivers: Vec<Text> = large.iter().filter_map(attach).collect();
        if drivers.len() == large.len() {
            let driver = drivers.into_iter().min()?;
            let limits = large.iter().filter_map(|kind| kind.kind.attach_limits.get(&driver));
            let limit = limits.copied().max().unwrap_or(0);
            let shared = class.attaching.shared.iter().filter(|attachment| attachment.driver == driver).count();
            let own = class.attaching.own.get(&driver).copied().unwrap_or(0);
            let wanted = own + u32::try_from(shared).unwrap_or(u32::MAX);
            return Some(Refusal::TooManyVolumes { driver, wanted, limit });
        }
        let sold: Vec<&KindView<'_>> =
            large.iter().copied().filter(|kind| kind.kind.cheapest_price(&requirements).is_some()).collect();
        if sold.is_empty() {
            let all: Vec<&InstanceType> = large.iter().map(|kind| kind.kind).collect();
            return Some(not_for_sale(search(), &all));
        }
        smallest_excess(view, &sold).map(|shortfall| Refusal::LimitReached { shortfall })
    }

    /// What the pool insists on and the types for such a pod do not offer.
    fn variety_refusal(&mut self, pool: usize, class: usize, stance: &Stance) -> Option<Refusal> {
        let menu = self.pools[pool].join(crate::menus::MenuId::OWN, stance.want, &self.wants)?;
        let labels = self.lacks_for(pool, menu, &self.classes[class]);
        (!labels.is_empty()).then_some(Refusal::TooFewValues { labels })
    }

    /// Of the type that lacks the fewest resources, and of those has the most, what it lacks first.
    fn smallest_shortfall(&self, rooms: &Rooms, kinds: &[&KindView<'_>], demand: &[i64]) -> Option<Shortfall> {
        let lacking = |kind: &&KindView<'_>| {
            let room = &rooms[kind.position];
            let shortfall = self.table.shortfall(demand, room)?;
            let short = demand.iter().zip(room).filter(|(wanted, room)| **wanted > 0 && wanted > room).count();
            Some((short, shortfall.resource.clone(), Reverse(shortfall.available), shortfall))
        };
        kinds.iter().filter_map(lacking).min().map(|(_, _, _, shortfall)| shortfall)
    }

    /// The rule between pods that keeps such a pod out of every cell of the pool.
    fn rule_refusal(&mut self, pool: usize, class: usize, stance: &Stance) -> Refusal {
        let cells = match self.menu_for(pool, class, stance) {
            Some(menu) => self.cells(pool, menu, &stance.rules.keys),
            None => return Refusal::NotReached,
        };
        let Rules { spread, near, away, host_near, .. } = &stance.rules;
        let domain_of = |cell: &crate::cells::Cell, key| {
            cell.domains.iter().find(|(known, _)| *known == key).map(|(_, domain)| *domain)
        };
        let blocked = |allows: &dyn Fn(&crate::cells::Cell) -> bool| !cells.iter().any(allows);
        for rule in spread {
            let allows = |cell: &crate::cells::Cell| {
                domain_of(cell, rule.key).is_some_and(|domain| crate::cells::spread_allows(rule, domain, &self.tallies))
            };
            if blocked(&allows) {
                return Refusal::SpreadTooUneven { spreading: self.spreading(rule) };
            }
        }
        for rule in near.iter().chain(host_near) {
            let allows = |cell: &crate::cells::Cell| {
                domain_of(cell, rule.key).is_some_and(|domain| crate::cells::near_allows(rule, domain, &self.tallies))
            };
            if Tallies::is_host(self.tallies.key_name(rule.key)) || blocked(&allows) {
                return Refusal::NobodyToJoin { key: Text::clone(self.tallies.key_name(rule.key)) };
            }
        }
        for rule in away {
            let allows = |cell: &crate::cells::Cell| {
                domain_of(cell, rule.key).is_none_or(|domain| crate::cells::away_allows(rule, domain, &self.tallies))
            };
            if blocked(&allows) {
                return Refusal::Repelled { key: Text::clone(self.tallies.key_name(rule.key)) };
            }
        }
        // Each rule alone leaves a cell, but no cell is left by all of them together.
        let name = |key| Text::clone(self.tallies.key_name(key));
        match (spread.first(), away.first(), near.first()) {
            (Some(rule), ..) => Refusal::SpreadTooUneven { spreading: self.spreading(rule) },
            (None, Some(rule), _) => Refusal::Repelled { key: name(rule.key) },
            (None, None, Some(rule)) => Refusal::NobodyToJoin { key: name(rule.key) },
            (None, None, None) => self.limit_refusal(pool),
        }
    }

    /// Alone a pod would fit; together with all others there is no room within the limit.
    fn limit_refusal(&self, pool: usize) -> Refusal {
        let view = &self.pools[pool];
        let kinds: Vec<&KindView<'_>> = view.kinds.iter().collect();
        let tightest = || kinds.iter().filter_map(|kind| view.limits.tightest(&kind.footprint)).min();
        let shortfall = smallest_excess(view, &kinds).or_else(tightest);
        shortfall.map_or(Refusal::NotReached, |shortfall| Refusal::LimitReached { shortfall })
    }

    fn spreading(&self, rule: &crate::rules::SpreadRule) -> Spreading {
        let tally = self.tallies.get(rule.tally);
        let name = |domain| Text::clone(self.tallies.domain_name(rule.key, domain));
        let mut domains: Vec<(Text, u32)> =
            rule.domains.iter().map(|domain| (name(*domain), tally.count(*domain))).collect();
        domains.sort();
        Spreading { key: Text::clone(self.tallies.key_name(rule.key)), max_skew: rule.max_skew, domains }
    }

    fn place_refusals(&self, class: usize, stance: &Stance) -> Vec<PlaceRefusal> {
        let mut told: Vec<PlaceRefusal> = Vec::new();
        for (index, view) in self.places.iter().enumerate().filter(|(_, view)| view.is_open()) {
            let own = view.refusal(&self.classes[class], stance, &self.table, &self.snapshot.vocabulary);
            let refusal = own.unwrap_or_else(|| self.place_rule_refusal(index, stance));
            let alike = |known: &&mut PlaceRefusal| {
                known.stage == view.place.stage
                    && known.pool == view.place.pool
                    && std::mem::discriminant(&known.refusal) == std::mem::discriminant(&refusal)
            };
            match told.iter_mut().find(alike) {
                Some(known) => {
                    known.count += 1;
                    if closer(&refusal, &known.refusal) {
                        known.refusal = refusal;
                    }
                }
                None => told.push(PlaceRefusal {
                    stage: view.place.stage,
                    pool: view.place.pool.clone(),
                    count: 1,
                    refusal,
                }),
            }
        }
        told
    }

    fn place_rule_refusal(&self, place: usize, stance: &Stance) -> Refusal {
        let rules = &stance.rules;
        let uneven = rules.spread.iter().find(|rule| {
            let domain = self.tallies.domain_of_place(rule.key, place);
            domain.is_none_or(|domain| !crate::cells::spread_allows(rule, domain, &self.tallies))
        });
        if let Some(rule) = uneven {
            return Refusal::SpreadTooUneven { spreading: self.spreading(rule) };
        }
        if let Some(rule) = rules.near.iter().chain(&rules.host_near).next() {
            return Refusal::NobodyToJoin { key: Text::clone(self.tallies.key_name(rule.key)) };
        }
        let key = rules.away.first().map(|rule| Text::clone(self.tallies.key_name(rule.key)));
        Refusal::Repelled { key: key.unwrap_or_else(|| Text::from(labels::HOSTNAME)) }
    }
}

/// Whether a reason of the same kind is less far off.
fn closer(new: &Refusal, known: &Refusal) -> bool {
    match (new, known) {
        (Refusal::TooFull { shortfall: new }, Refusal::TooFull { shortfall: known }) => {
            (&new.resource, Reverse(new.available)) < (&known.resource, Reverse(known.available))
        }
        _ => false,
    }
}

/// Of the type that parts on the fewest labels, the first of them.
fn closest_mismatch(kinds: &[&InstanceType], requirements: &Requirements) -> Option<Mismatch> {
    let mismatches = |kind: &&InstanceType| -> (usize, Option<Mismatch>, String) {
        let single = |(key, requirement): (&Text, &Requirement)| {
            kind.requirements.intersect(&Requirements::none().with(key, requirement.clone())).err()
        };
        let mut found = requirements.iter().filter_map(single);
        let first = found.next();
        (usize::from(first.is_some()) + found.count(), first, kind.name.to_string())
    };
    let closest = kinds.iter().map(mismatches).min_by(|left, right| (left.0, &left.2).cmp(&(right.0, &right.2)));
    closest.and_then(|(_, mismatch, _)| mismatch)
}

/// In which zones the types could be had instead.
fn not_for_sale(search: Box<TypeSearch>, kinds: &[&InstanceType]) -> Refusal {
    let zone = search.requirements.get(labels::ZONE);
    let mut anywhere = search.requirements.clone();
    anywhere.remove(labels::ZONE);
    let offerings = kinds.iter().flat_map(|kind| kind.offerings_for(&anywhere));
    let zones_for_sale: BTreeSet<Text> = offerings.filter_map(|offering| offering.zone().cloned()).collect();
    let zones_wanted = zone.filter(|_| !zones_for_sale.is_empty()).map(|zone| Box::new(zone.clone()));
    Refusal::NoOffering { search, zones_for_sale, zones_wanted }
}

/// Of the type that comes closest to what the pool's limits leave, by what it exceeds it.
fn smallest_excess(pool: &PoolView<'_>, kinds: &[&KindView<'_>]) -> Option<Shortfall> {
    let excess = |kind: &&KindView<'_>| pool.limits.admit(&kind.footprint, &Footprint::none()).err();
    if kinds.iter().any(|kind| excess(kind).is_none()) {
        return None;
    }
    kinds.iter().filter_map(excess).min_by_key(|shortfall| (shortfall.resource.clone(), shortfall.wanted))
}
