//! How long a claim may live. Pure.

use std::time::Duration;

use api::NodeClaim;
use jiff::Timestamp;

use super::left_of;
use crate::work::Next;

/// What is left of a claim's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// It lives as long as it is wanted.
    Never,
    /// This much.
    In(Duration),
    /// Nothing.
    Over,
}

impl Expiry {
    /// When to look again.
    pub(super) fn next(self) -> Next {
        match self {
            Self::In(left) => Next::After(left),
            Self::Never | Self::Over => Next::OnChange,
        }
    }
}

/// The span is the claim's own, as it was when the claim was made, whatever its pool says by now.
pub(super) fn left(claim: &NodeClaim, now: Timestamp) -> Expiry {
    let born = claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let Some((span, born)) = claim.spec.expire_after.as_duration().zip(born) else { return Expiry::Never };
    left_of(span, born, now).map_or(Expiry::Over, Expiry::In)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expire_after: &str, now: i64) -> Expiry {
        let claim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "creationTimestamp": "1970-01-01T00:01:00Z"},
            "spec": {"expireAfter": expire_after, "requirements": [],
                "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
        }));
        left(&claim.unwrap(), Timestamp::from_second(now).unwrap())
    }

    /// LIFE-25: a life is over exactly `expireAfter` after the claim was made.
    #[test]
    fn lives_end_to_the_second() {
        let table = [
            ("30s", 60, Expiry::In(Duration::from_secs(30))),
            ("30s", 89, Expiry::In(Duration::from_secs(1))),
            ("30s", 90, Expiry::Over),
            ("30s", 500, Expiry::Over),
            ("Never", i64::from(u32::MAX), Expiry::Never),
            ("720h", 60, Expiry::In(Duration::from_secs(720 * 3600))),
            // The clock was set back after the claim was made.
            ("30s", 10, Expiry::In(Duration::from_secs(30))),
        ];
        for (expire_after, now, expected) in table {
            assert_eq!(check(expire_after, now), expected, "{expire_after} at {now}");
        }
    }
}
