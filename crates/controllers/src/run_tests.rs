//! A process without a cluster: what its endpoints answer, and what its options come to.

use std::sync::Mutex;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use planner::{MinValuesPolicy, PreferencePolicy};
use serde_json::{Value, json};
use tower::Service;

use super::*;
use crate::process::Program;

fn options(arguments: &str) -> Options {
    const PROGRAM: Program = Program { name: "test", version: "1", about: "", provider_flags: &[] };
    let arguments = arguments.split_whitespace().map(ToOwned::to_owned);
    Options::from_args(&PROGRAM, arguments, &|_| None).unwrap()
}

/// What is said about placements reaches the planner.
#[test]
fn options_become_bounds_of_the_planner() {
    let config = |arguments: &str| place_config(&options(arguments));
    assert_eq!(config(""), PlaceConfig::default());
    assert_eq!(config("--preference-policy=Ignore").preferences, PreferencePolicy::Ignore);
    assert_eq!(config("--min-values-policy=BestEffort").min_values, MinValuesPolicy::BestEffort);
    assert_eq!(config("--feature-gates=ReservedCapacity=false").reservations, ReservationPolicy::Ignored);
}

/// Status and text of what the metrics port of a process with these arguments answers.
async fn asked(arguments: &str, path: &str) -> (StatusCode, String) {
    let options = options(arguments);
    let word = |text: &str| text.to_owned();
    let build = Build { version: word("1"), goversion: word("rust"), goarch: word("x"), commit: word("c") };
    let metrics = registry(&options, &build, Naming::default(), Calls::new(&options));
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = metrics_endpoint(&options, &metrics).call(request).await.unwrap();
    let (head, body) = response.into_parts();
    (head.status, String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap())
}

/// OBS-07, CFG-07: a scrape of the process tells what the process uses, and nine tenths of its limit.
#[tokio::test]
async fn the_metrics_port_tells_of_the_process() {
    let (status, text) = asked("--memory-limit 10000", "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    let value = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok())
    };
    assert!(value("process_cpu_seconds_total").is_some(), "{text}");
    for name in ["process_resident_memory_bytes", "process_start_time_seconds", "process_open_fds"] {
        assert!(value(name).is_some_and(|value| value > 0.0), "{name}\n{text}");
    }
    assert_eq!(value("go_gc_gomemlimit_bytes"), Some(9000.0));
    let unlimited = asked("", "/metrics").await.1;
    assert!(!unlimited.contains("go_gc_gomemlimit_bytes"), "no limit, no part of it");
    assert!(unlimited.contains("\nprocess_cpu_seconds_total "), "everything else is told without a limit too");
}

/// OBS-09: profiles are there for those who asked for them; what cannot be told says so.
#[tokio::test]
async fn profiles_are_served_on_demand_only() {
    let table = [
        ("", StatusCode::OK),
        ("cmdline", StatusCode::OK),
        ("heap", StatusCode::OK),
        ("threadcreate", StatusCode::OK),
        ("profile?seconds=0", StatusCode::BAD_REQUEST),
        ("symbol", StatusCode::NOT_IMPLEMENTED),
        ("trace", StatusCode::NOT_IMPLEMENTED),
        ("allocs", StatusCode::NOT_IMPLEMENTED),
        ("block", StatusCode::NOT_IMPLEMENTED),
        ("goroutine", StatusCode::NOT_IMPLEMENTED),
    ];
    for (path, expected) in table {
        let path = format!("/debug/pprof/{path}");
        assert_eq!(asked("", &path).await.0, StatusCode::NOT_FOUND, "{path}");
        let (status, text) = asked("--enable-profiling true", &path).await;
        assert_eq!((status, text.is_empty()), (expected, false), "{path}");
    }
    assert_eq!(asked("--enable-profiling true", "/metrics").await.0, StatusCode::OK);
}

/// An API server that answers a question about its resources with each of these in turn, and the last one for ever.
fn server(answers: Vec<(StatusCode, Value)>) -> Client {
    let answers = Arc::new(Mutex::new(answers));
    let router = Router::new().fallback(move |request: Request<Body>| {
        assert_eq!(request.uri().path(), "/apis/karpenter.sh/v1");
        let mut left = answers.lock().unwrap();
        let (status, answer) = if left.len() > 1 { left.remove(0) } else { left[0].clone() };
        async move { (status, answer.to_string()) }
    });
    Client::new(router, "default")
}

/// OBS-08: a process asks every second whether its resources are served, and is not ready before they are.
#[tokio::test(start_paused = true)]
async fn resources_are_asked_for_until_they_are_there() {
    let failure = |code: StatusCode, reason: &str| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
            "code": code.as_u16()});
        (code, status)
    };
    let served = |kinds: &[&str]| {
        let one = |kind: &&str| json!({"kind": kind, "name": "", "namespaced": false, "singularName": "", "verbs": []});
        let resources: Vec<Value> = kinds.iter().map(one).collect();
        (StatusCode::OK, json!({"groupVersion": "karpenter.sh/v1", "resources": resources}))
    };
    let client = server(vec![
        failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        failure(StatusCode::NOT_FOUND, "NotFound"),
        served(&["NodePool"]),
        served(&["NodePool", "NodeClaim"]),
    ]);
    let readiness = Readiness::default();
    readiness.caches_synced();
    let looking = tokio::spawn(look_up_resources(client, readiness.clone()));
    let install = "install the custom resource definitions";
    let expected = [
        "resources of karpenter.sh/v1 not looked up yet".to_owned(),
        format!("no NodePool and no NodeClaim in karpenter.sh/v1: {install}"),
        format!("no NodeClaim in karpenter.sh/v1: {install}"),
        "ready".to_owned(),
    ];
    tokio::time::sleep(Duration::from_millis(500)).await;
    for expected in expected {
        let found = readiness.check().map_or_else(|why| why.to_string(), |()| "ready".to_owned());
        assert_eq!(found, expected);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(looking.is_finished(), "what is there need not be asked for again");
}
