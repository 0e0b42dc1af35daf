//! From what can be seen to what is worth telling.
//!
//! Everything here is a pure fold: changes of objects and recorded plans go in, in the order of time; lines come out,
//! equal things of one moment as one line. No number is known beforehand, so that any story is told the same way.

mod claims;
mod cluster;
mod decisions;
mod moments;
mod news;
mod offers;
mod pods;
mod read;
mod teller;

pub use news::{
    Announced, Barren, Decided, Joined, Launched, Line, Machine, Moved, News, Nodes, ObjectName, Objects, PodsOf,
    Refused, Removed, Removing, Scaled, Started, Warned, Welcomed,
};
pub use offers::Offer;
pub use teller::Teller;
