//! Profiles of this test's own process.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::to_bytes;
use flate2::read::GzDecoder;
use pprof::protos::Profile;

use super::*;

async fn asked(query: &str) -> (StatusCode, Vec<u8>) {
    let uri = format!("/debug/pprof/profile{query}").parse().unwrap();
    let (head, body) = cpu_profile(uri).await.into_parts();
    if head.status == StatusCode::OK {
        assert_eq!(head.headers[CONTENT_TYPE], "application/octet-stream");
        assert_eq!(head.headers[CONTENT_DISPOSITION], "attachment; filename=\"profile\"");
    }
    (head.status, to_bytes(body, usize::MAX).await.unwrap().to_vec())
}

fn decoded(body: &[u8]) -> Profile {
    let mut bytes = Vec::new();
    GzDecoder::new(body).read_to_end(&mut bytes).unwrap();
    Profile::decode(bytes.as_slice()).unwrap()
}

/// Whether a stack has the function. As it calls nothing, it is the place where the thread was and not one that waits for
/// a call, which samplers that follow frame pointers lose.
fn is_named(profile: &Profile, function: &str) -> bool {
    profile.function.iter().any(|named| profile.string_table[named.name as usize].contains(function))
}

#[inline(never)]
fn burned_by_the_test(done: &AtomicBool) -> u64 {
    let mut burned = 0_u64;
    while !done.load(Ordering::Relaxed) {
        burned = black_box(burned.wrapping_mul(31).wrapping_add(7));
    }
    burned
}

/// OBS-09: a profile names the function that burns; who asks meanwhile is refused; who goes away leaves nothing behind.
#[tokio::test]
async fn a_profile_names_what_burns() {
    let done = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&done);
    let burning = std::thread::spawn(move || burned_by_the_test(&seen));

    let gone = tokio::spawn(asked("?seconds=600"));
    // Its turn is taken when the task has run, and given back when what it started has ended.
    while TURN.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let refused = (StatusCode::CONFLICT, Refusal::InUse.to_string().into_bytes());
    assert_eq!(asked("?seconds=1").await, refused);
    gone.abort();
    drop(TURN.acquire().await.unwrap());

    // A machine that is busy otherwise may leave the thread out for a second, and not for all of these.
    let mut is_seen = false;
    for _ in 0..60 {
        let (status, body) = asked("?seconds=1").await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        let profile = decoded(&body);
        let name = |index: i64| profile.string_table[index as usize].as_str();
        let types: Vec<_> = profile.sample_type.iter().map(|value| (name(value.ty), name(value.unit))).collect();
        assert_eq!(types, [("samples", "count"), ("cpu", "nanoseconds")]);
        assert_eq!(profile.period, 10_000_000, "nanoseconds from one sample to the next");
        is_seen = is_named(&profile, "burned_by_the_test");
        if is_seen {
            break;
        }
    }
    assert!(is_seen);
    done.store(true, Ordering::Relaxed);
    burning.join().unwrap();
}

/// OBS-09: what cannot be sampled is refused with what can.
#[tokio::test]
async fn only_sensible_durations_are_sampled() {
    for seconds in ["0", "-1", "601", "99999999999999999999", "1.5", "long", ""] {
        let (status, body) = asked(&format!("?seconds={seconds}")).await;
        let expected = format!("seconds={seconds} cannot be sampled: want a whole number from 1 to 600");
        assert_eq!((status, String::from_utf8(body).unwrap()), (StatusCode::BAD_REQUEST, expected));
    }
    for (query, seconds) in [("", 30), ("debug=1", 30), ("seconds=1", 1), ("debug=1&seconds=600", 600)] {
        assert_eq!(duration(query).unwrap(), Duration::from_secs(seconds), "{query}");
    }
}
