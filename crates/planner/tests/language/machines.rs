//! Types and pools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    AttachLimits, InstanceType, Offering, Pool, PoolName, Price, Requirement, Requirements, ResourceName, Resources,
    TypeName, labels,
};

use super::RESERVATION;
use super::words::{Words, counted, label, long_key, number, of_driver, requirement, set, taint};

pub(super) fn instance_type(name: &str, words: &Words<'_>) -> Arc<InstanceType> {
    let mut capacity = Resources::none().with(ResourceName::pods(), 110);
    let (mut overhead, mut attach_limits) = (Resources::none(), AttachLimits::new());
    let mut known: BTreeMap<String, Requirement> = BTreeMap::new();
    known.insert(labels::ARCH.to_owned(), Requirement::is("amd64"));
    known.insert(labels::OS.to_owned(), Requirement::is("linux"));
    let mut offerings = Vec::new();
    for word in &words.words {
        let Some((key, value)) = word.split_once('=') else {
            offerings.push(offering(word, words));
            continue;
        };
        match (key, key.strip_prefix("overhead.")) {
            ("arch" | "os", _) => drop(known.insert(long_key(key).to_owned(), Requirement::is(value))),
            ("label", _) => known.extend([label(value)]),
            ("attach", _) => {
                let (driver, limit) = of_driver(value);
                attach_limits.insert(driver, number(limit));
            }
            (_, Some(key)) if set(&mut overhead, key, value) => {}
            _ if set(&mut capacity, key, value) => {}
            _ => words.unknown(word, "a type has resources, overhead.*, arch, os, label, attach and offerings"),
        }
    }
    let mut requirements = Requirements::none().with(labels::INSTANCE_TYPE, Requirement::is(name));
    for key in [labels::ZONE, labels::CAPACITY_TYPE, RESERVATION] {
        let values = offerings.iter().filter_map(|offering: &Offering| offering.requirements.get(key)?.single_value());
        let values: BTreeSet<_> = values.cloned().collect();
        if key != RESERVATION || !values.is_empty() {
            requirements.add(key, Requirement::any_of(values));
        }
    }
    known.into_iter().for_each(|(key, requirement)| requirements.add(&key, requirement));
    let kind = InstanceType::new(TypeName::new(name), requirements, capacity, overhead, offerings);
    kind.with_attach_limits(attach_limits)
}

/// `zone:price`, `capacity:zone:price` or `reserved:zone:price:id*count`, with `!` in front when it is not for sale.
fn offering(word: &str, words: &Words<'_>) -> Offering {
    let (available, word) = word.strip_prefix('!').map_or((true, word), |word| (false, word));
    let parts: Vec<&str> = word.split(':').collect();
    let (capacity, zone, price, reservation) = match parts[..] {
        [zone, price] => ("on-demand", zone, price, None),
        [capacity, zone, price] => (capacity, zone, price, None),
        ["reserved", zone, price, reservation] => ("reserved", zone, price, Some(counted(reservation))),
        _ => {
            words.unknown(word, "write an offering as zone:price, capacity:zone:price or reserved:zone:price:id*count")
        }
    };
    let mut requirements = Requirements::none()
        .with(labels::ZONE, Requirement::is(zone))
        .with(labels::CAPACITY_TYPE, Requirement::is(capacity));
    if let Some((id, _)) = reservation {
        requirements.add(RESERVATION, Requirement::is(id));
    }
    let reservation_capacity = reservation.map(|(_, count)| count.unwrap_or(1));
    Offering { requirements, price: Price::from_dollars(number(price)), available, reservation_capacity }
}

pub(super) fn pool(name: &str, words: &Words<'_>) -> Pool {
    let mut pool = Pool {
        name: PoolName::new(name),
        weight: 0,
        requirements: Requirements::none().with(labels::NODE_POOL, Requirement::is(name)),
        taints: Vec::new(),
        limits: Resources::none(),
        in_use: Resources::none(),
        types: Arc::from([]),
    };
    let hint = "a pool has weight, limit.*, used.*, require, label and taint";
    for (key, value) in words.pairs(hint) {
        let (limit, used) = (key.strip_prefix("limit."), key.strip_prefix("used."));
        match (key, limit, used) {
            ("weight", ..) => pool.weight = number(value),
            ("require" | "label", ..) => {
                let (key, requirement) = if key == "label" { label(value) } else { requirement(value) };
                pool.requirements.add(&key, requirement);
            }
            ("taint", ..) => pool.taints.push(taint(value)),
            (_, Some(key), _) if set(&mut pool.limits, key, value) => {}
            (_, _, Some(key)) if set(&mut pool.in_use, key, value) => {}
            _ => words.unknown(key, hint),
        }
    }
    pool
}
