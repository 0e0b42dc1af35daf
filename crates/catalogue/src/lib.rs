//! EC2 facts as AWS gives them: types, offerings, prices, with their origin. This crate will never know anything but
//! facts.
//!
//! The bundled table is made by `cargo xtask catalogue` from published packages; `data/NOTICE` names them. It serves
//! simulations, tests and the first prices of a controller that has not asked AWS yet: spot prices in it are plausible
//! but not current, on-demand prices of most regions are scaled from those of one. The accessors say which is which.

mod facts;
mod price;
mod table;

use std::collections::BTreeMap;
use std::sync::OnceLock;

pub use facts::{
    Accelerator, Hypervisor, InstanceTypeFacts, LocalStorage, NetworkCard, NetworkFacts, NeuronDevice, Support,
    UsageClass, VolumeFacts, VpcLimits,
};
pub use price::{MicroDollars, OnDemandOrigin, SpotOrigin, SpotPrice};
pub use table::{Notice, Region, RegionTable, Table, Zone};

/// Types, zones and prices, ready to be asked.
#[derive(Debug)]
pub struct Catalogue {
    notices: Vec<Notice>,
    types: Vec<InstanceTypeFacts>,
    on_demand: Vec<MicroDollars>,
    listed_region: String,
    regions: Vec<Region>,
    markets: Vec<Market>,
    /// For each zone's name its region and its place there.
    zones: BTreeMap<String, ZonePlace>,
}

/// What a region sells.
#[derive(Debug)]
struct Market {
    on_demand_millionths: u64,
    offered: Vec<u32>,
    spot: BTreeMap<usize, Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct ZonePlace {
    region: usize,
    zone: usize,
}

impl Catalogue {
    /// The table that comes with this crate, read when first asked for.
    ///
    /// # Panics
    ///
    /// If the table cannot be read, which means that this build is broken: it is a part of the program.
    pub fn bundled() -> &'static Self {
        static BUNDLED: OnceLock<Catalogue> = OnceLock::new();
        BUNDLED.get_or_init(|| match Table::read(include_bytes!("../data/catalogue.json.gz")) {
            Ok(table) => Self::new(table),
            Err(error) => panic!("the bundled catalogue cannot be read: {error}"),
        })
    }

    /// A catalogue of other facts.
    pub fn new(table: Table) -> Self {
        let Table { notices, types, on_demand, listed_region, regions } = table;
        let mut zones = BTreeMap::new();
        let (regions, markets): (Vec<Region>, Vec<Market>) = regions.into_iter().map(split_region).unzip();
        for (region, facts) in regions.iter().enumerate() {
            let places = facts.zones.iter().enumerate();
            zones.extend(places.map(|(zone, facts)| (facts.name.clone(), ZonePlace { region, zone })));
        }
        Self { notices, types, on_demand, listed_region, regions, markets, zones }
    }

    /// Where the facts were taken from.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// All types, by name.
    pub fn types(&self) -> &[InstanceTypeFacts] {
        &self.types
    }

    /// The type of that name.
    pub fn instance_type(&self, name: &str) -> Option<&InstanceTypeFacts> {
        self.type_place(name).and_then(|place| self.types.get(place))
    }

    /// All regions, by name.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The region of that name.
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.region_place(name).and_then(|place| self.regions.get(place))
    }

    /// The region that a zone belongs to.
    pub fn region_of_zone(&self, zone: &str) -> Option<&Region> {
        self.zones.get(zone).and_then(|place| self.regions.get(place.region))
    }

    /// Whether a zone has instances of that type. Unknown zones and types are not offered.
    pub fn is_offered(&self, type_name: &str, zone: &str) -> bool {
        let found = self.zones.get(zone).zip(self.type_place(type_name));
        found.is_some_and(|(place, type_place)| self.is_offered_at(type_place, *place))
    }

    /// The on-demand price per hour of a type that the region offers, in its currency of account (dollars).
    ///
    /// [`Catalogue::on_demand_origin`] says whether the region's prices are listed or scaled.
    pub fn on_demand_price(&self, region: &str, type_name: &str) -> Option<MicroDollars> {
        self.on_demand_at(self.region_place(region)?, self.type_place(type_name)?)
    }

    /// Where the on-demand prices of a region come from.
    pub fn on_demand_origin(&self, region: &str) -> Option<OnDemandOrigin> {
        let market = self.markets.get(self.region_place(region)?)?;
        let scaled = OnDemandOrigin::Scaled { millionths: market.on_demand_millionths };
        Some(if region == self.listed_region { OnDemandOrigin::Listed } else { scaled })
    }

    /// The spot price per hour of a type that the zone offers as spot capacity.
    pub fn spot_price(&self, zone: &str, type_name: &str) -> Option<SpotPrice> {
        let (place, type_place) = (*self.zones.get(zone)?, self.type_place(type_name)?);
        if !self.is_offered_at(type_place, place) || !self.types.get(type_place)?.is_sold_as(UsageClass::Spot) {
            return None;
        }
        let recorded = self.markets.get(place.region)?.spot.get(&type_place);
        if let Some(price) = recorded.and_then(|prices| price::recorded_spot(prices, type_name, place.zone)) {
            return Some(SpotPrice { price, origin: SpotOrigin::Recorded });
        }
        let on_demand = self.on_demand_at(place.region, type_place)?;
        Some(SpotPrice { price: price::estimated_spot(on_demand, type_name, zone), origin: SpotOrigin::Estimated })
    }

    fn type_place(&self, name: &str) -> Option<usize> {
        self.types.binary_search_by(|facts| facts.name.as_str().cmp(name)).ok()
    }

    fn region_place(&self, name: &str) -> Option<usize> {
        self.regions.binary_search_by(|region| region.name.as_str().cmp(name)).ok()
    }

    fn is_offered_at(&self, type_place: usize, place: ZonePlace) -> bool {
        let mask = self.markets.get(place.region).and_then(|market| market.offered.get(type_place));
        mask.is_some_and(|mask| mask >> place.zone & 1 == 1)
    }

    fn on_demand_at(&self, region: usize, type_place: usize) -> Option<MicroDollars> {
        let market = self.markets.get(region)?;
        let listed = self.on_demand.get(type_place).filter(|price| price.0 > 0)?;
        let offered = market.offered.get(type_place).is_some_and(|mask| *mask != 0);
        offered.then(|| listed.times_millionths(market.on_demand_millionths))
    }
}

fn split_region(table: RegionTable) -> (Region, Market) {
    let RegionTable { region, on_demand_millionths, offered, spot } = table;
    (region, Market { on_demand_millionths, offered, spot: spot.into_iter().collect() })
}
