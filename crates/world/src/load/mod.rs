//! Load in a world: a large cluster, changes without end, restarts; and what all that takes in real time and memory.
//!
//! The controllers run as everywhere in this crate, unmodified and in virtual time. Whatever is read off the real process
//! (its time, its memory) is handed in as [`Instruments`], so that nothing here knows a real clock; without them a run is
//! the same, and its real figures are zero.
//!
//! - [`run`] plays the whole story, [`page()`] shows its report, [`Report::missed`] says which demands were not met.

mod churn;
mod cluster;
mod figures;
mod instruments;
mod ledger;
mod page;
mod passes;
mod report;
mod settings;
mod shares;
mod story;

pub use figures::Spread;
pub use instruments::Instruments;
pub use page::{page, window_heading, window_line};
pub use report::{Report, Start, Window};
pub use settings::LoadSettings;
pub use story::run;
