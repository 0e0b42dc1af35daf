//! What was used, and what it costs.

use catalogue::MicroDollars;
use jiff::Timestamp;

use crate::time::milliseconds_between;
use crate::{CapacityType, Instance, InstanceId};

/// The use of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillLine {
    /// The instance.
    pub instance: InstanceId,
    /// Its type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// How it was bought.
    pub capacity_type: CapacityType,
    /// Price per hour.
    pub price: MicroDollars,
    /// When it began to run.
    pub from: Timestamp,
    /// When its end began, or the time of the bill while it runs.
    pub until: Timestamp,
}

/// A new instance is charged for a minute at least.
const CHARGED_MILLISECONDS_MIN: u64 = 60_000;
const MILLISECONDS_PER_HOUR: u128 = 3_600_000;

impl BillLine {
    /// The line of an instance that ever ran.
    pub(crate) fn of(instance: &Instance, now: Timestamp) -> Option<Self> {
        let from = instance.running_at?;
        Some(Self {
            instance: instance.id.clone(),
            instance_type: instance.instance_type.clone(),
            zone: instance.zone.clone(),
            capacity_type: instance.capacity_type,
            price: instance.price,
            from,
            until: instance.ending_at.unwrap_or_else(|| now.max(from)),
        })
    }

    /// How long it ran.
    pub fn milliseconds(&self) -> u64 {
        milliseconds_between(self.from, self.until)
    }

    /// Millionths of a dollar, times milliseconds per hour, so that sums are exact.
    fn cost_exact(&self) -> u128 {
        u128::from(self.price.0) * u128::from(self.milliseconds().max(CHARGED_MILLISECONDS_MIN))
    }

    /// What it costs, in millionths of a dollar.
    pub fn cost(&self) -> MicroDollars {
        rounded(self.cost_exact())
    }
}

fn rounded(exact: u128) -> MicroDollars {
    let cost = (exact + MILLISECONDS_PER_HOUR / 2) / MILLISECONDS_PER_HOUR;
    MicroDollars(u64::try_from(cost).unwrap_or(u64::MAX))
}

/// Everything that was used up to some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// One line per instance that ever ran, in the order of launch.
    pub lines: Vec<BillLine>,
}

impl Bill {
    /// Hours that instances ran, all together.
    pub fn instance_hours(&self) -> f64 {
        let milliseconds: u64 = self.lines.iter().map(BillLine::milliseconds).sum();
        milliseconds as f64 / MILLISECONDS_PER_HOUR as f64
    }

    /// What it all costs, in millionths of a dollar, rounded once.
    pub fn cost(&self) -> MicroDollars {
        rounded(self.lines.iter().map(BillLine::cost_exact).sum())
    }
}
