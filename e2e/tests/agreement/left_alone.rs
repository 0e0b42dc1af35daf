//! Left to itself: all pods at once, and more rounds of planning for those that found no place.
//!
//! A second round must be enough. There are two ways out, and both have to be shown: no plan at all places a pod any more,
//! because of what the kube-scheduler did before, which is proved by trying every plan; or the kube-scheduler put a pod
//! of the second round elsewhere than planned and so took the room of another, which then gets a third.
//!
//! Daemons count by pool and type (PROV-34): one that keeps to a zone is counted in all zones of its pool. A pod that
//! only fits where such a daemon will not be is refused, here as by the reference; it is told apart from the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use model::{InstanceType, Plan, PodKey, Pool, Price, Snapshot};

use crate::bench::{Bench, is_of_others, reasons};
use crate::brute::{Cost, Outcome, more_placed};
use crate::case::{CarriedOut, Case, Round, judged_plan, shown, with_daemons_everywhere};
use crate::draw::Draft;
use crate::settled::Settled;

/// Whoever still waits after so many is stuck.
const ROUNDS_MAX: u32 = 5;

/// What became of the pods that found no place at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// How many there were.
    pub(crate) second: usize,
    /// How many of these waited after a second round because the kube-scheduler had not followed its plan.
    pub(crate) third: usize,
    /// How many no plan can help any more, by what the kube-scheduler says about them.
    pub(crate) beyond_help: BTreeMap<String, usize>,
}

pub(crate) async fn run(bench: &Bench<'_>, draft: &Draft, case: &Case) -> Result<Rounds> {
    let expected: BTreeSet<PodKey> = case.plan.sequence.iter().cloned().collect();
    let pods: Vec<Pod> = expected.iter().filter_map(|key| case.pods.get(key)).cloned().collect();
    bench.create_local(&pods).await?;
    let mut settled = Settled::wait(bench, &expected).await?;
    let mut rounds = Rounds { second: settled.snapshot.pending.len(), ..Rounds::default() };
    for number in 2.. {
        if settled.snapshot.pending.is_empty() {
            break;
        }
        ensure!(number <= ROUNDS_MAX, "after {ROUNDS_MAX} rounds, pods still wait: {:?}", settled.complaints);
        let plan = judged_plan(&settled.snapshot)?;
        let told = || format!("round {number}, with {:?}:\n{}", settled.homes, shown(&plan));
        let refused: BTreeSet<PodKey> = plan.unplaced.iter().flat_map(|unplaced| unplaced.pods.clone()).collect();
        let proof =
            if refused.is_empty() { Proof::NoPlan } else { prove(&settled.snapshot, &plan).with_context(told)? };
        if refused.len() == settled.snapshot.pending.len() {
            rounds.beyond_help = match proof {
                Proof::NoPlan => by_reason(&settled.complaints),
                Proof::DaemonsElsewhere => {
                    BTreeMap::from([("room only beside daemons of other zones".to_owned(), refused.len())])
                }
            };
            break;
        }
        let round = Round { number, seed: u64::from(number), cordoned: true };
        let made = CarriedOut::new(&draft.name, &settled.snapshot, &plan, &round);
        let after = open(bench, &made, &expected).await.with_context(told)?;
        let is_late = |key: &&PodKey| !refused.contains(*key);
        let late: Vec<&PodKey> = after.snapshot.pending.iter().map(|pod| &pod.key).filter(is_late).collect();
        if !late.is_empty() {
            let strayed = |(pod, seat): (&PodKey, &String)| after.homes.get(pod).is_some_and(|home| home != seat);
            ensure!(made.seats.iter().any(strayed), "{late:?} still wait, though all is as planned; {}", told());
            rounds.third += if number == 2 { late.len() } else { 0 };
        }
        settled = after;
    }
    Ok(rounds)
}

/// Makes the nodes of a round, opens them once their daemons are there, and waits.
async fn open(bench: &Bench<'_>, made: &CarriedOut, expected: &BTreeSet<PodKey>) -> Result<Settled> {
    bench.add_nodes(&made.nodes, &made.csi_nodes).await?;
    let names: Vec<String> = made.nodes.iter().map(ResourceExt::name_any).collect();
    try_join_all(names.iter().map(|name| bench.cordon(name, false))).await?;
    Settled::wait(bench, expected).await
}

/// Why no plan places more pods.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// There is none that keeps every rule.
    NoPlan,
    /// There is none that leaves room for a daemon wherever its pool allows it.
    DaemonsElsewhere,
}

/// Fails if some plan that keeps every rule, whatever it costs, places more pods, or if that cannot be told.
fn prove(snapshot: &Snapshot, plan: &Plan) -> Result<Proof> {
    let snapshot =
        Snapshot { pools: snapshot.pools.iter().map(|pool| for_nothing(pool)).collect(), ..snapshot.clone() };
    let cost = Cost { price: Price::ZERO, ..Cost::of(&snapshot, plan, Price::ZERO) };
    match more_placed(&snapshot, &cost) {
        Outcome::NothingBetter => Ok(Proof::NoPlan),
        Outcome::TooLarge => bail!("pods are refused, and there are too many plans to try"),
        Outcome::Better(found) => match more_placed(&with_daemons_everywhere(&snapshot), &cost) {
            Outcome::NothingBetter => Ok(Proof::DaemonsElsewhere),
            _ => bail!("pods are refused that could be placed:\n{}", found.text),
        },
    }
}

/// The pool with nothing to pay: who looks for more room need not look at prices.
fn for_nothing(pool: &Pool) -> Arc<Pool> {
    let free = |kind: &Arc<InstanceType>| {
        let mut kind = InstanceType::clone(kind);
        kind.offerings.iter_mut().for_each(|offering| offering.price = Price::ZERO);
        Arc::new(kind)
    };
    Arc::new(Pool { types: pool.types.iter().map(free).collect(), ..pool.clone() })
}

fn by_reason(complaints: &BTreeMap<PodKey, String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for complaint in complaints.values() {
        let own: BTreeSet<&str> = reasons(complaint).filter(|reason| !is_of_others(reason)).collect();
        let reason = if own.is_empty() { "no node".to_owned() } else { own.into_iter().collect::<Vec<_>>().join(", ") };
        *counts.entry(reason).or_insert(0) += 1;
    }
    counts
}
