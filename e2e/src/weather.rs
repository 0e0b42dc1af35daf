//! What lies between a controller and the API server: storms of refusals, silence, and old news. As data, with all chance
//! from a seed, so that one weather is the same on every cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// What a request meets on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The API server, as it is.
    Passes,
    /// 429: come back later.
    Throttled,
    /// 500: something is broken.
    Fails,
    /// 503: nobody is there to answer.
    Unavailable,
    /// The connection breaks before the API server has heard of it.
    RequestLost,
    /// The API server does what was asked for; its answer is lost.
    AnswerLost,
    /// It arrives seconds later.
    Late,
}

impl Fate {
    /// The name in counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Throttled => "throttled",
            Self::Fails => "fails",
            Self::Unavailable => "unavailable",
            Self::RequestLost => "request lost",
            Self::AnswerLost => "answer lost",
            Self::Late => "late",
        }
    }
}

/// How news of watches travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum News {
    /// As they come.
    #[default]
    Fresh,
    /// This much later: who listens acts on what was.
    Late(Duration),
}

/// How many of a hundred requests meet what, and how news travel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// All chance follows from it.
    pub seed: u64,
    /// Parts of a hundred; the rest passes.
    pub shares: Vec<(u32, Fate)>,
    /// How news of watches travel.
    pub news: News,
}

impl Weather {
    /// Every request meets this.
    pub fn all(fate: Fate) -> Self {
        Self { shares: vec![(100, fate)], ..Self::default() }
    }

    /// The fate of the n-th request.
    fn fate(&self, number: u64) -> Fate {
        let mut drawn = u32::try_from(mix(self.seed ^ mix(number)) % 100).unwrap_or_default();
        for (share, fate) in &self.shares {
            match drawn.checked_sub(*share) {
                None => return *fate,
                Some(rest) => drawn = rest,
            }
        }
        Fate::Passes
    }
}

/// SplitMix64: neighbouring numbers become unlike ones, on every machine alike.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The weather over one cluster, which a story changes while controllers run under it. Clones are the same sky.
#[derive(Clone, Debug, Default)]
pub struct Sky(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Counts how often all watches were cut.
    cuts: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    weather: Weather,
    requests: u64,
    met: BTreeMap<Fate, u64>,
    expired: u64,
}

impl Sky {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the weather.
    pub fn set(&self, weather: Weather) {
        self.state().weather = weather;
    }

    /// From now on everything passes at once.
    pub fn clear(&self) {
        self.set(Weather::default());
    }

    /// Breaks every watch there is. Those that come after are not affected.
    pub fn cut_watches(&self) {
        self.0.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// How many requests there were so far.
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    /// How many requests met this so far.
    pub fn met(&self, fate: Fate) -> u64 {
        self.state().met.get(&fate).copied().unwrap_or_default()
    }

    /// How many watches were told that what they ask for is forgotten, where that can be seen.
    pub fn expired(&self) -> u64 {
        self.state().expired
    }

    /// Decides about the next request.
    pub(crate) fn meet(&self) -> Fate {
        let mut state = self.state();
        state.requests += 1;
        let fate = state.weather.fate(state.requests);
        *state.met.entry(fate).or_default() += 1;
        fate
    }

    /// How much later news arrive than they come.
    pub(crate) fn news_delay(&self) -> Duration {
        match self.state().weather.news {
            News::Fresh => Duration::ZERO,
            News::Late(delay) => delay,
        }
    }

    /// Notes a watch that was told that what it asks for is forgotten.
    pub(crate) fn note_expired(&self) {
        self.state().expired += 1;
    }

    /// Completes when watches that are open now are cut.
    pub(crate) fn cut(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut cuts = self.0.cuts.subscribe();
        async move {
            // The sky is gone only with everything under it.
            let _ = cuts.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_and_a_seed_is_one_weather() {
        let weather = Weather { seed: 7, shares: vec![(30, Fate::Fails), (20, Fate::Throttled)], news: News::Fresh };
        let count = |weather: &Weather, fate| (0..10_000).filter(|number| weather.fate(*number) == fate).count();
        for (fate, share) in [(Fate::Fails, 3000), (Fate::Throttled, 2000), (Fate::Passes, 5000)] {
            let found = count(&weather, fate);
            assert!(found.abs_diff(share) < 200, "{} {found}", fate.name());
        }
        assert_eq!(count(&Weather::all(Fate::RequestLost), Fate::RequestLost), 10_000);
        assert_eq!(count(&Weather::default(), Fate::Passes), 10_000);
        let drawn = |seed| {
            let weather = Weather { seed, ..weather.clone() };
            (0..50).map(|number| weather.fate(number)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn a_sky_counts_what_was_met() {
        let sky = Sky::default();
        sky.set(Weather::all(Fate::Fails));
        assert_eq!(sky.meet(), Fate::Fails);
        sky.clear();
        assert_eq!(sky.meet(), Fate::Passes);
        assert_eq!((sky.requests(), sky.met(Fate::Fails), sky.met(Fate::Passes)), (2, 1, 1));
    }
}
