//! What goes wrong, as data.

use std::time::Duration;

use jiff::Timestamp;

use crate::log::Action;
use crate::{FleetErrorCode, PoolKey, PoolPattern};

/// Everything that goes wrong in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Calls that fail.
    pub calls: Vec<CallFault>,
    /// Pools that refuse.
    pub pools: Vec<PoolFault>,
    /// Instances that come up badly.
    pub launches: Vec<LaunchFault>,
}

/// A stretch of time: from the first moment, up to but without the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first moment.
    pub from: Timestamp,
    /// The first moment after it.
    pub until: Timestamp,
}

impl Window {
    /// Always.
    pub const ALWAYS: Self = Self { from: Timestamp::MIN, until: Timestamp::MAX };

    /// Whether a moment lies in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// Calls that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFault {
    /// Which calls; `None` for all.
    pub action: Option<Action>,
    /// When.
    pub window: Window,
    /// How many calls at most.
    pub calls_max: u32,
    /// How they fail.
    pub kind: CallFaultKind,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallFaultKind {
    /// Too many calls: `RequestLimitExceeded`. Nothing is done.
    Throttled,
    /// Not allowed: `UnauthorizedOperation`. Nothing is done.
    Unauthorized,
    /// `InternalError`. Nothing is done.
    Internal,
    /// The call does its work, but its answer never arrives: the caller sees `RequestTimeout`.
    AnswerLost,
}

/// Pools that refuse to give instances, whatever they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFault {
    /// Which pools.
    pub pools: PoolPattern,
    /// When.
    pub window: Window,
    /// What they say.
    pub code: FleetErrorCode,
}

/// Instances that come up badly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFault {
    /// From which pools.
    pub pools: PoolPattern,
    /// Launched when.
    pub window: Window,
    /// How many instances at most.
    pub instances_max: u32,
    /// What happens to them.
    pub kind: LaunchFaultKind,
}

/// What happens to an instance that comes up badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFaultKind {
    /// It stays pending for this much longer.
    Slow(Duration),
    /// It never runs: from pending it goes straight to its end, by an error of the server.
    Fails,
    /// Calls other than the launch do not know it for this much longer.
    Invisible(Duration),
    /// It runs, as far as AWS can tell, but what should run on it never speaks up.
    Silent,
}

/// The plan, and how much of it has been used up.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    plan: FaultPlan,
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        Self { plan }
    }

    /// More that goes wrong, from now on.
    pub(crate) fn add(&mut self, more: FaultPlan) {
        let FaultPlan { calls, pools, launches } = more;
        self.plan.calls.extend(calls);
        self.plan.pools.extend(pools);
        self.plan.launches.extend(launches);
    }

    /// How a call fails, if it does; each fault is used up by the calls it hits.
    pub(crate) fn of_call(&mut self, now: Timestamp, action: Action) -> Option<CallFaultKind> {
        let hits = |fault: &&mut CallFault| {
            fault.calls_max > 0 && fault.action.is_none_or(|named| named == action) && fault.window.contains(now)
        };
        let fault = self.plan.calls.iter_mut().find(hits)?;
        fault.calls_max -= 1;
        Some(fault.kind)
    }

    pub(crate) fn of_pool(&self, now: Timestamp, pool: &PoolKey) -> Option<FleetErrorCode> {
        let hits = |fault: &&PoolFault| fault.pools.matches(pool) && fault.window.contains(now);
        self.plan.pools.iter().find(hits).map(|fault| fault.code)
    }

    /// What happens to an instance that is launched now; several faults may hit it.
    pub(crate) fn of_launch(&mut self, now: Timestamp, pool: &PoolKey) -> Vec<LaunchFaultKind> {
        let hits = |fault: &&mut LaunchFault| {
            fault.instances_max > 0 && fault.pools.matches(pool) && fault.window.contains(now)
        };
        let use_up = |fault: &mut LaunchFault| {
            fault.instances_max -= 1;
            fault.kind
        };
        self.plan.launches.iter_mut().filter(hits).map(use_up).collect()
    }
}
