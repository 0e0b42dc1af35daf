//! The facts about EC2 that come with the repository, made anew from published packages.
//!
//! Each package is named with its version and fetched by its ecosystem's own client, which checks what it gets. Equal
//! packages give equal files.

mod fetch;
mod go_tables;
mod max_pods;
mod moto;
mod prices;
mod record;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use catalogue::{InstanceTypeFacts, MicroDollars, Notice, RegionTable, Table};

use fetch::{GoModule, Wheel};
use prices::Recorded;

/// Types, zones and what is offered where.
const MOTO: Wheel = Wheel {
    name: "moto",
    version: "5.2.5",
    sha256: "eef62cdcf3bfe73e0863743511ba042dfaba04ba3d5ecdcb896a196c693ad528",
};
/// Branch interfaces.
const VPC_CONTROLLER: GoModule =
    GoModule { path: "github.com/aws/amazon-vpc-resource-controller-k8s", version: "v1.8.2" };
/// On-demand prices and bandwidth.
const KARPENTER_AWS: GoModule = GoModule { path: "github.com/aws/karpenter-provider-aws", version: "v1.14.1" };
/// Spot prices, and how regions differ in price.
const INSTANCES_INFO: GoModule =
    GoModule { path: "github.com/cristim/ec2-instances-info", version: "v0.0.0-20250528091325-32acf84f42eb" };
/// How many pods nodes take, as another project counts them: only tests ask.
const VPC_CNI: GoModule = GoModule { path: "github.com/aws/amazon-vpc-cni-k8s", version: "v1.23.2" };

/// What the MIT licence wants to be told along with what it covers.
const MIT: &str = include_str!("mit.txt");

/// The region whose on-demand prices are listed.
const LISTED_REGION: &str = "us-east-1";

const TABLE_FILE: &str = "crates/catalogue/data/catalogue.json.gz";
const NOTICE_FILE: &str = "crates/catalogue/data/NOTICE";
const MAX_PODS_FILE: &str = "crates/ec2/tests/max-pods.txt.gz";
const MAX_PODS_NOTICE_FILE: &str = "crates/ec2/tests/NOTICE";

/// Fetches the packages and rewrites the table, the test's fixture and their notices.
pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = root.join("target/catalogue");
    std::fs::create_dir_all(&folder).with_context(|| format!("create `{}`", folder.display()))?;
    println!("fetching {} {}", MOTO.name, MOTO.version);
    let moto = MOTO.fetch(&folder)?;
    let mut modules = BTreeMap::new();
    for module in [VPC_CONTROLLER, KARPENTER_AWS, INSTANCES_INFO, VPC_CNI] {
        println!("fetching {} {}", module.path, module.version);
        modules.insert(module.path, module.fetch(&folder)?);
    }
    let of = |module: GoModule| modules.get(module.path).context("a module that was fetched");

    println!("reading");
    let mut types = moto::types(&moto)?;
    let limits = go_tables::vpc_limits(&of(VPC_CONTROLLER)?.join("pkg/aws/vpc/limits.go"))?;
    let providers = of(KARPENTER_AWS)?.join("pkg/providers");
    let bandwidth = go_tables::numbers(&providers.join("instancetype/zz_generated.bandwidth.go"))?;
    for facts in &mut types {
        facts.network.vpc_limits = limits.get(&facts.name).copied();
        facts.network.baseline_bandwidth_mbps = bandwidth.get(&facts.name).map(|mbps| *mbps as u32);
    }
    let listed = go_tables::numbers(&providers.join("pricing/zz_generated.pricing_aws.go"))?;
    let recorded = prices::read(&of(INSTANCES_INFO)?.join("data/instances.json"))?;
    let table = table(types, &moto, &listed, &recorded)?;
    write(root, TABLE_FILE, &table.write()?)?;
    let notice = format!("{}\n{MIT}", notice_text(&table.notices));
    write(root, NOTICE_FILE, notice.as_bytes())?;

    let oracle = max_pods::read(&of(VPC_CNI)?.join("misc/eni-max-pods.txt"))?;
    write(root, MAX_PODS_FILE, &max_pods::compress(&oracle)?)?;
    write(root, MAX_PODS_NOTICE_FILE, notice_text(&[max_pods_notice()]).as_bytes())
}

fn table(
    types: Vec<InstanceTypeFacts>,
    moto: &Path,
    listed: &BTreeMap<String, f64>,
    recorded: &Recorded,
) -> Result<Table> {
    let price = |facts: &InstanceTypeFacts| prices::micro_dollars(*listed.get(&facts.name)?);
    let on_demand: Vec<MicroDollars> = types.iter().map(|facts| price(facts).unwrap_or_default()).collect();
    let mut regions = Vec::new();
    for offer in moto::regions(moto, &types)? {
        let factor = recorded.on_demand_millionths(LISTED_REGION, &offer.region.name);
        let on_demand_millionths = factor
            .with_context(|| format!("no type has a price both in {LISTED_REGION} and in {}", offer.region.name))?;
        let mut region =
            RegionTable { region: offer.region, on_demand_millionths, offered: offer.offered, spot: Vec::new() };
        region.spot = prices::spot_of_region(&region, &types, &on_demand, recorded);
        regions.push(region);
    }
    ensure!(regions.iter().any(|region| region.region.name == LISTED_REGION), "{LISTED_REGION} is no region");
    Ok(Table { notices: notices(), types, on_demand, listed_region: LISTED_REGION.to_owned(), regions })
}

fn notices() -> Vec<Notice> {
    let notice = |source: &str, version: &str, licence: &str, taken: &str| Notice {
        source: source.to_owned(),
        version: version.to_owned(),
        licence: licence.to_owned(),
        taken: taken.to_owned(),
    };
    let of_module = |module: GoModule, licence, taken| notice(module.path, module.version, licence, taken);
    vec![
        notice(
            MOTO.name,
            MOTO.version,
            "Apache-2.0, Copyright 2012 Steve Pulec",
            "instance types, regions, zones, and which zone offers which type",
        ),
        of_module(
            VPC_CONTROLLER,
            "Apache-2.0, Copyright 2020 Amazon.com, Inc. or its affiliates",
            "branch network interfaces, trunking, and IPv4 addresses per interface",
        ),
        of_module(
            KARPENTER_AWS,
            "Apache-2.0, Copyright Amazon.com, Inc. or its affiliates",
            "on-demand prices of us-east-1, and baseline network bandwidth",
        ),
        of_module(
            INSTANCES_INFO,
            "MIT as data of ec2instances.info, Copyright 2013 Garret Heaton",
            "spot prices seen in 2025, and the ratio of on-demand prices between regions",
        ),
    ]
}

fn max_pods_notice() -> Notice {
    Notice {
        source: VPC_CNI.path.to_owned(),
        version: VPC_CNI.version.to_owned(),
        licence: "Apache-2.0, Copyright Amazon.com, Inc. or its affiliates".to_owned(),
        taken: "how many pods a node of each instance type takes".to_owned(),
    }
}

fn notice_text(notices: &[Notice]) -> String {
    let lines: String = notices.iter().map(|notice| format!("{notice}\n")).collect();
    format!(
        "The compressed data beside this file holds facts taken from these packages by `cargo xtask catalogue`:\n\n{lines}"
    )
}

fn write(root: &Path, file: &str, bytes: &[u8]) -> Result<()> {
    let path = root.join(file);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("create `{}`", folder.display()))?;
    }
    std::fs::write(&path, bytes).with_context(|| format!("write `{file}`"))?;
    println!("{file}: {} bytes", bytes.len());
    Ok(())
}
