//! Worlds whose spans and log lines are listened to.
//!
//! They have a program of their own, and each of its tests listens before it does anything else. Whether a line of code is
//! worth reporting is decided once for the whole process, by the listeners of the thread that comes past it first: a
//! neighbour that listens to nothing would decide that nobody does.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod load;
mod unsynced;
