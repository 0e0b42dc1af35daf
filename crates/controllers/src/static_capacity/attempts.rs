//! What became of the claims that a static pool asked for. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::NodeClaim;
use cloud::LaunchId;
use jiff::{SignedDuration, Timestamp};
use model::ClaimName;

use crate::lifecycle::{believed, left_of, name_of};

/// A claim that was asked for and of which no answer came may appear for this long: as long as API servers give a
/// request by default. One that is later still is found by those who count claims before a launch.
const MAY_APPEAR: SignedDuration = SignedDuration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What one process remembers of the claims that it made for one pool. Lost with the process, and may be: a claim too
/// many is ended again.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// Creations without an answer, and until when they may appear.
    unanswered: BTreeMap<LaunchId, Timestamp>,
    /// Claims that were made and have no instance yet.
    hoped_for: BTreeSet<ClaimName>,
    /// How often in a row claims came to nothing.
    failures: u32,
    /// When they last did.
    failed_at: Option<Timestamp>,
    /// Whether the pool's limit keeps it from what it lacks.
    is_at_limit: bool,
}

impl Attempts {
    /// A claim exists.
    pub(super) fn made(&mut self, claim: ClaimName) {
        self.hoped_for.insert(claim);
    }

    /// Nobody knows whether a claim exists.
    pub(super) fn unanswered(&mut self, launch: LaunchId, now: Timestamp) {
        self.unanswered.insert(launch, now + MAY_APPEAR);
    }

    /// We end a claim ourselves, which is no failure of it.
    pub(super) fn ended(&mut self, claim: &ClaimName) {
        self.hoped_for.remove(claim);
    }

    /// Claims that may still appear.
    pub(super) fn reserved(&self) -> usize {
        self.unanswered.len()
    }

    /// Notes whether the pool is at its limit; answers whether it has just come there.
    pub(super) fn is_at_limit_now(&mut self, is_at_limit: bool) -> bool {
        let was_at_limit = std::mem::replace(&mut self.is_at_limit, is_at_limit);
        is_at_limit && !was_at_limit
    }

    /// Looks at the claims that the pool has now.
    pub(super) fn review(&mut self, claims: &[Arc<NodeClaim>], now: Timestamp) {
        let seen: BTreeSet<LaunchId> = claims.iter().filter_map(|claim| LaunchId::of(claim)).collect();
        let may_appear = |until: Timestamp| now < until && believed(until - MAY_APPEAR, now).is_some();
        self.unanswered.retain(|launch, until| may_appear(*until) && !seen.contains(launch));
        let by_name: BTreeMap<ClaimName, &Arc<NodeClaim>> =
            claims.iter().map(|claim| (name_of(claim), claim)).collect();
        let (mut has_launched, mut has_failed) = (false, false);
        self.hoped_for.retain(|name| match by_name.get(name) {
            Some(claim) if is_launched(claim) => {
                has_launched = true;
                false
            }
            Some(claim) if claim.metadata.deletion_timestamp.is_none() => true,
            _ => {
                has_failed = true;
                false
            }
        });
        if has_launched {
            (self.failures, self.failed_at) = (0, None);
        }
        if has_failed {
            (self.failures, self.failed_at) = (self.failures.saturating_add(1), Some(now));
        }
    }

    /// How long to wait before the next claims: a pool for which nothing can be bought asks less and less often.
    pub(super) fn pause(&self, now: Timestamp) -> Option<Duration> {
        let factor = 1_u32 << self.failures.saturating_sub(1).min(16);
        left_of(FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE), believed(self.failed_at?, now)?, now)
    }

    /// When a claim that may still appear no longer may.
    pub(super) fn settled_after(&self, now: Timestamp) -> Option<Duration> {
        let until = self.unanswered.values().min()?;
        Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
    }
}

/// Whether a claim has an instance.
pub(super) fn is_launched(claim: &NodeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.provider_id.as_deref()).is_some_and(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A claim as `name`, `name launched` or `name going`; its launch has the same name.
    fn claim(text: &str) -> Arc<NodeClaim> {
        let (name, state) = text.split_once(' ').unwrap_or((text, ""));
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": name, "annotations": {"karpenter.sh/launch-id": name}},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
        });
        match state {
            "launched" => claim["status"] = json!({"providerID": "kwok://n"}),
            "going" => claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            _ => {}
        }
        Arc::new(serde_json::from_value(claim).expect("a claim"))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn review(attempts: &mut Attempts, claims: &[&str], now: i64) {
        let claims: Vec<Arc<NodeClaim>> = claims.iter().map(|text| claim(text)).collect();
        attempts.review(&claims, at(now));
    }

    /// STAT-02: a claim without an answer holds its place until it appears, or can no longer appear.
    #[test]
    fn what_may_appear_holds_its_place() {
        let mut attempts = Attempts::default();
        attempts.unanswered(LaunchId::new("a"), at(0));
        attempts.unanswered(LaunchId::new("b"), at(10));
        assert_eq!((attempts.reserved(), attempts.settled_after(at(1))), (2, Some(Duration::from_secs(59))));
        review(&mut attempts, &["b"], 20);
        assert_eq!(attempts.reserved(), 1, "b has appeared");
        review(&mut attempts, &["b"], 59);
        assert_eq!(attempts.reserved(), 1);
        review(&mut attempts, &["b"], 60);
        assert_eq!((attempts.reserved(), attempts.settled_after(at(60))), (0, None));
    }

    #[test]
    fn claims_that_come_to_nothing_slow_a_pool_down() {
        let mut attempts = Attempts::default();
        let pause = |attempts: &Attempts, now| attempts.pause(at(now)).map(|pause| pause.as_secs());
        for (round, expected) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            let now = i64::try_from(round).expect("few rounds") * 100;
            attempts.made(ClaimName::new("a"));
            attempts.made(ClaimName::new("b"));
            review(&mut attempts, &["a", "b"], now);
            review(&mut attempts, &["a going"], now);
            assert_eq!(pause(&attempts, now), Some(expected));
            assert_eq!(pause(&attempts, now + 60), None, "it passes");
        }
        attempts.made(ClaimName::new("c"));
        review(&mut attempts, &["c launched"], 1000);
        assert_eq!(attempts.pause(at(1000)), None, "one that is launched ends it");
    }

    #[test]
    fn what_we_end_ourselves_is_no_failure() {
        let mut attempts = Attempts::default();
        attempts.made(ClaimName::new("a"));
        attempts.ended(&ClaimName::new("a"));
        review(&mut attempts, &["a going"], 0);
        assert_eq!(attempts.pause(at(0)), None);
    }
}
