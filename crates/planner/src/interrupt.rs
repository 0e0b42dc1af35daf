//! How much work a placement may still do.

use std::sync::atomic::{AtomicBool, Ordering};

/// Tells a placement, from another thread, that nobody waits for a cheaper plan any more.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// One that was not raised yet.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// From now on the search for cheaper nodes is over; what there is becomes the plan.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The steps that are left, unless somebody interrupts.
#[derive(Clone, Copy)]
pub(crate) struct Budget<'a> {
    pub(crate) steps: u64,
    pub(crate) interrupt: &'a Interrupt,
}
