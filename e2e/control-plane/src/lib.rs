//! A real Kubernetes control plane on the loopback interface, without containers.
//!
//! [`Toolbox::ensure`] builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok from
//! their published Go modules, once, into a folder outside the clone. [`ControlPlane::start`] runs them on free ports
//! with certificates of their own; any number may run side by side. Whatever ends the test process, a return, a panic
//! or a kill, the programs it started end with it.
//!
//! There is no kubelet, no network and no image: kwok plays the nodes annotated `kwok.x-k8s.io/node=fake`, gives them
//! their heartbeat and their pods the phases a kubelet would report, at once.
//!
//! This crate will never know about autoscaling, nor about a Kubernetes client: it talks to the cluster only by
//! starting kubectl, so that it compiles in seconds.

mod cache;
mod certificates;
mod components;
mod control_plane;
mod etcd;
mod kubeconfig;
mod ports;
mod process;
mod toolbox;
mod workspace;

pub use cache::cache_root;
pub use components::{Compaction, Component, NodeLeases, Options, WatchCache};
pub use control_plane::{ControlPlane, StartError};
pub use ports::{Ports, free_ports};
pub use process::{Launch, Process};
pub use toolbox::{Kubernetes, Program, Toolbox};
