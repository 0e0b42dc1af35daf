//! Pods that wait for nodes which are on their way.

use serde_json::{Value, json};

use crate::kwok_world::{node_class, pod, tell};

/// Nodes take two minutes to come. Their pods are looked at again and again meanwhile, and nothing more is bought: every
/// pod keeps the node that was made for it.
#[test]
fn pods_whose_nodes_are_coming_get_no_others() {
    tell("", async |story| {
        let _controller = story.start("karpenter");
        let mut class = node_class();
        class["spec"] = json!({"nodeRegistrationDelay": "2m"});
        story.apply(vec![class, any_pool()]).await;
        story.sleep(5).await;
        let sizes = ["100m", "700m", "1300m", "2", "3700m", "250m", "5", "900m"];
        let pods = (0..64).map(|number| pod(&format!("pod-{number}"), sizes[number % sizes.len()], None, &json!({})));
        story.apply(pods.collect()).await;
        story.sleep(15).await;
        let bought = story.claims().await.len();
        assert!(bought > 1, "{bought} claims");
        story.sleep(60).await;
        assert_eq!(story.claims().await.len(), bought);
        story.apply(vec![pod("late", "100m", None, &json!({}))]).await;
        story.sleep(120).await;
        let now = story.claims().await.len();
        assert!(now <= bought + 1, "{now} claims for one more pod after {bought}");
        assert!(story.pods().await.iter().all(|pod| pod.spec.as_ref().unwrap().node_name.is_some()));
    });
}

fn any_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
        }}},
    })
}
