//! Faults as data: a plan says which occurrence of which effect goes wrong and how, and what befalls the machines.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::effect::{CLOUD_CALLS, Effect, WATCHES, WRITES};

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallFault {
    /// The other side answers that it is broken.
    Fails,
    /// The other side asks for patience.
    Throttled,
    /// Somebody else is said to have written first.
    Conflicts,
    /// The request never arrives; the caller hears of a broken connection.
    RequestLost,
    /// The request is carried out; the caller hears of a broken connection.
    AnswerLost,
    /// Everything takes seconds.
    Late,
    /// The caller dies before the request leaves.
    KillBefore,
    /// The caller dies after the request was carried out, before it hears the answer.
    KillAfter,
    /// A watch breaks off after its first news.
    Breaks,
    /// A watch breaks off, and what happened since is no longer told.
    TooOld,
}

impl CallFault {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Fails,
        Self::Throttled,
        Self::Conflicts,
        Self::RequestLost,
        Self::AnswerLost,
        Self::Late,
        Self::KillBefore,
        Self::KillAfter,
        Self::Breaks,
        Self::TooOld,
    ];

    /// The name in plans and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::Throttled => "throttled",
            Self::Conflicts => "conflicts",
            Self::RequestLost => "request-lost",
            Self::AnswerLost => "answer-lost",
            Self::Late => "late",
            Self::KillBefore => "kill-before",
            Self::KillAfter => "kill-after",
            Self::Breaks => "breaks",
            Self::TooOld => "too-old",
        }
    }

    /// Whether an effect can go wrong this way.
    pub fn applies_to(self, effect: &str) -> bool {
        let is_watch = WATCHES.contains(&effect);
        let is_cloud = CLOUD_CALLS.contains(&effect);
        match self {
            Self::Breaks | Self::TooOld => is_watch,
            Self::Fails | Self::Late | Self::RequestLost => true,
            Self::Throttled => !is_cloud || effect == "cloud launch",
            Self::Conflicts => WRITES.contains(&effect) && !effect.starts_with("get "),
            Self::AnswerLost | Self::KillBefore | Self::KillAfter => !is_watch,
        }
    }
}

/// What befalls the machines, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// The process is killed, wherever it stands.
    Kill,
    /// A spot machine gets its warning and ends two minutes later.
    Interruption,
    /// A machine ends without a warning.
    Crash,
    /// A kubelet says nothing for a while.
    Silence,
    /// Nothing can be bought for a while.
    SoldOut,
    /// Machines started from now on for a while never join.
    NeverJoins,
    /// Machines started from now on for a while join late.
    JoinsLate,
    /// All watches break at once, and old revisions are forgotten.
    Compaction,
    /// The clock of a process is hours ahead for a while.
    ClockAhead,
    /// The clock of a process is minutes behind for a while.
    ClockBehind,
}

impl Blow {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Kill,
        Self::Interruption,
        Self::Crash,
        Self::Silence,
        Self::SoldOut,
        Self::NeverJoins,
        Self::JoinsLate,
        Self::Compaction,
        Self::ClockAhead,
        Self::ClockBehind,
    ];

    /// The name in plans and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Interruption => "interruption",
            Self::Crash => "crash",
            Self::Silence => "silence",
            Self::SoldOut => "sold-out",
            Self::NeverJoins => "never-joins",
            Self::JoinsLate => "joins-late",
            Self::Compaction => "compaction",
            Self::ClockAhead => "clock-ahead",
            Self::ClockBehind => "clock-behind",
        }
    }
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The n-th occurrence of an effect, counted from one over the whole run.
    Call {
        /// The effect.
        effect: Effect,
        /// Which occurrence.
        occurrence: u32,
        /// What happens to it.
        fault: CallFault,
    },
    /// A blow at a time since the beginning.
    Blow {
        /// When.
        at: Duration,
        /// What.
        blow: Blow,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { effect, occurrence, fault } => write!(formatter, "{effect} #{occurrence} {}", fault.name()),
            Self::Blow { at, blow } => write!(formatter, "at {}ms {}", at.as_millis(), blow.name()),
        }
    }
}

/// A fault that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(pub String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` is neither `<effect> #<n> <fault>` nor `at <n>ms <blow>`", self.0)
    }
}

impl std::error::Error for UnknownFault {}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownFault(text.to_owned());
        if let Some(rest) = text.strip_prefix("at ") {
            let (millis, name) = rest.split_once("ms ").ok_or_else(unknown)?;
            let blow = Blow::ALL.into_iter().find(|blow| blow.name() == name).ok_or_else(unknown)?;
            return Ok(Self::Blow { at: Duration::from_millis(millis.parse().map_err(|_| unknown())?), blow });
        }
        let (effect, rest) = text.split_once(" #").ok_or_else(unknown)?;
        let (occurrence, name) = rest.split_once(' ').ok_or_else(unknown)?;
        let fault = CallFault::ALL.into_iter().find(|fault| fault.name() == name).ok_or_else(unknown)?;
        let known = WRITES.iter().chain(&CLOUD_CALLS).chain(&WATCHES).any(|known| *known == effect);
        if !known || !fault.applies_to(effect) {
            return Err(unknown());
        }
        let occurrence = occurrence.parse().map_err(|_| unknown())?;
        Ok(Self::Call { effect: Effect::named(effect), occurrence, fault })
    }
}

/// All that goes wrong in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The faults.
    pub faults: Vec<Fault>,
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        formatter.write_str(&faults.join(", "))
    }
}

impl FromStr for FaultPlan {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        Ok(Self { faults: parts.map(Fault::from_str).collect::<Result<_, _>>()? })
    }
}

/// A call that is about to leave a process.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The process.
    pub process: &'a str,
    /// What it does.
    pub effect: &'a Effect,
    /// What it sends.
    pub body: &'a [u8],
}

/// Decides about every call of a controller whether and how it goes wrong.
pub trait Meddler: Send + Sync {
    /// The fault of this call, if any.
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault>;

    /// How much later than usual news of watches arrive now.
    fn news_delay(&self) -> Duration {
        Duration::ZERO
    }
}

/// How often each fault hit each effect.
pub type Coverage = BTreeMap<(String, &'static str), u64>;

/// Carries out a plan's faults of calls, until it is healed.
#[derive(Debug, Default)]
pub struct PlannedFaults {
    state: Mutex<PlannedState>,
}

#[derive(Debug, Default)]
struct PlannedState {
    due: BTreeMap<(Effect, u32), CallFault>,
    seen: BTreeMap<Effect, u32>,
    coverage: Coverage,
}

impl PlannedFaults {
    /// The faults of calls in a plan; of two for the same occurrence the later counts.
    pub fn new(plan: &FaultPlan) -> Arc<Self> {
        let due = plan.faults.iter().filter_map(|fault| match fault {
            Fault::Call { effect, occurrence, fault } => Some(((effect.clone(), *occurrence), *fault)),
            Fault::Blow { .. } => None,
        });
        let state = PlannedState { due: due.collect(), ..PlannedState::default() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, PlannedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.state().due.clear();
    }

    /// What hit.
    pub fn coverage(&self) -> Coverage {
        self.state().coverage.clone()
    }

    /// Effects seen so far, and how often.
    pub fn seen(&self) -> BTreeMap<Effect, u32> {
        self.state().seen.clone()
    }
}

impl Meddler for PlannedFaults {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        let mut state = self.state();
        let count = state.seen.entry(call.effect.clone()).or_insert(0);
        *count += 1;
        let occurrence = *count;
        let fault = state.due.remove(&(call.effect.clone(), occurrence))?;
        *state.coverage.entry((call.effect.to_string(), fault.name())).or_insert(0) += 1;
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_text() {
        let text = "create nodeclaims #2 answer-lost, at 61500ms crash, watch pods #1 too-old";
        let plan: FaultPlan = text.parse().expect("a plan");
        assert_eq!(plan.to_string(), text);
        for wrong in ["create nodeclaims #x fails", "at 5ms tea", "watch pods #1 kill-before", "boil water #1 fails"] {
            assert!(wrong.parse::<FaultPlan>().is_err(), "{wrong}");
        }
    }
}
