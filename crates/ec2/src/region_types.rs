//! The instance types of a region, ready for any class.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalogue::{Catalogue, InstanceTypeFacts, MicroDollars, Region};
use model::{CapacityType, InstanceType, Offering, Price, Requirements, Resources, TypeName};

use crate::capacity::{capacity, fixed_capacity};
use crate::class::{ClassView, Reservation};
use crate::compatibility::is_compatible;
use crate::offerings::{Shelf, partitions, reserved};
use crate::overhead::overhead;
use crate::requirements::{architecture, capacity_types, fixed_requirements, requirements_of_class};
use crate::settings::Settings;

/// Whether a type (first) cannot be had in a zone (second) at the moment, bought that way.
pub type Unavailable<'a> = &'a dyn Fn(&str, &str, CapacityType) -> bool;

/// What does not depend on the class: facts, labels and prices of all types that a region offers.
#[derive(Debug)]
pub struct RegionTypes<'c> {
    region: &'c Region,
    types: Vec<TypeInRegion<'c>>,
}

#[derive(Debug)]
struct TypeInRegion<'c> {
    facts: &'c InstanceTypeFacts,
    name: TypeName,
    capacity: Resources,
    requirements: Requirements,
    capacity_types: Vec<CapacityType>,
    on_demand: Option<Price>,
    zones: Vec<TypeInZone>,
}

/// What a zone makes of a type; in the order of the region's zones.
#[derive(Clone, Copy, Debug)]
struct TypeInZone {
    is_offered: bool,
    spot: Option<Price>,
}

impl<'c> RegionTypes<'c> {
    /// The types of a region, by name; `None` if there is no such region.
    ///
    /// Machines that run neither Linux nor Windows are left out, as are those without hardware virtualization.
    pub fn new(catalogue: &'c Catalogue, region: &str) -> Option<Self> {
        let region = catalogue.region(region)?;
        let usable = |facts: &&InstanceTypeFacts| facts.hardware_virtual_machine && architecture(facts).is_some();
        let offered = |kind: &TypeInRegion<'_>| kind.zones.iter().any(|zone| zone.is_offered);
        let types = catalogue.types().iter().filter(usable).map(|facts| TypeInRegion::new(catalogue, region, facts));
        Some(Self { region, types: types.filter(offered).collect() })
    }

    /// The region.
    pub fn region(&self) -> &'c Region {
        self.region
    }

    /// All types as a class can launch them, by name. Those it cannot launch are there too, but not for sale.
    pub fn instance_types(
        &self,
        class: &ClassView,
        settings: &Settings,
        unavailable: Unavailable<'_>,
    ) -> Vec<Arc<InstanceType>> {
        let view = self.view(class, settings, unavailable);
        self.types.iter().map(|kind| kind.for_class(&view)).collect()
    }

    /// One type as a class can launch it; `None` if the region does not offer it.
    pub fn instance_type(
        &self,
        name: &str,
        class: &ClassView,
        settings: &Settings,
        unavailable: Unavailable<'_>,
    ) -> Option<Arc<InstanceType>> {
        let place = self.types.binary_search_by(|kind| kind.name.as_str().cmp(name)).ok()?;
        let view = self.view(class, settings, unavailable);
        self.types.get(place).map(|kind| kind.for_class(&view))
    }

    /// All of [`RegionTypes::instance_types`] after nothing has changed but what can be had: types whose
    /// offerings stayed as they were are shared with `previous`, which must be an earlier answer for the same class and settings.
    pub fn refresh(
        &self,
        previous: &[Arc<InstanceType>],
        class: &ClassView,
        settings: &Settings,
        unavailable: Unavailable<'_>,
    ) -> Vec<Arc<InstanceType>> {
        let view = self.view(class, settings, unavailable);
        let again = |(kind, before): (&TypeInRegion<'_>, &Arc<InstanceType>)| match kind.is_still(before, &view) {
            true => Arc::clone(before),
            false => kind.for_class(&view),
        };
        if self.types.len() != previous.len() {
            return self.types.iter().map(|kind| kind.for_class(&view)).collect();
        }
        self.types.iter().zip(previous).map(again).collect()
    }

    fn view<'a>(&self, class: &'a ClassView, settings: &'a Settings, unavailable: Unavailable<'a>) -> RegionView<'a> {
        RegionView {
            zones: self.zones_of_class(class),
            shelves: self.shelves(class),
            reservations: reservations_by_type(class, settings),
            class,
            settings,
            unavailable,
        }
    }

    fn zones_of_class(&self, class: &ClassView) -> Vec<bool> {
        let in_class = |name: &str| class.zones.iter().any(|zone| zone.name == name);
        self.region.zones.iter().map(|zone| in_class(&zone.name)).collect()
    }

    fn shelves(&self, class: &ClassView) -> Vec<Shelf> {
        let sold = [CapacityType::OnDemand, CapacityType::Spot];
        let in_zone = |(place, zone): (usize, &'c catalogue::Zone)| {
            sold.map(|capacity_type| Shelf::new(place, &zone.name, capacity_type, class))
        };
        self.region.zones.iter().enumerate().flat_map(in_zone).collect()
    }
}

/// All that turns types of a region into types of a class.
struct RegionView<'a> {
    /// For each zone of the region whether the class has it.
    zones: Vec<bool>,
    shelves: Vec<Shelf>,
    reservations: BTreeMap<&'a str, Vec<&'a Reservation>>,
    class: &'a ClassView,
    settings: &'a Settings,
    unavailable: Unavailable<'a>,
}

fn reservations_by_type<'a>(class: &'a ClassView, settings: &Settings) -> BTreeMap<&'a str, Vec<&'a Reservation>> {
    let mut by_type: BTreeMap<&str, Vec<&Reservation>> = BTreeMap::new();
    for reservation in class.reservations.iter().filter(|_| settings.reserved_capacity) {
        by_type.entry(&reservation.facts.instance_type).or_default().push(reservation);
    }
    by_type
}

impl<'c> TypeInRegion<'c> {
    fn new(catalogue: &Catalogue, region: &Region, facts: &'c InstanceTypeFacts) -> Self {
        let in_zone = |zone: &catalogue::Zone| TypeInZone {
            is_offered: catalogue.is_offered(&facts.name, &zone.name),
            spot: catalogue.spot_price(&zone.name, &facts.name).map(|spot| price(spot.price)),
        };
        Self {
            facts,
            name: TypeName::new(facts.name.as_str()),
            capacity: fixed_capacity(facts),
            requirements: fixed_requirements(facts, &region.name),
            capacity_types: capacity_types(facts),
            on_demand: catalogue.on_demand_price(&region.name, &facts.name).map(price),
            zones: region.zones.iter().map(in_zone).collect(),
        }
    }

    fn for_class(&self, view: &RegionView<'_>) -> Arc<InstanceType> {
        let reservations = view.reservations.get(self.name.as_str()).map_or(&[][..], Vec::as_slice);
        let is_offered = |zone: &str| self.is_offered(zone, view);
        let requirements = requirements_of_class(&self.requirements, self.facts, view.class, is_offered, reservations);
        let capacity = capacity(&self.capacity, self.facts, view.class, view.settings);
        let overhead = overhead(&capacity, self.facts, view.class, view.settings);
        let offerings = self.offerings(view, reservations);
        InstanceType::new(self.name.clone(), requirements, capacity, overhead, offerings)
    }

    fn offerings(&self, view: &RegionView<'_>, reservations: &[&Reservation]) -> Vec<Offering> {
        let is_compatible = is_compatible(self.facts, view.class);
        let mut offerings = Vec::new();
        for shelf in self.shelves(view) {
            let is_for_sale = is_compatible && self.is_on_shelf(shelf, view);
            offerings.extend(shelf.offer(self.price_on(shelf), is_for_sale));
        }
        for reservation in reservations {
            let is_for_sale = is_compatible && self.is_reserved_in_class(reservation, view);
            offerings.extend(reserved(reservation, view.class, self.on_demand, is_for_sale));
        }
        offerings
    }

    /// Whether the offerings of an earlier answer are those of now. Prices do not change while this value lives.
    fn is_still(&self, before: &InstanceType, view: &RegionView<'_>) -> bool {
        if before.name != self.name {
            return false;
        }
        let is_compatible = is_compatible(self.facts, view.class);
        let on_shelves = self.shelves(view).flat_map(|shelf| {
            let is_for_sale = is_compatible && self.price_on(shelf).is_some() && self.is_on_shelf(shelf, view);
            std::iter::repeat_n((is_for_sale, None), partitions(view.class))
        });
        let reservations = view.reservations.get(self.name.as_str()).map_or(&[][..], Vec::as_slice);
        let reserved = reservations.iter().flat_map(|reservation| {
            let is_for_sale = is_compatible && self.is_reserved_in_class(reservation, view) && reservation.is_usable();
            std::iter::repeat_n((is_for_sale, Some(reservation.available)), partitions(view.class))
        });
        let then = before.offerings.iter().map(|offering| (offering.available, offering.reservation_capacity));
        on_shelves.chain(reserved).eq(then)
    }

    fn shelves<'v>(&self, view: &'v RegionView<'_>) -> impl Iterator<Item = &'v Shelf> {
        view.shelves.iter().filter(|shelf| self.capacity_types.contains(&shelf.capacity_type))
    }

    fn price_on(&self, shelf: &Shelf) -> Option<Price> {
        match shelf.capacity_type {
            CapacityType::Spot => self.zones.get(shelf.zone_place)?.spot,
            CapacityType::OnDemand | CapacityType::Reserved => self.on_demand,
        }
    }

    /// Whether the zone has the type, the class has the zone, and nothing ran out.
    fn is_on_shelf(&self, shelf: &Shelf, view: &RegionView<'_>) -> bool {
        self.zones.get(shelf.zone_place).is_some_and(|zone| zone.is_offered)
            && view.zones.get(shelf.zone_place).is_some_and(|in_class| *in_class)
            && !(view.unavailable)(self.name.as_str(), &shelf.zone, shelf.capacity_type)
    }

    fn is_reserved_in_class(&self, reservation: &Reservation, view: &RegionView<'_>) -> bool {
        let zone = &reservation.facts.availability_zone;
        view.class.zones.iter().any(|known| known.name == *zone)
            && self.is_offered(zone, view)
            && !(view.unavailable)(self.name.as_str(), zone, CapacityType::Reserved)
    }

    fn is_offered(&self, zone: &str, view: &RegionView<'_>) -> bool {
        let shelf = view.shelves.iter().find(|shelf| shelf.zone == zone);
        shelf.and_then(|shelf| self.zones.get(shelf.zone_place)).is_some_and(|zone| zone.is_offered)
    }
}

fn price(price: MicroDollars) -> Price {
    Price::from_dollars(price.dollars())
}

/// The instance types of one class, for callers that ask only once. Those that ask again keep a [`RegionTypes`].
///
/// A region that the catalogue does not know has no types.
pub fn instance_types(
    catalogue: &Catalogue,
    region: &str,
    class: &ClassView,
    settings: &Settings,
    unavailable: Unavailable<'_>,
) -> Vec<Arc<InstanceType>> {
    let types = RegionTypes::new(catalogue, region);
    types.map(|types| types.instance_types(class, settings, unavailable)).unwrap_or_default()
}
