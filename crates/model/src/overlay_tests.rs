//! Overlays in a few lines each: types and pools are always the same, overlays are words.

use super::*;
use crate::{AttachLimits, CapacityType, Operator, Requirement, labels};

fn offering(capacity: CapacityType, zone: &str, dollars: f64) -> Offering {
    let requirements = Requirements::none()
        .with(labels::ZONE, Requirement::is(zone))
        .with(labels::CAPACITY_TYPE, Requirement::is(capacity.as_str()));
    Offering { requirements, price: Price::from_dollars(dollars), available: true, reservation_capacity: None }
}

fn kind(name: &str, arch: &str, dollars: f64) -> Arc<InstanceType> {
    let offerings = vec![
        offering(CapacityType::OnDemand, "a", dollars),
        offering(CapacityType::OnDemand, "b", dollars),
        offering(CapacityType::Spot, "a", dollars / 2.0),
    ];
    let requirements = Requirements::none()
        .with(labels::INSTANCE_TYPE, Requirement::is(name))
        .with(labels::ARCH, Requirement::is(arch))
        .with(labels::ZONE, Requirement::any_of(["a", "b"]))
        .with(labels::CAPACITY_TYPE, Requirement::any_of(["on-demand", "spot"]));
    let capacity = Resources::none().with(ResourceName::cpu(), 4000).with(ResourceName::new("gpu"), 1);
    let overhead = Resources::none().with(ResourceName::cpu(), 100);
    let limits = AttachLimits::from([(Text::from("ebs"), 25)]);
    InstanceType::new(TypeName::new(name), requirements, capacity, overhead, offerings).with_attach_limits(limits)
}

/// Pool `web` has the label `team=web` and pool `db` has `team=db`; both sell `arm` for $1 and `amd` for $2.
fn pools() -> BTreeMap<PoolName, Assortment> {
    let types: Arc<[Arc<InstanceType>]> = Arc::from([kind("arm", "arm64", 1.0), kind("amd", "amd64", 2.0)]);
    let pool = |name: &str| {
        let labels =
            Requirements::none().with(labels::NODE_POOL, Requirement::is(name)).with("team", Requirement::is(name));
        (PoolName::new(name), Assortment { labels, types: Arc::clone(&types) })
    };
    ["web", "db"].map(pool).into_iter().collect()
}

/// `name key:Operator:value .. price=0.5 +1 has=fpga:2 weight=5`
fn read(line: &str) -> Overlay {
    let mut words = line.split_whitespace();
    let name = Text::from(words.next().unwrap());
    let mut overlay =
        Overlay { name, weight: 0, requirements: Requirements::none(), price: None, capacity: Resources::none() };
    for word in words {
        match word.split_once('=') {
            Some(("weight", weight)) => overlay.weight = weight.parse().unwrap(),
            Some(("price", price)) => overlay.price = PriceChange::parse(price),
            Some(("has", amount)) => {
                let (name, amount) = amount.split_once(':').unwrap();
                overlay.capacity.set(ResourceName::new(name), amount.parse().unwrap());
            }
            _ => {
                let parts: Vec<&str> = word.split(':').collect();
                let key = match parts[0] {
                    "zone" => labels::ZONE,
                    "capacity" => labels::CAPACITY_TYPE,
                    "arch" => labels::ARCH,
                    "pool" => labels::NODE_POOL,
                    other => other,
                };
                let values = parts.get(2).into_iter().flat_map(|values| values.split('|'));
                let requirement = Requirement::new(Operator::parse(parts[1]).unwrap(), values).unwrap();
                overlay.requirements.add(key, requirement);
            }
        }
    }
    overlay
}

/// Every change, one line per pool and type, and every conflict.
fn changes(overlays: &str) -> Vec<String> {
    let overlays: Vec<Overlay> = overlays.lines().map(str::trim).map(read).collect();
    let (pools, forward) = (pools(), overlay(&pools(), &overlays));
    assert_eq!(overlay(&pools, overlays.iter().rev()), forward, "the order of the list means nothing");
    let mut told = Vec::new();
    for (name, types) in &forward.types {
        for (before, after) in pools[name].types.iter().zip(types.iter()).filter(|(before, after)| before != after) {
            let offerings = before.offerings.iter().zip(&after.offerings).filter(|(before, after)| before != after);
            let prices = offerings.map(|(_, after)| {
                format!(" {}:{}=${}", after.capacity_type().as_str(), after.zone().unwrap(), after.price.dollars())
            });
            let amounts = after.capacity.iter().filter(|(name, amount)| before.capacity.get(name) != *amount);
            let amounts = amounts.map(|(name, amount)| format!(" {name}={amount}"));
            told.push(format!("{name} {}{}", after.name, prices.chain(amounts).collect::<String>()));
        }
    }
    let conflict = |found: &OverlayConflict| {
        format!("{} meets {} on {} of {}: {found}", found.overlay, found.with, found.kind, found.pool)
    };
    told.extend(forward.conflicts.iter().map(conflict));
    told
}

/// OVL-04: a number replaces the price, a signed one is added, a percentage scales; nothing falls below zero.
#[test]
fn prices_are_set_shifted_and_scaled() {
    let table = [
        ("0.25", Some(0.25)),
        ("0", Some(0.0)),
        ("+0.5", Some(2.5)),
        ("-0.5", Some(1.5)),
        ("-.5", Some(1.5)),
        ("-2.5", Some(0.0)),
        ("+10%", Some(2.2)),
        ("+250%", Some(7.0)),
        ("-12.5%", Some(1.75)),
        ("-100%", Some(0.0)),
        ("10%", None),
        ("", None),
        ("+", None),
        ("inf", None),
        ("1e3", None),
        ("1.2.3", None),
        ("+1 %", None),
    ];
    for (text, expected) in table {
        let found = PriceChange::parse(text).map(|change| change.of(Price::from_dollars(2.0)));
        assert_eq!(found, expected.map(Price::from_dollars), "{text}");
    }
}

/// OVL-01: the heaviest overlay decides, offering by offering and resource by resource.
#[test]
fn heavier_overlays_win() {
    let found = changes(
        "light pool:In:web arch:In:arm64 price=+1 has=fpga:1 has=gpu:7
         heavy pool:In:web arch:In:arm64 zone:In:a price=0.1 has=gpu:2 weight=10",
    );
    assert_eq!(found, ["web arm on-demand:a=$0.1 on-demand:b=$2 spot:a=$0.1 fpga=1 gpu=2"]);
}

/// OVL-01, OVL-02: of two equal overlays the alphabetically last is applied; the other meets it and is applied nowhere,
/// be it that it would not meet it elsewhere.
#[test]
fn equal_overlays_that_meet_do_not_both_apply() {
    let found = changes(
        "a arch:In:arm64|amd64 price=9 weight=5
         z arch:In:arm64 pool:In:web price=3 weight=5",
    );
    let meeting = "a meets z on arm of web: conflict with another overlay";
    assert_eq!(found, ["web arm on-demand:a=$3 on-demand:b=$3 spot:a=$3", meeting]);
    let found = changes(
        "a capacity:In:spot price=3 weight=5
         z capacity:In:on-demand price=4 arch:In:arm64 pool:In:web weight=5
         y pool:In:web arch:In:arm64 has=gpu:2 weight=5
         b pool:In:web has=gpu:3 has=fpga:1 weight=5
         c pool:In:db has=gpu:3 weight=4",
    );
    assert_eq!(
        found,
        [
            "db arm spot:a=$3 gpu=3",
            "db amd spot:a=$3 gpu=3",
            "web arm on-demand:a=$4 on-demand:b=$4 spot:a=$3 gpu=2",
            "web amd spot:a=$3",
            "b meets y on arm of web: conflict with another overlay",
        ],
        "different offerings and different resources do not meet"
    );
}

/// OVL-02: an overlay that a heavier one leaves nothing to say still is in the way of others of its weight.
#[test]
fn overlays_meet_under_heavier_ones_too() {
    let found = changes(
        "a pool:In:web arch:In:arm64 zone:In:b price=1
         b pool:In:web arch:In:arm64 zone:In:b price=2
         heavy pool:In:web arch:In:arm64 zone:In:b price=3 weight=1",
    );
    assert_eq!(found, ["web arm on-demand:b=$3", "a meets b on arm of web: conflict with another overlay"]);
}

/// OVL-05: resources that the provider does not know are added, those that it knows replaced, and several overlays add
/// up; what pods may use follows.
#[test]
fn capacity_is_merged() {
    let found = changes(
        "one pool:In:web arch:In:arm64 has=fpga:2
         two pool:In:web zone:In:b has=example.com/slots:8
         three pool:In:web arch:In:arm64 has=gpu:0 weight=3",
    );
    assert_eq!(found, ["web arm example.com/slots=8 fpga=2 gpu=0", "web amd example.com/slots=8"]);
    let pools = pools();
    let overlaid = overlay(&pools, &[read("one arch:In:arm64 has=fpga:2")]);
    assert_eq!(overlaid.types[&PoolName::new("db")][0].allocatable.to_string(), "cpu=3900m fpga=2 gpu=1");
}

/// OVL-06: overlays select by the pool, by labels of its template, by labels of the type and by those of the offering;
/// a label that nobody defines selects nothing.
#[test]
fn overlays_select_by_every_label_of_the_node() {
    let table = [
        ("o pool:In:db arch:In:amd64 zone:In:b price=5", "db amd on-demand:b=$5"),
        ("o team:In:web arch:NotIn:arm64 capacity:In:spot price=5", "web amd spot:a=$5"),
        ("o team:In:nobody price=5", ""),
        ("o rack:Exists price=5", ""),
        ("o rack:DoesNotExist team:In:db arch:In:arm64 zone:NotIn:a price=5", "db arm on-demand:b=$5"),
        ("o capacity:In:reserved price=5 has=gpu:9", ""),
        ("o zone:In:c price=5", ""),
    ];
    for (line, expected) in table {
        assert_eq!(changes(line).join("\n"), expected, "{line}");
    }
}

/// OVL-11: what an overlay does not speak of stays, volume limits among it; types that are not touched are shared.
#[test]
fn everything_else_stays() {
    let pools = pools();
    let overlaid = overlay(&pools, &[read("o pool:In:web arch:In:arm64 price=5 has=fpga:1")]);
    let (web, db) = (PoolName::new("web"), PoolName::new("db"));
    let (before, after) = (&pools[&web].types[0], &overlaid.types[&web][0]);
    assert_eq!(after.attach_limits, AttachLimits::from([(Text::from("ebs"), 25)]));
    assert_eq!(
        (&after.name, &after.requirements, &after.overhead),
        (&before.name, &before.requirements, &before.overhead)
    );
    assert!(Arc::ptr_eq(&pools[&web].types[1], &overlaid.types[&web][1]));
    assert!(Arc::ptr_eq(&pools[&db].types, &overlaid.types[&db]));
}
