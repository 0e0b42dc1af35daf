//! `/debug/pprof/profile`: where the processor's time goes, sampled on demand, as `go tool pprof` reads it.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Duration;

use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use pprof::protos::Message as _;
use pprof::{ProfilerGuard, ProfilerGuardBuilder};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{JoinError, spawn_blocking};

/// How often per second of processor time a stack is written down: what Go does, so that numbers compare. Kernels that
/// count time in steps of four or ten milliseconds could not do it much more often.
const SAMPLES_PER_SECOND: i32 = 100;
/// How long is sampled when nobody says: as in Go.
const SECONDS_DEFAULT: u64 = 30;
/// Longer tells nothing new about a program that does the same things every few seconds, while a forgotten question would
/// keep others from asking.
const SECONDS_MAX: u64 = 600;

/// A sample taken here is dropped: the unwinder must not be entered while it runs, nor the loader while it loads, and the
/// kernel's own page of code has no file to unwind it by.
const NEVER_SAMPLED: &[&str] = &["libgcc", "ld-linux", "vdso"];
/// The first sample of a process allocates, which would wait for ever in a thread that is allocating.
const NOT_SAMPLED_FIRST: &[&str] = &["libgcc", "ld-linux", "vdso", "libc", "pthread", "ld-musl"];
/// A round burns about a millisecond and the first sample comes after ten: without one after a second or so, the kernel
/// sends none.
const FIRST_SAMPLE_ROUNDS_MAX: u32 = 1000;

/// The timer and the signal belong to the process, so there is one profile at a time, whichever endpoint is asked.
static TURN: Semaphore = Semaphore::const_new(1);

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("seconds={0} cannot be sampled: want a whole number from 1 to {SECONDS_MAX}")]
    Seconds(String),
    #[error("a profile is being taken: ask again when it is done")]
    InUse,
    #[error(
        "cannot set up the sampler, which needs a temporary file: set TMPDIR to a directory that can be written, \
         such as /dev/shm, and restart"
    )]
    SetUp,
    #[error("the kernel sends no samples (SIGPROF): use `perf record -g -p <pid>`")]
    NoSamples,
    #[error("cannot sample: {0}")]
    Sample(pprof::Error),
    #[error("cannot compress the profile: {0}")]
    Compress(#[from] std::io::Error),
    #[error("the sampler broke off: {0}")]
    BrokeOff(#[from] JoinError),
}

impl From<pprof::Error> for Refusal {
    fn from(error: pprof::Error) -> Self {
        match error {
            pprof::Error::CreatingError => Self::SetUp,
            pprof::Error::Running => Self::InUse,
            other => Self::Sample(other),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Seconds(_) => StatusCode::BAD_REQUEST,
            // Go has 500, but nothing is broken: the same question is right a little later.
            Self::InUse => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, self.to_string()).into_response()
    }
}

/// The answer. Sampling ends when it is dropped, as it is when the client goes away.
pub(super) async fn cpu_profile(uri: Uri) -> Response {
    let name = [(CONTENT_TYPE, "application/octet-stream"), (CONTENT_DISPOSITION, "attachment; filename=\"profile\"")];
    match taken(&uri).await {
        Ok(profile) => (name, profile).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn taken(uri: &Uri) -> Result<Vec<u8>, Refusal> {
    let duration = duration(uri.query().unwrap_or_default())?;
    let turn = TURN.try_acquire().map_err(|_| Refusal::InUse)?;
    let sampling = spawn_blocking(|| Sampling::start(turn)).await??;
    tokio::time::sleep(duration).await;
    spawn_blocking(move || sampling.finish()).await?
}

fn duration(query: &str) -> Result<Duration, Refusal> {
    let Some(text) = query.split('&').find_map(|pair| pair.strip_prefix("seconds=")) else {
        return Ok(Duration::from_secs(SECONDS_DEFAULT));
    };
    match text.parse() {
        Ok(seconds @ 1..=SECONDS_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(Refusal::Seconds(text.to_owned())),
    }
}

/// Samples are taken while this lives. Whoever drops it stops them, which takes some milliseconds, before the next in
/// turn may start.
struct Sampling {
    guard: ProfilerGuard<'static>,
    _turn: SemaphorePermit<'static>,
}

impl Sampling {
    fn start(turn: SemaphorePermit<'static>) -> Result<Self, Refusal> {
        take_first_sample()?;
        Ok(Self { guard: sampler(NEVER_SAMPLED)?, _turn: turn })
    }

    /// The profile as protobuf in gzip. Finding the names of functions takes long.
    fn finish(self) -> Result<Vec<u8>, Refusal> {
        let profile = self.guard.report().build()?.pprof()?;
        let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
        compressed.write_all(&profile.encode_to_vec())?;
        Ok(compressed.finish()?)
    }
}

fn sampler(not_sampled: &[&str]) -> Result<ProfilerGuard<'static>, Refusal> {
    Ok(ProfilerGuardBuilder::default().frequency(SAMPLES_PER_SECOND).blocklist(not_sampled).build()?)
}

/// Has the sampler read its tables, which it does with its first sample, where that cannot hurt. Returns only when they
/// are read.
fn take_first_sample() -> Result<(), Refusal> {
    let sampler = sampler(NOT_SAMPLED_FIRST)?;
    for _ in 0..FIRST_SAMPLE_ROUNDS_MAX {
        // The look holds a lock that keeps samples away, so most of the time is spent here.
        for step in 0..1_000_000_u32 {
            black_box(step);
        }
        if !sampler.report().build_unresolved()?.data.is_empty() {
            return Ok(());
        }
    }
    Err(Refusal::NoSamples)
}

#[cfg(test)]
#[path = "cpu_profile_tests.rs"]
mod tests;
