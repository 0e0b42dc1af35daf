//! Status conditions and terminations of the objects we keep, by kind.

use super::table::families;

families! {
    /// Metrics of status conditions that are fed as they change.
    ConditionMetrics {}
    computed {}
    later {}
}
