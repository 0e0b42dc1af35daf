//! One seed is one run, and an idle day costs nothing.

use crate::common::{Cluster, deployment};
use sim_loops::Pace;

async fn history(seed: u64) -> u64 {
    let cluster = Cluster::start(seed, Pace::default());
    cluster.nodes(&["n1 4 a", "n2 4 b", "n3 4 c"]);
    cluster.apply(&deployment("web", 6, "500m"));
    cluster.pass(20.0).await;
    cluster.scale("web", 2);
    cluster.pass(5.0).await;
    cluster.delete("/api/v1/nodes/n2");
    cluster.pass(120.0).await;
    cluster.history_hash()
}

#[tokio::test(start_paused = true)]
async fn one_seed_is_one_history() {
    let first = history(7).await;
    assert_eq!(first, history(7).await);
    assert_ne!(first, history(8).await);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_on_an_idle_day() {
    let cluster = Cluster::start(1, Pace::default());
    for index in 0..10 {
        cluster.nodes(&[&format!("n{index} 4 a")]);
    }
    cluster.apply(&deployment("web", 20, "500m"));
    cluster.pass(600.0).await;
    let settled = cluster.server.revision();
    cluster.pass(86_400.0).await;
    assert_eq!(cluster.server.revision(), settled);
}
