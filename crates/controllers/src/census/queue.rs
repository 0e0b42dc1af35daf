//! The work queue as a scrape sees it.

use std::time::Duration;

use tokio::time::Instant;

use crate::metrics::runtime::{LONGEST, QUEUE_ADDS, QUEUE_DEPTH, UNFINISHED, WORKERS, WORKERS_MAX};
use crate::metrics::{Collector, Page, Row};
use crate::queue::{Load, SharedQueue, WeakQueue};
use crate::work::at_once_max;

/// Keys of the queue are ordered by time alone.
const PRIORITY: &str = "0";

/// Tells what there is to do, for as long as the hub runs.
pub(crate) struct QueueTold {
    queue: WeakQueue,
}

impl QueueTold {
    pub(crate) fn new(queue: &SharedQueue) -> Self {
        Self { queue: queue.downgrade() }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
impl Collector for QueueTold {
    fn collect(&self, page: &mut Page) {
        let Some(queue) = self.queue.upgrade() else { return };
        let (width, loads) = (queue.width(), queue.loads(Instant::now()));
        let mut by_controller = |row: &Row, value: &dyn Fn(&str, &Load) -> f64| {
            page.metric(row, loads.iter().map(|(name, load)| ([("controller", *name)], value(name, load))));
        };
        by_controller(&WORKERS_MAX, &|name, _| at_once_max(name, width) as f64);
        by_controller(&WORKERS, &|_, load| load.running as f64);
        let mut by_name = |row: &Row, value: &dyn Fn(&Load) -> f64| {
            let samples = loads.iter().map(|(name, load)| ([("name", *name), ("controller", *name)], value(load)));
            page.metric(row, samples);
        };
        let seconds = Duration::as_secs_f64;
        by_name(&QUEUE_ADDS, &|load| load.added as f64);
        by_name(&UNFINISHED, &|load| seconds(&load.unfinished));
        by_name(&LONGEST, &|load| seconds(&load.longest));
        let depths = loads
            .iter()
            .map(|(name, load)| ([("name", *name), ("controller", *name), ("priority", PRIORITY)], load.due as f64));
        page.metric(&QUEUE_DEPTH, depths);
    }
}
