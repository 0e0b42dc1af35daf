//! Room to spare in large plans, from pending pods to claims.

use serde_json::json;

use crate::kwok_world::{node_class, pod, pool, tell};

/// Four pods fill a node. A plan that buys nodes for four hundred of them and fills each to the last seat gets one more,
/// at once: the kube-scheduler need not fill them as planned. Fewer pods get none.
#[test]
fn a_large_plan_gets_a_node_more() {
    for (pods, expected) in [(400, 101), (396, 99)] {
        assert_eq!(claims_created(pods), expected, "{pods} pods");
    }
}

/// How many claims are created for so many pods that wait when the controller starts, all of them in its first plan.
fn claims_created(pods: usize) -> usize {
    tell("", async |story| {
        let waiting = (0..pods).map(|number| pod(&format!("web-{number}"), "900m", None, &json!({})));
        story.apply([node_class(), pool("default", json!({}))].into_iter().chain(waiting).collect()).await;
        story.sleep(5).await;
        let _controller = story.start("alpha");
        story.sleep(60).await;
        let running = story.pods().await.iter().filter(|pod| pod.spec.as_ref().unwrap().node_name.is_some()).count();
        assert_eq!(running, pods);
        story.calls("create nodeclaims")
    })
}
