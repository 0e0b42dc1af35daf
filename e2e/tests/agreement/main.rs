//! Plans of made-up clusters, carried out on a real control plane: the real kube-scheduler has the last word.
//!
//! Every seed is a small cluster with nodes, running pods and waiting ones. It is planned, the planned nodes are made,
//! KWOK keeps them ready, and the pods are created twice: steered, one after the other in the plan's order with every node
//! but the planned one cordoned, where the kube-scheduler must accept each; and left to itself, all at once, where nothing
//! may be pending after at most one more round of planning, unless no plan could help any more.
//!
//! Seeds share the control plane and do not see each other: nodes carry a label of their seed, which pools give and pods
//! select, and pods live in a namespace of their own. `KARPENTER_AGREEMENT_SEED` is the first seed,
//! `KARPENTER_AGREEMENT_COUNT` how many there are.

mod bench;
#[allow(dead_code, reason = "other tests use other parts of it")]
#[path = "../../../crates/planner/tests/suite/brute/mod.rs"]
mod brute;
mod case;
#[allow(dead_code, reason = "other tests use other parts of it")]
#[path = "../../../crates/planner/tests/suite/chance.rs"]
mod chance;
#[allow(dead_code, reason = "other tests use other parts of the language")]
#[path = "../../../crates/planner/tests/language/mod.rs"]
mod language;
mod left_alone;
mod objects;
mod steered;

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
use crate::case::{Case, Phase};
use crate::left_alone::Rounds;

/// In the test command; more are tried by hand.
const SEEDS: u64 = 60;

/// So many seeds wait for the scheduler at the same time.
const SEEDS_AT_ONCE: usize = 8;

/// What came of a seed.
#[derive(Clone, Copy, Debug, Default)]
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
    runtime()?.block_on(async { objects::create_priorities(&e2e::client(&kubeconfig).await?).await })?;
    let outcomes = try_all(&kubeconfig, first..first + count)?;
    let (verdicts, failures): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    let verdicts: Vec<Verdict> = verdicts.into_iter().flatten().collect();
    let failures: Vec<String> =
        failures.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    let planned: usize = verdicts.iter().map(|verdict| verdict.planned).sum();
    let again: usize = verdicts.iter().map(|verdict| verdict.rounds.second).sum();
    let stranded: usize = verdicts.iter().map(|verdict| verdict.rounds.stranded).sum();
    eprintln!(
        "{} seeds agree; left to themselves, {again} of {planned} pods needed a second round, and {stranded} of these were beyond help",
        verdicts.len()
    );
    ensure!(failures.is_empty(), "{} of {count} seeds disagree:\n\n{}", failures.len(), failures.join("\n\n"));
    control_plane.stop()
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("start a runtime")
}

/// Every seed by itself, so that one that waits in vain does not take the others with it.
fn try_all(kubeconfig: &Path, seeds: Range<u64>) -> Result<Vec<Result<Verdict>>> {
    let seeds = Mutex::new(seeds);
    let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<Vec<Result<Verdict>>> {
        let mut outcomes = Vec::new();
        while let Some(seed) = next() {
            let runtime = runtime()?;
            let client = runtime.block_on(e2e::client(kubeconfig))?;
            let attempt = AssertUnwindSafe(|| runtime.block_on(try_seed(client, seed)));
            let outcome = catch_unwind(attempt).unwrap_or_else(|_| Err(anyhow!("it waited in vain; see above")));
            outcomes.push(outcome.with_context(|| format!("seed {seed}")));
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
    let case = Case::new(seed, Phase::Steered);
    let bench = Bench::set_up(&client, &case, bench::Cordon::All).await?;
    steered::run(&bench, &case).await.with_context(|| case.shown())?;
    bench.clear().await?;
    let case = Case::new(seed, Phase::LeftAlone);
    let bench = Bench::set_up(&client, &case, bench::Cordon::None).await?;
    let rounds = left_alone::run(&bench, &case).await.with_context(|| case.shown())?;
    bench.clear().await?;
    Ok(Verdict { planned: case.plan.sequence.len(), rounds })
}

fn number(variable: &str, default: u64) -> Result<u64> {
    match env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("`{variable}` is a number")),
        Err(_) => Ok(default),
    }
}
