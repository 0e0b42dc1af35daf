//! Pod deletion costs: a ReplicaSet that scales down takes the pods first whose nodes we would like to be rid of.

mod metrics;
mod ranking;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::{PodKey, Revision};

pub(crate) use metrics::Annotated;
pub(crate) use ranking::Wanted;

use crate::context::Context;
use crate::provisioning;
use crate::work::{Next, Outcome, Work};
use crate::write::{self, WriteError};

/// Nodes are ranked this often.
const INTERVAL: Duration = Duration::from_secs(60);
/// After this long they are ranked again although nothing is known to have changed: prices, schedules of budgets and the
/// protection of pods do not say when they change.
const LOOK_ANYWAY: SignedDuration = SignedDuration::from_secs(5 * 60);

/// What this process has still to write, and what its last round saw. Lost with the process, and found out anew.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    wanted: BTreeMap<PodKey, (String, Wanted)>,
    ranked: Option<(Revision, Timestamp)>,
}

impl Ledger {
    /// Whether there is nothing new to rank.
    fn is_current(&self, revision: Revision, now: Timestamp) -> bool {
        self.ranked.is_some_and(|(seen, at)| seen == revision && now.duration_since(at) < LOOK_ANYWAY)
    }
}

/// Ranks nodes and has their pods annotated.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    let now = context.now();
    let revision = context.cluster().revision();
    if context.notes().deletion_costs.is_current(revision, now) {
        return Ok(Next::After(INTERVAL));
    }
    provisioning::learn_types(context).await;
    let round = {
        let cluster = context.cluster();
        ranking::round(&cluster, &ranking::rank(&cluster, now))
    };
    context.metrics.deletion_costs_ranked(&round.nodes);
    if !round.writes.is_empty() {
        let nodes: usize = round.nodes.values().sum();
        tracing::debug!(nodes, pods = round.writes.len(), "enqueued pod deletion cost annotation writes");
    }
    let mut notes = context.notes();
    for ranking::Write { pod, uid, wanted } in round.writes {
        notes.deletion_costs.wanted.insert(pod.clone(), (uid.clone(), wanted));
        context.offer(Work::Annotate(pod, uid));
    }
    notes.deletion_costs.ranked = Some((revision, now));
    Ok(Next::After(INTERVAL))
}

/// Has one pod say what it should. Whoever else writes the pod at the same time wins: the next round looks again.
pub(crate) async fn annotate(context: &Context, key: &PodKey, uid: &str) -> Outcome {
    let wanted = context.notes().deletion_costs.wanted.get(key).filter(|(of, _)| of == uid).map(|(_, wanted)| *wanted);
    let Some(wanted) = wanted else { return Ok(Next::OnChange) };
    let pod = context.cluster().pod(key).filter(|pod| &*pod.uid == uid).cloned();
    let (annotated, failure) = match pod {
        None => (Annotated::NotFound, None),
        Some(pod) if wanted.is_said_by(&pod) => (Annotated::Unchanged, None),
        Some(pod) => match write::annotate_pod(context, &pod, wanted).await {
            Ok(()) => (Annotated::Updated, None),
            Err(WriteError::NotFound { .. }) => (Annotated::NotFound, None),
            Err(WriteError::Conflict { .. }) => (Annotated::Conflict, None),
            Err(error) => (Annotated::Failed, Some(error)),
        },
    };
    context.metrics.deletion_cost_written(annotated);
    if let Some(error) = failure {
        return Err(error.into());
    }
    let mut notes = context.notes();
    // A newer wish may have come meanwhile.
    if notes.deletion_costs.wanted.get(key) == Some(&(uid.to_owned(), wanted)) {
        notes.deletion_costs.wanted.remove(key);
    }
    Ok(Next::OnChange)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PDC-04: what was ranked is not ranked again before something changes, or five minutes have passed.
    #[test]
    fn nothing_new_is_ranked_again_after_five_minutes() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert!(!Ledger::default().is_current(Revision(7), at(0)), "nothing was ranked yet");
        let ledger = Ledger { ranked: Some((Revision(7), at(1000))), ..Ledger::default() };
        for (revision, now, is_current) in [(7, 1000, true), (7, 1299, true), (7, 1300, false), (8, 1001, false)] {
            assert_eq!(ledger.is_current(Revision(revision), at(now)), is_current, "{revision} at {now}");
        }
    }
}
