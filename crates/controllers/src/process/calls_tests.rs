use super::*;

fn target(path: &str) -> Option<String> {
    Target::of(path).map(|target| {
        let Target { group, version, resource, subresource, is_named } = target;
        format!("{group} {version} {resource} {subresource} {is_named}")
    })
}

/// OBS-01: what a request is about, from its path.
#[test]
fn paths_name_what_a_request_is_about() {
    let table = [
        ("/api/v1/pods", " v1 pods  false"),
        ("/api/v1/namespaces", " v1 namespaces  false"),
        ("/api/v1/namespaces/n", " v1 namespaces  true"),
        ("/api/v1/namespaces/n/status", " v1 namespaces status true"),
        ("/api/v1/namespaces/n/pods", " v1 pods  false"),
        ("/api/v1/namespaces/n/pods/p/eviction", " v1 pods eviction true"),
        ("/api/v1/nodes/a", " v1 nodes  true"),
        ("/apis/karpenter.sh/v1/nodeclaims/c/status", "karpenter.sh v1 nodeclaims status true"),
        ("/apis/coordination.k8s.io/v1/namespaces/k/leases/l", "coordination.k8s.io v1 leases  true"),
    ];
    for (path, expected) in table {
        assert_eq!(target(path).as_deref(), Some(expected), "{path}");
    }
    for path in ["/version", "/apis/karpenter.sh/v1", "/api", "/"] {
        assert_eq!(target(path), None, "{path}");
    }
}

/// A burst leaves at once, the rest one interval after the other, and a quiet time fills the burst again.
#[tokio::test(start_paused = true)]
async fn requests_are_paced() {
    let pace = Pace::new(10, 3).unwrap();
    let began = Instant::now();
    let milliseconds = |pace: &Pace, at: u64| {
        let now = began + Duration::from_millis(at);
        pace.due(now).duration_since(began).as_millis()
    };
    let found: Vec<u128> = [0, 0, 0, 0, 0, 50, 1000, 1000, 1000, 1000].map(|at| milliseconds(&pace, at)).to_vec();
    assert_eq!(found, [0, 0, 0, 100, 200, 300, 1000, 1000, 1000, 1100]);
    assert!(Pace::new(0, 3).is_none() && Pace::new(-1, 3).is_none());
}
