//! The kubelets of all machines that this process plays: they write when something changes, and send no heartbeats.

pub(crate) mod node;
pub(crate) mod pod;
mod status;
