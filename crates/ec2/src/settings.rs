//! What the operator of the controller sets.

/// Settings that decide about instance types.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The share of memory that the hypervisor and the kernel are expected to take.
    pub vm_memory_overhead_percent: f64,
    /// Network interfaces that are not for pods.
    pub reserved_enis: u32,
    /// Whether capacity reservations are used.
    pub reserved_capacity: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { vm_memory_overhead_percent: 0.075, reserved_enis: 0, reserved_capacity: true }
    }
}
