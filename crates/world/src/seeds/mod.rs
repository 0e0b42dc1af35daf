//! Runs from seeds: draw a story and a fault plan, run them, check the run.

mod draw;
mod run;
mod shrink;
mod table;

pub use draw::{Drawn, EMPTY, HEALED, SETTLED, blows, draw};
pub use run::{Report, RunSettings, run};
pub use shrink::shrink;
pub use table::{Tally, render};
