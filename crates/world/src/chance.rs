//! Chance from a seed. Every part of a world draws from a source of its own, so that one part drawing more often does
//! not change what another draws.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;

/// A source of chance that its clones share.
#[derive(Clone, Debug)]
pub struct Chance(Arc<Mutex<Rng>>);

impl Chance {
    /// The source of one part of a world.
    pub fn of(seed: u64, part: &str) -> Self {
        // FNV-1a: the same on every machine and in every version, unlike the standard library's hashers.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed;
        for byte in part.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(Arc::new(Mutex::new(Rng::with_seed(hash))))
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A duration within a range, to the microsecond.
    pub fn duration(&self, range: &RangeInclusive<Duration>) -> Duration {
        let bound = |duration: &Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.draw(|rng| rng.u64(bound(range.start())..=bound(range.end()))))
    }

    /// A number within a range.
    pub fn number(&self, range: RangeInclusive<u32>) -> u32 {
        self.draw(|rng| rng.u32(range))
    }

    /// True this often in a hundred.
    pub fn percent(&self, percent: u32) -> bool {
        self.number(0..=99) < percent
    }

    /// One of several.
    pub fn choose<'a, T>(&self, choices: &'a [T]) -> Option<&'a T> {
        let last = u32::try_from(choices.len()).ok()?.checked_sub(1)?;
        choices.get(self.number(0..=last) as usize)
    }

    /// A word of sixteen letters.
    pub fn word(&self) -> String {
        format!("{:016x}", self.draw(|rng| rng.u64(..)))
    }
}
