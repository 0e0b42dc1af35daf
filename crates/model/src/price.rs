//! Money as a whole number, so that equal prices compare equal on every machine.

use std::fmt;
use std::iter::Sum;

/// A price per hour in picodollars: fine enough for a reservation's token price, wide enough for a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u64);

const PICODOLLARS: f64 = 1e12;

impl Price {
    /// No cost.
    pub const ZERO: Self = Self(0);
    /// More than anything costs.
    pub const MAX: Self = Self(u64::MAX);

    /// From dollars per hour; not-a-number and negative prices count as zero.
    pub fn from_dollars(dollars: f64) -> Self {
        Self((dollars.max(0.0) * PICODOLLARS).round() as u64)
    }

    /// Dollars per hour.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PICODOLLARS
    }

    /// The price of `count` of these.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// The sum of two prices.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Price {
    fn sum<I: Iterator<Item = Self>>(prices: I) -> Self {
        prices.fold(Self::ZERO, Self::plus)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${:.4}/h", self.dollars())
    }
}
