//! What may be set about a placement.

use model::Price;

/// What becomes of wishes: preferred affinities and soft spreading. `PreferNoSchedule` taints are minded either way, as
/// long as there is somewhere else to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreferencePolicy {
    /// They are rules until they cannot be kept; then they are given up one by one.
    Respect,
    /// They are not looked at.
    Ignore,
}

/// What happens when fewer values are left than a pool's `minValues` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinValuesPolicy {
    /// The pool makes no such node.
    Strict,
    /// New nodes get the most values there are, and say so.
    BestEffort,
}

/// What reserved capacity means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationPolicy {
    /// Nothing: reservations are offerings like others.
    Ignored,
    /// Pods wait for the next round rather than pay for what is reserved already.
    Strict,
    /// Pods may go elsewhere when reservations are taken; for questions of the kind "what if".
    Fallback,
}

/// Bounds and constants of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceConfig {
    /// The most instance types a planned claim lists. Providers take a list of this length in one call.
    pub types_per_claim_max: usize,
    /// How many steps the search for cheaper nodes may take. Afterwards what there is stands: a dearer plan, but a
    /// valid one.
    pub steps_max: u64,
    /// What a node costs beyond its price, per hour: another kubelet, another set of connections, another thing to
    /// watch. Keeps equal prices per pod from ending in many tiny nodes.
    pub node_overhead: Price,
    /// What becomes of wishes.
    pub preferences: PreferencePolicy,
    /// What becomes of a demand for variety that cannot be met.
    pub min_values: MinValuesPolicy,
    /// What reserved capacity means.
    pub reservations: ReservationPolicy,
}

/// As many as the reference lists.
const TYPES_PER_CLAIM_MAX: usize = 600;

/// A step costs some ten nanoseconds, so that this is at most about a second.
const STEPS_MAX: u64 = 50_000_000;

/// A tenth of a cent: less than any real node, more than rounding.
const NODE_OVERHEAD_DOLLARS: f64 = 0.001;

impl Default for PlaceConfig {
    fn default() -> Self {
        Self {
            types_per_claim_max: TYPES_PER_CLAIM_MAX,
            steps_max: STEPS_MAX,
            node_overhead: Price::from_dollars(NODE_OVERHEAD_DOLLARS),
            preferences: PreferencePolicy::Respect,
            min_values: MinValuesPolicy::Strict,
            reservations: ReservationPolicy::Strict,
        }
    }
}
