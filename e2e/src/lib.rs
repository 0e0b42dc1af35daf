//! What end-to-end tests stand on: a cluster with our custom resources and the controller on it, and waiting that
//! watches instead of sleeping.
//!
//! A story is written once, against [`Bed`], and [`cluster_tests!`] makes a test of it on every cluster there is: a real
//! control plane with the controller as a process of its own, under exactly the role it ships with, and the embedded
//! world, where everything runs in this process and in virtual time.
//!
//! Tests see the cluster only from outside: through the API server, and on the real one through kubectl, the
//! controller's endpoints and its log. No test here knows a type of the planner, the state or the controllers,
//! but for `tests/agreement`, which has the real kube-scheduler judge plans.

mod bed;
pub mod by_client;
mod controller_process;
mod keeper;
pub mod kill;
pub mod leading;
mod manifests;
pub mod outside;
mod proxy;
mod real_bed;
pub mod seen;
mod waiting;
pub mod weather;
mod world_bed;

pub use bed::{Bed, Controller, ControllerSettings, Target, Wait};
pub use controller_process::{ControllerProcess, built_program, controller_program};
pub use keeper::keep_running;
pub use manifests::{FOREIGN_NODE, inflate, kwok_node_class, node_pool};
pub use real_bed::{RealBed, client};
pub use waiting::{BOUND, Seen, wait_for, wait_until};
pub use world_bed::{WorldBed, WorldController};

/// Makes a test of each named function on every cluster. The functions take a [`Bed`].
///
/// A function that nobody lists is dead code, which does not compile: no story can be forgotten, and none can be told on
/// one cluster only by mistake.
#[macro_export]
macro_rules! cluster_tests {
    ($($story:ident),+ $(,)?) => { $crate::tests_on_every_cluster!(run: $($story),+); };
}

/// Makes a test of each named function on the API server of every cluster. The functions take an administrator's
/// client.
#[macro_export]
macro_rules! api_server_tests {
    ($($story:ident),+ $(,)?) => { $crate::tests_on_every_cluster!(run_on_api_server: $($story),+); };
}

/// The one list of clusters.
#[doc(hidden)]
#[macro_export]
macro_rules! tests_on_every_cluster {
    ($run:ident: $($story:ident),+) => {
        mod on_the_real_control_plane {
            $(
                #[test]
                fn $story() -> ::anyhow::Result<()> {
                    <$crate::RealBed as $crate::Bed>::$run(super::$story)
                }
            )+
        }
        mod in_the_embedded_world {
            $(
                #[test]
                fn $story() -> ::anyhow::Result<()> {
                    <$crate::WorldBed as $crate::Bed>::$run(super::$story)
                }
            )+
        }
    };
}
