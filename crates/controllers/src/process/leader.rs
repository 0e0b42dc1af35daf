//! Leadership by a Lease, understood by every other client of the same Lease.
//!
//! [`decide`] says what to do about the Lease as it was last seen; [`LeaderElector`] reads, asks, and writes. Clocks of
//! different machines are never compared: a holder counts as gone when its record has not changed for the record's own
//! duration, measured here.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;
use tokio::time::{Instant, sleep, timeout};

/// The duration written on release: short, should a reader ignore that the holder is empty.
const RELEASED_DURATION: Duration = Duration::from_secs(1);

/// How leadership is sought and held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderConfig {
    /// The name of the Lease.
    pub name: String,
    /// The name under which this process holds the Lease: `<host name>_<id>`, different for every process.
    pub identity: String,
    /// How long others wait for a silent holder.
    pub lease_duration: Duration,
    /// How long a holder tries to renew before it gives up; shorter than the lease, so that it stops before another
    /// starts.
    pub renew_deadline: Duration,
    /// The pause between attempts.
    pub retry_period: Duration,
}

impl LeaderConfig {
    /// The usual times: a lease of 15 s, renewed every 2 s, given up after 10 s without success.
    pub fn new(name: &str, host_name: &str, id: &str) -> Self {
        Self {
            name: name.to_owned(),
            identity: format!("{host_name}_{id}"),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// What a Lease says about its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// How long a silent holder is waited for.
    pub duration: Duration,
    /// When the holder took it.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it.
    pub renewed: Option<Timestamp>,
    /// How often it changed hands.
    pub transitions: i32,
}

impl LeaseRecord {
    fn from_spec(spec: &LeaseSpec) -> Self {
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default();
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            duration: Duration::from_secs(seconds),
            acquired: spec.acquire_time.as_ref().map(|time| time.0),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Changes the fields of a record in a spec and leaves all others as they are.
    fn write_into(self, spec: &mut LeaseSpec) {
        let Self { holder, duration, acquired, renewed, transitions } = self;
        spec.holder_identity = Some(holder);
        spec.lease_duration_seconds = Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX));
        spec.acquire_time = acquired.map(MicroTime);
        spec.renew_time = renewed.map(MicroTime);
        spec.lease_transitions = Some(transitions);
    }
}

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// There is none: create it.
    Create,
    /// Nobody holds it any more: take it, with this number of transitions.
    Acquire {
        /// The number to write.
        transitions: i32,
    },
    /// It is ours: renew it.
    Renew,
    /// Another holds it.
    Wait,
}

/// Decides by the Lease as last seen and the time for which it has been seen unchanged.
pub fn decide(observed: Option<&LeaseRecord>, identity: &str, observed_age: Duration) -> LeaseStep {
    let Some(record) = observed else { return LeaseStep::Create };
    if record.holder == identity {
        LeaseStep::Renew
    } else if record.holder.is_empty() || observed_age >= record.duration {
        LeaseStep::Acquire { transitions: record.transitions.saturating_add(1) }
    } else {
        LeaseStep::Wait
    }
}

/// Why leadership ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Another process took the Lease.
    TakenBy {
        /// The other's identity.
        holder: String,
    },
    /// The Lease could not be renewed in time.
    NotRenewed {
        /// What went wrong last.
        last_error: Option<String>,
    },
}

/// Why one attempt at the Lease failed.
#[derive(Debug, thiserror::Error)]
pub enum LeaderError {
    /// The Lease could not be read.
    #[error("cannot read lease `{name}`: {source}")]
    Read {
        /// The name of the Lease.
        name: String,
        /// What the API server said.
        source: kube::Error,
    },
    /// The Lease could not be written.
    #[error("cannot write lease `{name}`: {source}")]
    Write {
        /// The name of the Lease.
        name: String,
        /// What the API server said.
        source: kube::Error,
    },
    /// The API server did not answer in time.
    #[error("no answer about lease `{name}` within {deadline:?}")]
    TimedOut {
        /// The name of the Lease.
        name: String,
        /// The time that was allowed.
        deadline: Duration,
    },
}

impl LeaderError {
    /// Whether another process changed the Lease between our reading and writing, which is no fault.
    fn is_contention(&self) -> bool {
        // Refused updates and creations of what exists both answer 409.
        matches!(self, Self::Write { source: kube::Error::Api(status), .. } if status.code == 409)
    }
}

/// Seeks, holds and releases one Lease.
pub struct LeaderElector {
    leases: Api<Lease>,
    config: LeaderConfig,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    observed: Option<Observed>,
    /// When the last successful write was begun: what the deadline counts from, however long its answer took.
    renewed: Option<Instant>,
}

/// The Lease as last seen, and since when its record has been the same.
struct Observed {
    lease: Lease,
    record: LeaseRecord,
    since: Instant,
}

/// How one attempt ended without an error.
enum Attempt {
    Held,
    HeldBy(String),
}

impl LeaderElector {
    /// Works on the Leases of the namespace that `leases` is for; `clock` gives the times that are written.
    pub fn new(leases: Api<Lease>, config: LeaderConfig, clock: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self { leases, config, clock, observed: None, renewed: None }
    }

    /// Completes once the Lease is held. Failures are logged and tried again; dropping the future is safe.
    pub async fn acquire(&mut self) {
        let mut waiting_for = None;
        loop {
            match self.attempt_in_time().await {
                Ok(Attempt::Held) => {
                    tracing::info!(lease = self.config.name, identity = self.config.identity, "acquired lease");
                    return;
                }
                Ok(Attempt::HeldBy(holder)) if waiting_for.as_ref() == Some(&holder) => {}
                Ok(Attempt::HeldBy(holder)) => {
                    tracing::info!(lease = self.config.name, holder, "waiting for lease");
                    waiting_for = Some(holder);
                }
                Err(error) if error.is_contention() => {
                    tracing::info!(lease = self.config.name, "another process was faster to the lease");
                }
                Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "acquiring lease"),
            }
            sleep(self.config.retry_period).await;
        }
    }

    /// Renews the Lease until leadership is lost. Whoever calls it must stop acting when it returns.
    ///
    /// Returns at once when the Lease was not acquired, or so long ago that it may have expired since.
    /// Dropping the future is safe; [`LeaderElector::release`] should follow.
    pub async fn hold(&mut self) -> Lost {
        let mut last_error = None;
        loop {
            sleep(self.config.retry_period.min(self.left_to_renew())).await;
            let left = self.left_to_renew();
            if left.is_zero() {
                return Lost::NotRenewed { last_error };
            }
            match timeout(left, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => last_error = None,
                Ok(Ok(Attempt::HeldBy(holder))) => return Lost::TakenBy { holder },
                Ok(Err(error)) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "renewing lease");
                    last_error = Some(error.to_string());
                }
                // The deadline passed while the API server was silent.
                Err(_) => {}
            }
        }
    }

    /// Gives the Lease up, so that another need not wait for it to expire; does nothing when it is not ours.
    pub async fn release(&mut self) -> Result<(), LeaderError> {
        let deadline = self.config.renew_deadline;
        timeout(deadline, self.release_now()).await.map_err(|_| self.timed_out())?
    }

    async fn release_now(&mut self) -> Result<(), LeaderError> {
        // Read again: a renewal cut off by the end of the process may have been written all the same.
        self.observe().await?;
        let Some(observed) = self.observed.take().filter(|observed| observed.record.holder == self.config.identity)
        else {
            return Ok(());
        };
        let now = (self.clock)();
        let released = LeaseRecord {
            holder: String::new(),
            duration: RELEASED_DURATION,
            acquired: Some(now),
            renewed: Some(now),
            transitions: observed.record.transitions,
        };
        self.replace(observed.lease, released).await?;
        tracing::info!(lease = self.config.name, "released lease");
        Ok(())
    }

    async fn attempt_in_time(&mut self) -> Result<Attempt, LeaderError> {
        match timeout(self.config.renew_deadline, self.attempt()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.timed_out()),
        }
    }

    async fn attempt(&mut self) -> Result<Attempt, LeaderError> {
        let started = Instant::now();
        self.observe().await?;
        let observed = self.observed.as_ref();
        let age = observed.map_or(Duration::ZERO, |observed| observed.since.elapsed());
        let record = observed.map(|observed| &observed.record);
        let now = (self.clock)();
        let ours = LeaseRecord {
            holder: self.config.identity.clone(),
            duration: self.config.lease_duration,
            acquired: Some(now),
            renewed: Some(now),
            transitions: 0,
        };
        let written = match (decide(record, &self.config.identity, age), observed) {
            (LeaseStep::Wait, Some(observed)) => return Ok(Attempt::HeldBy(observed.record.holder.clone())),
            (LeaseStep::Acquire { transitions }, Some(observed)) => {
                self.replace(observed.lease.clone(), LeaseRecord { transitions, ..ours }).await?
            }
            (LeaseStep::Renew, Some(observed)) => {
                let LeaseRecord { acquired, transitions, .. } = observed.record;
                self.replace(observed.lease.clone(), LeaseRecord { acquired, transitions, ..ours }).await?
            }
            (_, None) | (LeaseStep::Create, Some(_)) => self.create(ours).await?,
        };
        self.note(written);
        self.renewed = Some(started);
        Ok(Attempt::Held)
    }

    /// Reads the Lease; the time since its last change runs on when the record is the same.
    async fn observe(&mut self) -> Result<(), LeaderError> {
        let read = self.leases.get_opt(&self.config.name).await;
        match read.map_err(|source| LeaderError::Read { name: self.config.name.clone(), source })? {
            Some(lease) => self.note(lease),
            None => self.observed = None,
        }
        Ok(())
    }

    fn note(&mut self, lease: Lease) {
        let record = LeaseRecord::from_spec(lease.spec.as_ref().unwrap_or(&LeaseSpec::default()));
        let since = match &self.observed {
            Some(observed) if observed.record == record => observed.since,
            _ => Instant::now(),
        };
        self.observed = Some(Observed { lease, record, since });
    }

    async fn create(&self, record: LeaseRecord) -> Result<Lease, LeaderError> {
        let mut spec = LeaseSpec::default();
        record.write_into(&mut spec);
        let metadata = ObjectMeta { name: Some(self.config.name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(spec) };
        self.leases.create(&PostParams::default(), &lease).await.map_err(|source| self.write_failed(source))
    }

    /// Writes the record over the Lease as it was read: its resource version makes the API server refuse when another
    /// was faster.
    async fn replace(&self, mut lease: Lease, record: LeaseRecord) -> Result<Lease, LeaderError> {
        record.write_into(lease.spec.get_or_insert_default());
        let replaced = self.leases.replace(&self.config.name, &PostParams::default(), &lease).await;
        replaced.map_err(|source| self.write_failed(source))
    }

    fn left_to_renew(&self) -> Duration {
        let since = self.renewed.map_or(Duration::MAX, |renewed| renewed.elapsed());
        self.config.renew_deadline.saturating_sub(since)
    }

    fn write_failed(&self, source: kube::Error) -> LeaderError {
        LeaderError::Write { name: self.config.name.clone(), source }
    }

    fn timed_out(&self) -> LeaderError {
        LeaderError::TimedOut { name: self.config.name.clone(), deadline: self.config.renew_deadline }
    }
}

#[cfg(test)]
#[path = "leader_tests.rs"]
mod tests;
