//! The controllers of workloads: each a pure function of the caches, a key and the time.

pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod job;
mod job_status;
pub(crate) mod ranking;
pub(crate) mod replica_set;
mod rollout;
pub(crate) mod stateful_set;
pub(crate) mod template;
