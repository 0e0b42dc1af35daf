//! The decision as a table, and the loop against a Lease kept in memory, in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{LeaderConfig, LeaderElector, LeaseRecord, LeaseStep, Lost, decide};

/// One step per state of the Lease.
#[test]
fn decisions() {
    let record = |holder: &str| LeaseRecord {
        holder: holder.into(),
        duration: Duration::from_secs(15),
        acquired: None,
        renewed: None,
        transitions: 4,
    };
    let cases = [
        (None, 0, LeaseStep::Create),
        (Some(record("me")), 0, LeaseStep::Renew),
        (Some(record("me")), 100, LeaseStep::Renew),
        (Some(record("other")), 0, LeaseStep::Wait),
        (Some(record("other")), 14, LeaseStep::Wait),
        (Some(record("other")), 15, LeaseStep::Acquire { transitions: 5 }),
        (Some(record("")), 0, LeaseStep::Acquire { transitions: 5 }),
        (
            Some(LeaseRecord { duration: Duration::from_secs(1), ..record("other") }),
            1,
            LeaseStep::Acquire { transitions: 5 },
        ),
    ];
    for (observed, age_seconds, step) in cases {
        assert_eq!(
            decide(observed.as_ref(), "me", Duration::from_secs(age_seconds)),
            step,
            "{observed:?} {age_seconds}"
        );
    }
}

/// An API server that knows one Lease.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<ServerState>>);

#[derive(Default)]
struct ServerState {
    lease: Option<Value>,
    version: u64,
    broken: bool,
    hanging: bool,
    writes: u64,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let router = Router::new().fallback(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                if server.0.lock().unwrap().hanging {
                    std::future::pending::<()>().await;
                }
                let (parts, body) = request.into_parts();
                let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                server.answer(&parts.method, parts.uri.path(), &bytes)
            }
        });
        Client::new(router, "default")
    }

    fn answer(&self, method: &Method, path: &str, body: &Bytes) -> (StatusCode, String) {
        let mut state = self.0.lock().unwrap();
        let collection = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        let failure = |code: StatusCode, reason: &str| {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(), "reason": reason});
            (code, status.to_string())
        };
        if state.broken {
            return failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
        }
        let single = format!("{collection}/karpenter-leader-election");
        match (method.as_str(), &state.lease) {
            ("GET", Some(lease)) if path == single => return (StatusCode::OK, lease.to_string()),
            ("GET", None) if path == single => return failure(StatusCode::NOT_FOUND, "NotFound"),
            ("POST", None) if path == collection => {}
            ("POST", Some(_)) if path == collection => return failure(StatusCode::CONFLICT, "AlreadyExists"),
            ("PUT", Some(lease)) if path == single => {
                let sent: Value = serde_json::from_slice(body).unwrap();
                if sent["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
                    return failure(StatusCode::CONFLICT, "Conflict");
                }
            }
            other => panic!("unexpected {other:?} {path}"),
        }
        state.version += 1;
        state.writes += 1;
        let mut lease: Value = serde_json::from_slice(body).unwrap();
        lease["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(lease.clone());
        (StatusCode::OK, lease.to_string())
    }

    fn spec(&self) -> Value {
        self.0.lock().unwrap().lease.as_ref().unwrap()["spec"].clone()
    }

    fn elector(&self, id: &str) -> LeaderElector {
        let leases: Api<Lease> = Api::namespaced(self.client(), "kube-system");
        let start = Instant::now();
        let clock = move || Timestamp::from_second(1_700_000_000).unwrap() + start.elapsed();
        LeaderElector::new(leases, LeaderConfig::new("karpenter-leader-election", "host", id), Arc::new(clock))
    }
}

/// OBS-15: the Lease has the name and shape that other clients read, and release empties it.
#[tokio::test(start_paused = true)]
async fn lease_is_created_renewed_and_released() {
    let server = Server::default();
    let mut elector = server.elector("a");
    elector.acquire().await;
    let acquired = json!({
        "holderIdentity": "host_a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
        "leaseTransitions": 0,
    });
    assert_eq!(server.spec(), acquired);

    tokio::time::timeout(Duration::from_secs(5), elector.hold()).await.unwrap_err();
    let mut renewed = acquired;
    renewed["renewTime"] = json!("2023-11-14T22:13:24.000000Z");
    assert_eq!(server.spec(), renewed);

    elector.release().await.unwrap();
    let released = json!({
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2023-11-14T22:13:25.000000Z",
        "renewTime": "2023-11-14T22:13:25.000000Z",
        "leaseTransitions": 0,
    });
    assert_eq!(server.spec(), released);
    let writes = server.0.lock().unwrap().writes;
    elector.release().await.unwrap();
    assert_eq!(server.0.lock().unwrap().writes, writes, "a lease that is not ours is left alone");
}

/// OBS-15: a released Lease is taken at the next attempt.
#[tokio::test(start_paused = true)]
async fn released_lease_changes_hands_at_once() {
    let server = Server::default();
    let mut first = server.elector("a");
    let mut second = server.elector("b");
    first.acquire().await;
    first.release().await.unwrap();
    let start = Instant::now();
    second.acquire().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!((&server.spec()["holderIdentity"], &server.spec()["leaseTransitions"]), (&json!("host_b"), &json!(1)));
}

/// OBS-15: a renewal that was written, and whose answer nobody waited for, does not keep the Lease from being given back.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_renewed_unseen_is_released() {
    let server = Server::default();
    let mut elector = server.elector("a");
    elector.acquire().await;
    server.0.lock().unwrap().lease.as_mut().unwrap()["metadata"]["resourceVersion"] = json!("unseen");
    elector.release().await.unwrap();
    assert_eq!(server.spec()["holderIdentity"], json!(""));
}

#[tokio::test(start_paused = true)]
async fn silent_holder_is_replaced_after_its_lease() {
    let server = Server::default();
    let mut first = server.elector("a");
    let mut second = server.elector("b");
    first.acquire().await;
    let start = Instant::now();
    second.acquire().await;
    // First seen at 0 s and unchanged since: the first attempt past 15 s is the one at 16 s.
    assert_eq!(start.elapsed(), Duration::from_secs(16));
    assert_eq!(server.spec()["leaseTransitions"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn leadership_ends_when_another_holds_the_lease() {
    let server = Server::default();
    let mut elector = server.elector("a");
    elector.acquire().await;
    server.0.lock().unwrap().lease.as_mut().unwrap()["spec"]["holderIdentity"] = json!("host_b");
    let start = Instant::now();
    assert_eq!(elector.hold().await, Lost::TakenBy { holder: "host_b".into() });
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    elector.release().await.unwrap();
    assert_eq!(server.spec()["holderIdentity"], json!("host_b"));
}

#[tokio::test(start_paused = true)]
async fn renewing_holder_is_not_replaced() {
    let server = Server::default();
    let mut first = server.elector("a");
    let mut second = server.elector("b");
    first.acquire().await;
    let holding = tokio::spawn(async move { first.hold().await });
    tokio::time::timeout(Duration::from_secs(120), second.acquire()).await.unwrap_err();
    assert!(!holding.is_finished());
    holding.abort();
}

#[tokio::test(start_paused = true)]
async fn leadership_ends_when_renewal_fails_for_the_deadline() {
    for hanging in [false, true] {
        let server = Server::default();
        let mut elector = server.elector("a");
        elector.acquire().await;
        {
            let mut state = server.0.lock().unwrap();
            (state.broken, state.hanging) = (!hanging, hanging);
        }
        let start = Instant::now();
        let lost = elector.hold().await;
        assert_eq!(start.elapsed(), Duration::from_secs(10));
        let Lost::NotRenewed { last_error } = lost else { panic!("{lost:?}") };
        assert_eq!(last_error.is_some(), !hanging);
    }
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_survived() {
    let server = Server::default();
    server.0.lock().unwrap().broken = true;
    let mut elector = server.elector("a");
    tokio::time::timeout(Duration::from_secs(3), elector.acquire()).await.unwrap_err();
    server.0.lock().unwrap().broken = false;
    elector.acquire().await;
    server.0.lock().unwrap().broken = true;
    let holding = tokio::spawn(async move { elector.hold().await });
    tokio::time::sleep(Duration::from_secs(7)).await;
    server.0.lock().unwrap().broken = false;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!holding.is_finished());
    holding.abort();
}

#[tokio::test(start_paused = true)]
async fn leadership_is_not_held_past_the_deadline_before_holding_begins() {
    let server = Server::default();
    let mut elector = server.elector("a");
    assert_eq!(server.elector("b").hold().await, Lost::NotRenewed { last_error: None });
    elector.acquire().await;
    server.0.lock().unwrap().hanging = true;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let start = Instant::now();
    assert_eq!(elector.hold().await, Lost::NotRenewed { last_error: None });
    assert!(start.elapsed() < Duration::from_millis(10));
}

/// Two that create at once: the API server lets one through, the other waits.
#[tokio::test(start_paused = true)]
async fn only_one_of_two_creations_wins() {
    let server = Server::default();
    let mut first = server.elector("a");
    let mut second = server.elector("b");
    tokio::select! {
        biased;
        () = async { tokio::join!(first.acquire(), second.acquire()); } => panic!("both hold the lease"),
        () = tokio::time::sleep(Duration::from_secs(14)) => {}
    }
    assert_eq!(server.0.lock().unwrap().writes, 1);
}
