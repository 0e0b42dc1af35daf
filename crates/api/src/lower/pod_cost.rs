//! What it costs to move a pod.

/// What a pod's annotations say about the cost of moving it; a value that cannot be read says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatedCost {
    /// Nothing.
    #[default]
    None,
    /// Its owner says so, to us.
    Disruption(i32),
    /// Its owner, or we ourselves, tell ReplicaSets which pod to delete first.
    Deletion(i32),
}

/// Who writes the deletion cost of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionCostWriter {
    /// Their owner, and means it.
    Owner,
    /// We do, to steer ReplicaSets; it says nothing about what moving the pod costs.
    Ourselves,
}

impl StatedCost {
    /// The annotation that is meant for us hides the other, readable or not.
    pub(super) fn read(disruption: Option<&str>, deletion: Option<&str>) -> Self {
        let read = |text: &str| text.parse::<i32>().ok();
        match (disruption, deletion) {
            (Some(text), _) => read(text).map_or(Self::None, Self::Disruption),
            (None, Some(text)) => read(text).map_or(Self::None, Self::Deletion),
            (None, None) => Self::None,
        }
    }

    /// The cost of moving one pod of this priority: about 1, more for pods that matter more, and never beyond ten pods
    /// either way.
    pub(super) fn eviction_cost(self, priority: i32, writer: DeletionCostWriter) -> f64 {
        const WHOLE_STATED: f64 = (1_u32 << 27) as f64;
        const WHOLE_PRIORITY: f64 = (1_u32 << 25) as f64;
        let stated = match (self, writer) {
            (Self::Disruption(cost), _) | (Self::Deletion(cost), DeletionCostWriter::Owner) => f64::from(cost),
            (Self::None, _) | (Self::Deletion(_), DeletionCostWriter::Ourselves) => 0.0,
        };
        (1.0 + stated / WHOLE_STATED + f64::from(priority) / WHOLE_PRIORITY).clamp(-10.0, 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_costs_and_priorities_add_up() {
        use DeletionCostWriter::{Ourselves, Owner};
        let (whole, priority) = ((1_i32 << 27).to_string(), 1 << 25);
        let whole = Some(whole.as_str());
        let table = [
            (None, None, 0, Owner, 1.0),
            (whole, None, 0, Owner, 2.0),
            (None, whole, 0, Owner, 2.0),
            (None, whole, 0, Ourselves, 1.0),
            (whole, None, 0, Ourselves, 2.0),
            (Some("-134217728"), whole, 0, Owner, 0.0),
            (Some("much"), whole, 0, Owner, 1.0),
            (Some("9999999999"), None, 0, Owner, 1.0),
            (None, None, priority, Owner, 2.0),
            (None, None, i32::MAX, Owner, 10.0),
            (None, None, i32::MIN, Owner, -10.0),
        ];
        for (disruption, deletion, priority, writer, expected) in table {
            let cost = StatedCost::read(disruption, deletion).eviction_cost(priority, writer);
            assert!((cost - expected).abs() < 1e-9, "{disruption:?} {deletion:?} {priority} {writer:?}: {cost}");
        }
    }
}
