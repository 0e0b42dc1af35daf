//! Whole worlds: seeds with faults, planted mistakes, idle days.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod buffers;
mod candidates;
mod clocks;
mod deletion_cost;
mod found;
mod idle;
mod kwok_world;
mod lifecycle;
mod monitoring;
mod overlays;
mod planted;
mod pool_status;
mod process;
mod promises;
mod repair;
mod repeat;
mod scrape;
mod seeds;
mod signals;
mod spare;
mod static_capacity;
