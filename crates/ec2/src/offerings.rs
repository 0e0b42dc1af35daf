//! How an instance type can be bought.

use api::ec2_node_class::status::{ReservationState, ReservationType};
use model::{CapacityType, Offering, Price, Requirement, Requirements, labels as core};

use crate::class::{ClassView, PlacementStrategy, Reservation};
use crate::labels;

/// What the price of a reserved instance is divided by: it is paid for already, but dearer types should still look
/// dearer.
const RESERVED_DISCOUNT: f64 = 10_000_000.0;

impl Reservation {
    /// The kind as its label spells it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.facts.reservation_type {
            ReservationType::Default => "default",
            ReservationType::CapacityBlock => "capacity-block",
        }
    }

    /// Whether it may be taken back, as its label spells it.
    pub(crate) fn interruptible(&self) -> &'static str {
        if self.facts.interruptible == Some(true) { "true" } else { "false" }
    }

    /// Whether something is left of it, and for long enough to be worth a launch.
    pub(crate) fn is_usable(&self) -> bool {
        self.available > 0 && self.facts.state != ReservationState::Expiring
    }
}

/// The labels of every offering in one zone with one capacity type, which all types share: one set per partition of the
/// placement group, or just one.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// Place of the zone in its region.
    pub(crate) zone_place: usize,
    /// Name of the zone.
    pub(crate) zone: String,
    /// How it is bought.
    pub(crate) capacity_type: CapacityType,
    requirements: Vec<Requirements>,
}

impl Shelf {
    pub(crate) fn new(zone_place: usize, zone: &str, capacity_type: CapacityType, class: &ClassView) -> Self {
        let mut requirements = in_zone(zone, class).with(core::CAPACITY_TYPE, Requirement::is(capacity_type.as_str()));
        for key in [labels::RESERVATION_ID, labels::RESERVATION_TYPE, labels::RESERVATION_INTERRUPTIBLE] {
            requirements.add(key, Requirement::does_not_exist());
        }
        let requirements = in_partitions(requirements, class);
        Self { zone_place, zone: zone.to_owned(), capacity_type, requirements }
    }

    /// The offerings of one type. Without a price there is nothing to buy.
    pub(crate) fn offer(&self, price: Option<Price>, is_for_sale: bool) -> impl Iterator<Item = Offering> {
        let offering = move |requirements: &Requirements| Offering {
            requirements: requirements.clone(),
            price: price.unwrap_or(Price::ZERO),
            available: is_for_sale && price.is_some(),
            reservation_capacity: None,
        };
        self.requirements.iter().map(offering)
    }
}

/// The offerings of a reservation. Reserved capacity is usable even where its price is not known.
pub(crate) fn reserved(
    reservation: &Reservation,
    class: &ClassView,
    on_demand: Option<Price>,
    is_for_sale: bool,
) -> Vec<Offering> {
    let facts = &reservation.facts;
    let requirements = in_zone(&facts.availability_zone, class)
        .with(core::CAPACITY_TYPE, Requirement::is(CapacityType::Reserved.as_str()))
        .with(labels::RESERVATION_ID, Requirement::is(facts.id.as_str()))
        .with(labels::RESERVATION_TYPE, Requirement::is(reservation.kind()))
        .with(labels::RESERVATION_INTERRUPTIBLE, Requirement::is(reservation.interruptible()));
    let price = on_demand.map_or(Price::ZERO, |price| Price::from_dollars(price.dollars() / RESERVED_DISCOUNT));
    let available = is_for_sale && reservation.is_usable();
    let offering =
        |requirements| Offering { requirements, price, available, reservation_capacity: Some(reservation.available) };
    in_partitions(requirements, class).into_iter().map(offering).collect()
}

fn in_zone(zone: &str, class: &ClassView) -> Requirements {
    let requirements = Requirements::none().with(core::ZONE, Requirement::is(zone));
    let id = class.zones.iter().find(|known| known.name == zone).and_then(|known| known.id.as_deref());
    match id {
        Some(id) => requirements.with(labels::ZONE_ID, Requirement::is(id)),
        None => requirements,
    }
}

/// How many offerings stand for each zone and capacity type: one, or one per partition of the placement group.
pub(crate) fn partitions(class: &ClassView) -> usize {
    match class.placement_group.as_ref().map(|group| group.strategy) {
        Some(PlacementStrategy::Partition { count }) => (count as usize).max(1),
        _ => 1,
    }
}

/// One set per partition, if the class launches into a group that has partitions.
fn in_partitions(requirements: Requirements, class: &ClassView) -> Vec<Requirements> {
    let partitioned = class.placement_group.as_ref().map(|group| group.strategy);
    let Some(PlacementStrategy::Partition { count: 1.. }) = partitioned else { return vec![requirements] };
    let in_partition = |partition: usize| {
        requirements.clone().with(labels::PLACEMENT_GROUP_PARTITION, Requirement::is(partition.to_string()))
    };
    (1..=partitions(class)).map(in_partition).collect()
}
