//! Whole worlds: seeds with faults, planted mistakes, idle days.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod buffers;
mod candidates;
mod deletion_cost;
mod found;
mod idle;
mod kwok_world;
mod lifecycle;
mod load;
mod monitoring;
mod overlays;
mod planted;
mod pool_status;
mod repeat;
mod scrape;
mod seeds;
mod signals;
mod static_capacity;
