//! Pools: what they hold, may hold, and cost.

use api::lower::resources;
use model::Resources;

use super::amount;
use crate::context::Context;
use crate::metrics::pools::{COST, LIMIT, USAGE};
use crate::metrics::{Page, Row};

struct PoolTold {
    name: String,
    limits: Resources,
    usage: Resources,
    cost: f64,
}

/// Several series for each pool. Usage is what its status says, so that both never disagree.
pub(super) fn tell(context: &Context, page: &mut Page) {
    let pools: Vec<PoolTold> = {
        let cluster = context.cluster();
        let costs = cluster.costs();
        let told = cluster.pools().map(|(name, pool)| PoolTold {
            name: name.to_string(),
            limits: pool.spec.limits.as_ref().map(resources).unwrap_or_default(),
            usage: pool.status.as_ref().and_then(|status| status.resources.as_ref()).map(resources).unwrap_or_default(),
            cost: costs.get(name).map_or(0.0, |cost| cost.dollars()),
        });
        told.collect()
    };
    tell_amounts(page, &LIMIT, &pools, |told| &told.limits);
    tell_amounts(page, &USAGE, &pools, |told| &told.usage);
    page.metric(&COST, pools.iter().map(|told| ([("nodepool", told.name.as_str())], told.cost)));
}

fn tell_amounts(page: &mut Page, row: &Row, pools: &[PoolTold], amounts: fn(&PoolTold) -> &Resources) {
    let mut samples = page.begin(row);
    for told in pools {
        for (resource, value) in amounts(told).iter().map(|(name, value)| amount(name, value)) {
            samples.sample([("resource_type", resource.as_str()), ("nodepool", told.name.as_str())], value);
        }
    }
}
