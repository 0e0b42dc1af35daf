//! Mistakes on purpose, so that the simulation can show that it would find them.
//!
//! They can only be switched on in builds with the feature `planted-bugs`, which only tests have. In every other build
//! the question whether one is planted is answered at compile time.

/// A mistake that a simulation must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A launch that is tried again gets a new launch id, so the provider starts a second instance.
    DoubleLaunch,
    /// Some pods are overlooked.
    ForgottenPod,
    /// Nodes that are not ours are tainted when they change.
    ForeignTaint,
}

/// Which mistake this process makes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    #[cfg(feature = "planted-bugs")]
    bug: Option<PlantedBug>,
}

impl Planted {
    /// Makes this mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn bug(bug: PlantedBug) -> Self {
        Self { bug: Some(bug) }
    }

    /// Whether this process makes the mistake.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn is(self, bug: PlantedBug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether this process makes the mistake.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) fn is(self, _: PlantedBug) -> bool {
        false
    }
}
