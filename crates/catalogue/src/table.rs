//! The table as it is stored: written by the repository's `catalogue` command, read once per process.

use std::io::{Read, Write};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::{Deserialize, Serialize};

use crate::facts::InstanceTypeFacts;
use crate::price::MicroDollars;

/// All facts, in the form they are stored in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Where the facts were taken from.
    pub notices: Vec<Notice>,
    /// The types, by name.
    pub types: Vec<InstanceTypeFacts>,
    /// The on-demand prices of [`Table::listed_region`] in the order of the types; zero where none is known.
    pub on_demand: Vec<MicroDollars>,
    /// The region whose on-demand prices are listed.
    pub listed_region: String,
    /// The regions, by name.
    pub regions: Vec<RegionTable>,
}

/// What differs between regions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionTable {
    /// Name and zones.
    pub region: Region,
    /// What on-demand prices are multiplied by, in millionths.
    pub on_demand_millionths: u64,
    /// For each type the zones that offer it: the lowest bit is the first zone.
    pub offered: Vec<u32>,
    /// Spot prices that were seen, in millionths of a dollar, cheapest first, by the place of their type.
    pub spot: Vec<(usize, Vec<u32>)>,
}

/// A region and its zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name, for example `eu-west-1`.
    pub name: String,
    /// Zones, by name.
    pub zones: Vec<Zone>,
}

/// A zone of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Name, for example `eu-west-1a`. Accounts differ in which zone bears which name.
    pub name: String,
    /// ID, for example `euw1-az3`: the same place in every account.
    pub id: String,
}

/// Where facts were taken from and under which licence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// The package.
    pub source: String,
    /// Its version.
    pub version: String,
    /// Its licence.
    pub licence: String,
    /// What was taken from it.
    pub taken: String,
}

impl std::fmt::Display for Notice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { source, version, licence, taken } = self;
        write!(formatter, "{source} {version} ({licence}): {taken}")
    }
}

impl Table {
    /// Reads the stored form.
    pub fn read(compressed: &[u8]) -> std::io::Result<Self> {
        let mut text = Vec::new();
        GzDecoder::new(compressed).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Writes the stored form; equal tables give equal bytes.
    pub fn write(&self) -> std::io::Result<Vec<u8>> {
        // No name and no time of writing in the header: they would change the bytes without changing the facts.
        let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        encoder.write_all(&serde_json::to_vec(self)?)?;
        encoder.finish()
    }
}
