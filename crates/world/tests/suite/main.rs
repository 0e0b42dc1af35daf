//! Whole worlds: seeds with faults, planted mistakes, idle days.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod found;
mod idle;
mod kwok_world;
mod lifecycle;
mod overlays;
mod planted;
mod pool_status;
mod repeat;
mod seeds;
mod static_capacity;
