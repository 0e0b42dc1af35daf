//! Plans of made-up clusters, carried out on a real control plane: the real kube-scheduler has the last word.
//!
//! Every seed is a small cluster with nodes, running pods and waiting ones, drawn as the objects that people write. They
//! are made on the API server and read back from there as the controller reads them. The waiting pods are planned, the
//! planned nodes are made, KWOK keeps them ready, and the pods are created, in two clusters of the same seed: steered, one
//! after the other in the plan's order with every node but the planned one cordoned, where the kube-scheduler must accept
//! each; and left to itself, all at once, where nothing may be pending after one more round of planning; see [`left_alone`]
//! for the exceptions, which are counted.
//!
//! Clusters share the control plane and do not see each other: nodes carry a label with the cluster's name, which pools give
//! and pods select, and pods live in namespaces of their own. `KARPENTER_AGREEMENT_SEED` is the first seed,
//! `KARPENTER_AGREEMENT_COUNT` how many there are.

mod bench;
#[allow(dead_code, reason = "other tests use other parts of it")]
#[path = "../../../crates/planner/tests/suite/brute/mod.rs"]
mod brute;
mod case;
#[allow(dead_code, reason = "other tests use other parts of it")]
#[path = "../../../crates/planner/tests/suite/chance.rs"]
mod chance;
mod draw;
#[allow(dead_code, reason = "other tests use other parts of the language")]
#[path = "../../../crates/planner/tests/language/mod.rs"]
mod language;
mod left_alone;
mod provisioner;
mod settled;
mod shared;
mod steered;

use std::collections::BTreeMap;
use std::env;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use control_plane::{ControlPlane, Options, Toolbox};
use kube::Client;
use tokio::runtime::Runtime;

use crate::bench::Bench;
use crate::case::{Case, shown};
use crate::draw::{Draft, Phase};
use crate::left_alone::Rounds;
use crate::provisioner::Provisioner;

/// In the test command; more are tried by hand.
const SEEDS: u64 = 60;

/// So many seeds wait for the scheduler at the same time.
const SEEDS_AT_ONCE: usize = 8;

/// What came of a seed.
#[derive(Clone, Debug, Default)]
struct Verdict {
    planned: usize,
    rounds: Rounds,
}

#[test]
fn the_kube_scheduler_accepts_what_is_planned() -> Result<()> {
    let first = number("KARPENTER_AGREEMENT_SEED", 1)?;
    let count = number("KARPENTER_AGREEMENT_COUNT", SEEDS)?;
    // Nobody needs tokens here, and every namespace would wait for its service account.
    let options = Options {
        api_server_flags: vec!["--disable-admission-plugins=ServiceAccount".to_owned()],
        ..Options::default()
    };
    let control_plane = ControlPlane::start(&Toolbox::ensure()?, &options)?;
    let kubeconfig = control_plane.admin_kubeconfig();
    runtime()?.block_on(async { shared::create(&e2e::client(&kubeconfig).await?).await })?;
    let provisioner = Provisioner::start(&kubeconfig)?;
    let outcomes = try_all(&kubeconfig, first..first + count)?;
    drop(provisioner);
    let failures: Vec<u64> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err().copied()).collect();
    eprintln!("{}", summary(&outcomes.into_iter().flatten().collect::<Vec<_>>()));
    ensure!(failures.is_empty(), "{} of {count} seeds disagree, see above: {failures:?}", failures.len());
    control_plane.stop()
}

fn summary(verdicts: &[Verdict]) -> String {
    let sum = |count: fn(&Verdict) -> usize| verdicts.iter().map(count).sum::<usize>();
    let (planned, second, third) = (sum(|one| one.planned), sum(|one| one.rounds.second), sum(|one| one.rounds.third));
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (reason, count) in verdicts.iter().flat_map(|verdict| &verdict.rounds.beyond_help) {
        *reasons.entry(reason).or_insert(0) += count;
    }
    let beyond_help: usize = reasons.values().sum();
    let share = 100.0 * second as f64 / planned.max(1) as f64;
    let mut text = format!(
        "{} seeds agree; left to themselves, {second} of {planned} pods ({share:.1} %) needed a second round and {third} a \
         third because the second was not followed; {beyond_help} were beyond help, proved by trying every plan",
        verdicts.len()
    );
    for (reason, count) in reasons {
        text += &format!("\n  {count}: {reason}");
    }
    text
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("start a runtime")
}

/// Every seed by itself, so that one that waits in vain does not take the others with it. A seed that fails is told of
/// and comes back as its number.
fn try_all(kubeconfig: &Path, seeds: Range<u64>) -> Result<Vec<Result<Verdict, u64>>> {
    let seeds = Mutex::new(seeds);
    let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<Vec<Result<Verdict, u64>>> {
        let mut outcomes = Vec::new();
        while let Some(seed) = next() {
            let runtime = runtime()?;
            let client = runtime.block_on(e2e::client(kubeconfig))?;
            let attempt = AssertUnwindSafe(|| runtime.block_on(try_seed(client, seed)));
            let outcome = catch_unwind(attempt).unwrap_or_else(|_| Err(anyhow!("it waited in vain; see above")));
            // At once: whoever runs a thousand seeds wants to look into the first failure meanwhile.
            if let Err(error) = &outcome {
                eprintln!("seed {seed} disagrees: {error:#}\n");
            }
            outcomes.push(outcome.map_err(|_| seed));
        }
        Ok(outcomes)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..SEEDS_AT_ONCE).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a worker ended early"))?);
        joined.collect::<Result<Vec<_>>>().map(|outcomes| outcomes.into_iter().flatten().collect())
    })
}

async fn try_seed(client: Client, seed: u64) -> Result<Verdict> {
    let draft = Draft::new(seed, &format!("steered-{seed}"), Phase::Steered);
    steered_seed(&client, &draft, seed).await.with_context(|| draft.shown())?;
    let draft = Draft::new(seed, &format!("alone-{seed}"), Phase::LeftAlone);
    lonely_seed(&client, &draft, seed).await.with_context(|| draft.shown())
}

async fn steered_seed(client: &Client, draft: &Draft, seed: u64) -> Result<()> {
    let bench = Bench::set_up(client, draft).await?;
    let case = Case::planned(&bench, draft, seed).await?;
    bench.add_nodes(&case.carried_out.nodes, &case.carried_out.csi_nodes).await?;
    steered::run(&bench, &case).await.with_context(|| format!("planned:\n{}", shown(&case.plan)))?;
    bench.clear().await
}

async fn lonely_seed(client: &Client, draft: &Draft, seed: u64) -> Result<Verdict> {
    let bench = Bench::set_up(client, draft).await?;
    let case = Case::planned(&bench, draft, seed).await?;
    bench.add_nodes(&case.carried_out.nodes, &case.carried_out.csi_nodes).await?;
    let told = || format!("planned:\n{}", shown(&case.plan));
    let rounds = left_alone::run(&bench, draft, &case).await.with_context(told)?;
    bench.clear().await?;
    Ok(Verdict { planned: case.plan.sequence.len(), rounds })
}

fn number(variable: &str, default: u64) -> Result<u64> {
    match env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("`{variable}` is a number")),
        Err(_) => Ok(default),
    }
}
