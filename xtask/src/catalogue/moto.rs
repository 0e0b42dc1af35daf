//! The tables that moto holds: types as EC2 describes them, zones, and which zone offers which type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use catalogue::{
    Accelerator, InstanceTypeFacts, LocalStorage, NetworkCard, NetworkFacts, NeuronDevice, Region, VolumeFacts, Zone,
};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::record::Record;

const TYPES: &str = "moto/ec2/resources/instance_types.json.gz";
const OFFERED_BY_NAME: &str = "moto/ec2/resources/instance_type_offerings/availability-zone";
const OFFERED_BY_ID: &str = "moto/ec2/resources/instance_type_offerings/availability-zone-id";
const ZONES: &str = "moto/ec2/models/availability_zones_and_regions.py";

/// A region and what its zones offer, in the form of the stored table.
#[derive(Debug)]
pub(crate) struct RegionOffer {
    pub(crate) region: Region,
    pub(crate) offered: Vec<u32>,
}

/// All types, by name.
pub(crate) fn types(moto: &Path) -> Result<Vec<InstanceTypeFacts>> {
    let described = json(&moto.join(TYPES))?;
    let described = described.as_object().context("the table of types is no object")?;
    let read = |(name, value): (&String, &Value)| facts(Record::new(name, value));
    let mut types: Vec<InstanceTypeFacts> = described.iter().map(read).collect::<Result<_>>()?;
    types.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(types)
}

fn facts(record: Record<'_>) -> Result<InstanceTypeFacts> {
    let megahertz = |gigahertz: f64| (gigahertz * 1000.0).round() as u32;
    let storage = record.optional_number("/InstanceStorageInfo/TotalSizeInGB")?;
    let local_storage = storage.map(|total_gb| {
        Ok::<_, anyhow::Error>(LocalStorage { total_gb, nvme: record.spelling("/InstanceStorageInfo/NvmeSupport")? })
    });
    Ok(InstanceTypeFacts {
        name: record.text("/InstanceType")?.to_owned(),
        vcpus: record.number("/VCpuInfo/DefaultVCpus")?,
        cores: record.number("/VCpuInfo/DefaultCores")?,
        threads_per_core: record.number("/VCpuInfo/DefaultThreadsPerCore")?,
        memory_mib: record.number("/MemoryInfo/SizeInMiB")?,
        architectures: record.texts("/ProcessorInfo/SupportedArchitectures")?,
        processor_manufacturer: record.text("/ProcessorInfo/Manufacturer")?.to_owned(),
        clock_speed_mhz: record.optional_float("/ProcessorInfo/SustainedClockSpeedInGhz").map(megahertz),
        processor_features: record.texts("/ProcessorInfo/SupportedFeatures")?,
        current_generation: record.flag("/CurrentGeneration")?,
        bare_metal: record.flag("/BareMetal")?,
        hypervisor: record.optional_spelling("/Hypervisor")?,
        burstable: record.flag("/BurstablePerformanceSupported")?,
        hardware_virtual_machine: record.texts("/SupportedVirtualizationTypes")?.iter().any(|kind| kind == "hvm"),
        usage_classes: spellings(record, "/SupportedUsageClasses")?,
        placement_strategies: record.texts("/PlacementGroupInfo/SupportedStrategies")?,
        nitro_enclaves: record.text("/NitroEnclavesSupport")? == "supported",
        network: network(record)?,
        volumes: VolumeFacts {
            optimized: record.spelling("/EbsInfo/EbsOptimizedSupport")?,
            bandwidth_max_mbps: record.optional_number("/EbsInfo/EbsOptimizedInfo/MaximumBandwidthInMbps")?,
            attachments_max: record.number("/EbsInfo/MaximumEbsAttachments")?,
        },
        local_storage: local_storage.transpose()?,
        gpus: accelerators(record, "/GpuInfo/Gpus")?,
        inference_accelerators: accelerators(record, "/InferenceAcceleratorInfo/Accelerators")?,
        neuron_devices: neuron_devices(record)?,
    })
}

fn network(record: Record<'_>) -> Result<NetworkFacts> {
    let card = |card: Record<'_>| {
        Ok(NetworkCard {
            index: card.number("/NetworkCardIndex")?,
            interfaces_max: card.number("/MaximumNetworkInterfaces")?,
        })
    };
    Ok(NetworkFacts {
        interfaces_max: record.number("/NetworkInfo/MaximumNetworkInterfaces")?,
        cards: record.list("/NetworkInfo/NetworkCards")?.into_iter().map(card).collect::<Result<_>>()?,
        default_card: record.number("/NetworkInfo/DefaultNetworkCardIndex")?,
        ipv4_per_interface: record.number("/NetworkInfo/Ipv4AddressesPerInterface")?,
        ipv6_per_interface: record.number("/NetworkInfo/Ipv6AddressesPerInterface")?,
        ena: record.spelling("/NetworkInfo/EnaSupport")?,
        efa_interfaces_max: record.optional_number("/NetworkInfo/EfaInfo/MaximumEfaInterfaces")?,
        encryption_in_transit: record.flag("/NetworkInfo/EncryptionInTransitSupported")?,
        baseline_bandwidth_mbps: None,
        vpc_limits: None,
    })
}

fn spellings<T: serde::de::DeserializeOwned>(record: Record<'_>, pointer: &str) -> Result<Vec<T>> {
    record.list(pointer)?.into_iter().map(|entry| entry.spelling("")).collect()
}

fn accelerators(record: Record<'_>, pointer: &str) -> Result<Vec<Accelerator>> {
    let read = |entry: Record<'_>| {
        Ok(Accelerator {
            name: entry.text("/Name")?.to_owned(),
            manufacturer: entry.text("/Manufacturer")?.to_owned(),
            count: entry.number("/Count")?,
            memory_mib: entry.number("/MemoryInfo/SizeInMiB")?,
        })
    };
    record.list(pointer)?.into_iter().map(read).collect()
}

fn neuron_devices(record: Record<'_>) -> Result<Vec<NeuronDevice>> {
    let read = |entry: Record<'_>| {
        Ok(NeuronDevice {
            name: entry.text("/Name")?.to_owned(),
            count: entry.number("/Count")?,
            cores: entry.number("/CoreInfo/Count")?,
            memory_mib: entry.number("/MemoryInfo/SizeInMiB")?,
        })
    };
    record.list("/NeuronInfo/NeuronDevices")?.into_iter().map(read).collect()
}

/// All regions whose offers are known, by name.
pub(crate) fn regions(moto: &Path, types: &[InstanceTypeFacts]) -> Result<Vec<RegionOffer>> {
    let source = std::fs::read_to_string(moto.join(ZONES)).with_context(|| format!("read `{ZONES}`"))?;
    let known_ids = zone_ids(&source);
    let folder = moto.join(OFFERED_BY_NAME);
    let files = std::fs::read_dir(&folder).with_context(|| format!("list `{}`", folder.display()))?;
    let mut files: Vec<PathBuf> = files.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut regions = Vec::new();
    for file in files {
        let file_name = file.file_name().and_then(|name| name.to_str()).context("a file name that is text")?;
        let name = file_name.strip_suffix(".json.gz").with_context(|| format!("`{file_name}` is no region"))?;
        let by_name = offers(&file)?;
        let by_id = offers(&moto.join(OFFERED_BY_ID).join(file_name))?;
        let zones = zones(by_name.keys(), by_id.keys().cloned().collect(), &known_ids);
        let region = Region { name: name.to_owned(), zones };
        ensure!(region.zones.len() <= 32, "`{name}` has more zones than a mask has bits");
        let mask = |facts: &InstanceTypeFacts| {
            let zones = by_name.values().enumerate().filter(|(_, offered)| offered.contains(&facts.name));
            zones.fold(0, |mask: u32, (place, _)| mask | 1 << place)
        };
        regions.push(RegionOffer { offered: types.iter().map(mask).collect(), region });
    }
    Ok(regions)
}

/// The types that each zone of a region offers, by zone.
fn offers(file: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let rows = json(file)?;
    let mut offers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in Record::new("offers", &rows).list("")? {
        offers.entry(row.text("/Location")?.to_owned()).or_default().insert(row.text("/InstanceType")?.to_owned());
    }
    Ok(offers)
}

/// Zones with their IDs. Accounts differ in which name goes with which ID, so where no pairing is known, the names get
/// the IDs that are left in order.
fn zones<'a>(
    names: impl Iterator<Item = &'a String>,
    ids: BTreeSet<String>,
    known: &BTreeMap<String, String>,
) -> Vec<Zone> {
    let names: Vec<&String> = names.collect();
    let taken: BTreeSet<&String> = names.iter().filter_map(|name| known.get(*name)).collect();
    let mut left = ids.iter().filter(|id| !taken.contains(id));
    let mut zones = Vec::new();
    for name in names {
        let id = known.get(name).or_else(|| left.next());
        zones.push(Zone { name: name.clone(), id: id.cloned().unwrap_or_default() });
    }
    zones
}

/// Every zone name that the source pairs with an ID: `Zone(name="a", zone_id="b", ...)`, perhaps over several lines.
fn zone_ids(source: &str) -> BTreeMap<String, String> {
    let argument = |call: &str, key: &str| {
        let (_, rest) = call.split_once(&format!("{key}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    let pair = |call: &str| {
        let (call, _) = call.split_once(')')?;
        // `region_name` ends like `name`, so it is taken out first.
        let bare = call.replace("region_name=", "region=");
        Some((argument(&bare, "name")?, argument(&bare, "zone_id")?))
    };
    source.split("Zone(").skip(1).filter_map(pair).collect()
}

fn json(file: &Path) -> Result<Value> {
    let opened = File::open(file).with_context(|| format!("open `{}`", file.display()))?;
    serde_json::from_reader(GzDecoder::new(opened)).with_context(|| format!("read `{}`", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_without_a_known_id_get_those_left_over() {
        let known = zone_ids(
            "Zone(region_name=\"r\", name=\"rb\", zone_id=\"z1\"),\nZone(\n name=\"rd\",\n zone_id=\"z9\",\n)",
        );
        let names = ["ra", "rb", "rc"].map(str::to_owned);
        let ids = ["z1", "z2", "z3"].map(str::to_owned).into_iter().collect();
        let found: Vec<String> = zones(names.iter(), ids, &known).into_iter().map(|zone| zone.id).collect();
        assert_eq!(found, ["z2", "z1", "z3"]);
    }
}
