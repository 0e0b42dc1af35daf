//! What may be set about a placement.

use model::Price;

/// Bounds and constants of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceConfig {
    /// The most instance types a planned claim lists. Providers take a list of this length in one call.
    pub types_per_claim_max: usize,
    /// How often the search may look at an instance type of a claim that is planned already, to see whether more
    /// pods fit there. Afterwards pods get new claims at once: a dearer plan, but a valid one.
    pub steps_max: u64,
    /// What a node costs beyond its price, per hour: another kubelet, another set of connections, another thing to
    /// watch. Keeps equal prices per pod from ending in many tiny nodes.
    pub node_overhead: Price,
}

/// As many as the reference lists.
const TYPES_PER_CLAIM_MAX: usize = 600;

/// A look costs well under a microsecond, so that this is at most about a second; a thousand classes that each look
/// at a hundred claims of forty types stay below it.
const STEPS_MAX: u64 = 5_000_000;

/// A tenth of a cent: less than any real node, more than rounding.
const NODE_OVERHEAD_DOLLARS: f64 = 0.001;

impl Default for PlaceConfig {
    fn default() -> Self {
        Self {
            types_per_claim_max: TYPES_PER_CLAIM_MAX,
            steps_max: STEPS_MAX,
            node_overhead: Price::from_dollars(NODE_OVERHEAD_DOLLARS),
        }
    }
}
