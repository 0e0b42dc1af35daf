//! Volumes on a node, and how many more it takes.

use std::collections::{BTreeMap, BTreeSet};

use model::{AttachLimits, Attachment, Text};

use crate::classes::Attaching;
use crate::menus::count_by_driver;

/// The volumes of the pods of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attached {
    pub(crate) by_driver: BTreeMap<Text, u32>,
    /// Those that another pod may share.
    known: BTreeSet<Attachment>,
}

impl Attached {
    pub(crate) fn of(attachments: &BTreeSet<Attachment>) -> Self {
        Self { by_driver: count_by_driver(attachments.iter()), known: attachments.clone() }
    }

    fn new_shared(&self, attaching: &Attaching) -> BTreeMap<Text, u32> {
        count_by_driver(attaching.shared.iter().filter(|attachment| !self.known.contains(*attachment)))
    }

    /// How many pods with such volumes can still come, and if none, the driver that keeps them away.
    pub(crate) fn copies(&self, attaching: &Attaching, limits: &AttachLimits) -> Result<i64, Text> {
        if attaching.is_nothing() || limits.is_empty() {
            return Ok(i64::MAX);
        }
        let shared = self.new_shared(attaching);
        let mut most = i64::MAX;
        for driver in attaching.own.keys().chain(shared.keys()) {
            let Some(limit) = limits.get(driver) else { continue };
            let count = |counts: &BTreeMap<Text, u32>| i64::from(counts.get(driver).copied().unwrap_or(0));
            let left = i64::from(*limit) - count(&self.by_driver) - count(&shared);
            let own = count(&attaching.own);
            let copies = if own > 0 { left / own } else { i64::MAX };
            if left < 0 || copies < 1 {
                return Err(Text::clone(driver));
            }
            most = most.min(copies);
        }
        Ok(most)
    }

    pub(crate) fn add(&mut self, attaching: &Attaching, copies: u32) {
        for (driver, count) in self.new_shared(attaching) {
            *self.by_driver.entry(driver).or_insert(0) += count;
        }
        for (driver, count) in &attaching.own {
            *self.by_driver.entry(Text::clone(driver)).or_insert(0) += count * copies;
        }
        self.known.extend(attaching.shared.iter().cloned());
    }
}
