//! Whole worlds: seeds with faults, planted mistakes, idle days.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod buffers;
mod candidates;
mod deletion_cost;
mod found;
mod idle;
mod overlays;
mod planted;
mod repeat;
mod seeds;
