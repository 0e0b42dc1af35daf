//! Sends the same seeded requests to the embedded API server and to the real one, and compares what they say: status
//! code, body and warnings of every answer, and the events that watches see.
//!
//! Requests come in episodes of forty. An episode has a seed, a namespace and a label of its own; once the servers have
//! answered with different codes, the rest of it proves nothing and is left out. `KARPENTER_DIFFERENTIAL_SEED` is the seed of the first
//! episode, `KARPENTER_DIFFERENTIAL_COUNT` the number of requests.

mod accepted;
mod compare;
mod generate;
mod kinds;
mod memory;
mod normal;
mod request;
mod servers;
mod spoil;

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use control_plane::{ControlPlane, Options, Toolbox};
use serde_json::Value;

use crate::compare::{Difference, compare, compare_events};
use crate::generate::Generator;
use crate::memory::Memory;
use crate::normal::Normaliser;
use crate::request::Request;
use crate::servers::{Servers, Watch};

const EPISODE: usize = 40;
const REQUESTS: usize = 2_000;
/// More than these tell nobody more.
const SHOWN_MAX: usize = 40;
/// How long the real server may take to serve a new definition.
const SERVED_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn both_servers_say_the_same() -> Result<()> {
    let first = number("KARPENTER_DIFFERENTIAL_SEED", 1)?;
    let count = usize::try_from(number("KARPENTER_DIFFERENTIAL_COUNT", u64::try_from(REQUESTS)?)?)?;
    let control_plane = ControlPlane::start(&Toolbox::ensure()?, &Options::api_only())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mismatches = runtime.block_on(async {
        let servers = Servers::new(e2e::client(&control_plane.admin_kubeconfig()).await?);
        install(&servers).await?;
        let normaliser = Normaliser::new()?;
        let mut mismatches = Vec::new();
        let mut sent = 0;
        for seed in first.. {
            if sent >= count || mismatches.len() >= SHOWN_MAX {
                break;
            }
            let episode = Episode::run(&servers, &normaliser, seed, EPISODE.min(count - sent)).await?;
            sent += episode.sent;
            mismatches.extend(episode.mismatches);
        }
        anyhow::Ok(mismatches)
    })?;
    ensure!(mismatches.is_empty(), "the servers differ:\n\n{}", mismatches.join("\n"));
    control_plane.stop()
}

fn number(variable: &str, default: u64) -> Result<u64> {
    match env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("`{variable}` is a number")),
        Err(_) => Ok(default),
    }
}

/// Defines our custom resources on both servers, and waits until the real one serves them.
async fn install(servers: &Servers) -> Result<()> {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts");
    let mut files: Vec<_> = fs::read_dir(charts.join("karpenter-kwok/crds"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    let mut paths: Vec<_> = files.iter().map(fs::DirEntry::path).collect();
    paths.push(charts.join("karpenter/crds/karpenter.k8s.aws_ec2nodeclasses.yaml"));
    for path in paths {
        let definition: Value = serde_yaml_ng::from_str(&fs::read_to_string(&path)?)?;
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let version = definition["spec"]["versions"][0]["name"].as_str().unwrap_or_default();
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let served = Request::new("GET", format!("/apis/{group}/{version}/{plural}")).for_server(&Memory::default());
        let define = Request::new("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").json(definition);
        let define = define.for_server(&Memory::default());
        for reply in [servers.ask_embedded(&define)?, servers.ask_real(&define).await?] {
            ensure!(reply.code == 201, "`{}` is not defined: {}", path.display(), reply.body);
        }
        let until_served = async {
            while servers.ask_real(&served).await?.code != 200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(SERVED_TIMEOUT, until_served).await.context("wait for a definition to be served")??;
    }
    Ok(())
}

/// One episode: how many requests were sent, and in what the servers differed.
struct Episode {
    sent: usize,
    mismatches: Vec<String>,
}

impl Episode {
    async fn run(servers: &Servers, normaliser: &Normaliser, seed: u64, count: usize) -> Result<Self> {
        let mut generator = Generator::new(seed);
        let (mut embedded, mut real) = (Memory::default(), Memory::default());
        let beginning = generator.beginning();
        servers.ask_embedded(&beginning.for_server(&embedded))?;
        servers.ask_real(&beginning.for_server(&real)).await?;
        let mut watches: Vec<Watch> = Vec::new();
        for kind in generator.watched() {
            watches.push(servers.watch(&kind.collection(&generator.namespace()), &generator.selector()).await?);
        }
        let mut mismatches = Vec::new();
        for index in 0..count {
            let request = generator.next();
            let by_embedded = servers.ask_embedded(&request.for_server(&embedded))?;
            if request.takes_old_news() {
                // A list that may not be old makes the real server's memory catch up with its store first.
                servers.ask_real(&Request::new("GET", &request.path).for_server(&real)).await?;
            }
            let by_real = servers.ask_real(&request.for_server(&real)).await?;
            let differences = compare(normaliser, &request, &by_embedded, &by_real);
            if !differences.is_empty() {
                mismatches.push(report(seed, index + 1, &request.to_string(), &differences));
            }
            if by_embedded.code != by_real.code {
                return Ok(Self { sent: index + 1, mismatches });
            }
            embedded.learn(&request, &by_embedded);
            real.learn(&request, &by_real);
        }
        mismatches.extend(compare_watches(servers, normaliser, &generator, watches, seed, count).await?);
        Ok(Self { sent: count, mismatches })
    }
}

/// Ends each watched collection with one more object on both servers, so that no watch is asked before its time.
async fn compare_watches(
    servers: &Servers,
    normaliser: &Normaliser,
    generator: &Generator,
    watches: Vec<Watch>,
    seed: u64,
    count: usize,
) -> Result<Option<String>> {
    let last = format!("last-{seed}");
    for (kind, watch) in generator.watched().into_iter().zip(watches) {
        let ending = generator.ending(kind, &last).for_server(&Memory::default());
        for reply in [servers.ask_embedded(&ending)?, servers.ask_real(&ending).await?] {
            ensure!(reply.code == 201, "the last object of {} was refused: {}", kind.plural, reply.body);
        }
        let path = format!("WATCH {}", watch.path);
        let (embedded, real) = watch.until(&last).await?;
        let differences = compare_events(normaliser, &path, &embedded, &real);
        if !differences.is_empty() {
            return Ok(Some(report(seed, count, &path, &differences)));
        }
    }
    Ok(None)
}

fn report(seed: u64, count: usize, request: &str, differences: &[Difference]) -> String {
    let mut text = format!("{request}\n");
    for difference in differences {
        let _ = writeln!(text, "    {difference}");
    }
    let _ = writeln!(
        text,
        "    again: KARPENTER_DIFFERENTIAL_SEED={seed} KARPENTER_DIFFERENTIAL_COUNT={count} cargo test -p e2e --test differential"
    );
    text
}
