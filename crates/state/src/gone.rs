//! Objects that were seen to go.

use std::collections::{BTreeSet, VecDeque};

/// Identities of objects that were seen to go. Long enough for every write that is still under way to come back:
/// a late answer about a dead object must not bring it to life.
const REMEMBERED: usize = 4096;

/// The last identities that went, the oldest forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    order: VecDeque<String>,
    known: BTreeSet<String>,
}

impl Gone {
    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.known.contains(uid)
    }

    pub(crate) fn remember(&mut self, uid: &str) {
        if !self.known.insert(uid.to_owned()) {
            return;
        }
        self.order.push_back(uid.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut gone = Gone::default();
        (0..=REMEMBERED).for_each(|number| gone.remember(&number.to_string()));
        gone.remember("1");
        assert!(!gone.contains("0") && gone.contains("1") && gone.contains(&REMEMBERED.to_string()));
        assert_eq!((gone.order.len(), gone.known.len()), (REMEMBERED, REMEMBERED));
    }
}
