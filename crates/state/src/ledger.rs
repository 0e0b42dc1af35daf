//! What the claims of each pool hold, kept up to date claim by claim.

use std::collections::{BTreeMap, BTreeSet};

use api::{NodeClaim, lower};
use model::{ClaimName, PoolName, ResourceName, Resources};

use crate::cluster::{pool_name, provider_of};
use crate::usage::count;

/// What the claims of one pool hold.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    /// Machines that were launched, `nodes` among it.
    pub(crate) launched: Resources,
    /// Those of them that are not going.
    pub(crate) staying: Resources,
    /// Claims whose machine is not known yet.
    pub(crate) promised: BTreeSet<ClaimName>,
}

impl Holdings {
    fn is_empty(&self) -> bool {
        self.launched.is_empty() && self.promised.is_empty()
    }
}

/// Holdings by pool.
#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeMap<PoolName, Holdings>);

impl Ledger {
    pub(crate) fn of(&self, pool: &PoolName) -> Option<&Holdings> {
        self.0.get(pool)
    }

    pub(crate) fn add(&mut self, name: &ClaimName, claim: &NodeClaim) {
        self.enter(name, claim, 1);
    }

    pub(crate) fn take(&mut self, name: &ClaimName, claim: &NodeClaim) {
        self.enter(name, claim, -1);
    }

    fn enter(&mut self, name: &ClaimName, claim: &NodeClaim, times: i64) {
        let Some(pool) = pool_name(claim) else { return };
        let holdings = self.0.entry(pool.clone()).or_default();
        if provider_of(claim).is_some() {
            let capacity = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
            let held = capacity.map(lower::resources).unwrap_or_default().with(ResourceName::nodes(), 1);
            count(&mut holdings.launched, &held, times);
            if claim.metadata.deletion_timestamp.is_none() {
                count(&mut holdings.staying, &held, times);
            }
        } else if times > 0 {
            holdings.promised.insert(name.clone());
        } else {
            holdings.promised.remove(name);
        }
        if holdings.is_empty() {
            self.0.remove(&pool);
        }
    }
}
