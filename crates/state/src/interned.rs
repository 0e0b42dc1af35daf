//! Equal values once in memory, for as long as somebody uses them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Each value once, with the number of its users.
#[derive(Debug)]
pub(crate) struct Interned<T: ?Sized>(BTreeMap<Arc<T>, usize>);

impl<T: ?Sized> Default for Interned<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + ?Sized> Interned<T> {
    /// One more user of a value: the shared copy.
    pub(crate) fn share(&mut self, value: &Arc<T>) -> Arc<T> {
        let known = self.0.get_key_value(value).map(|(known, _)| Arc::clone(known));
        let shared = known.unwrap_or_else(|| Arc::clone(value));
        *self.0.entry(Arc::clone(&shared)).or_insert(0) += 1;
        shared
    }

    /// One user less; with the last one the value is forgotten.
    pub(crate) fn release(&mut self, value: &T) {
        let Some(count) = self.0.get_mut(value) else { return };
        *count -= 1;
        if *count == 0 {
            self.0.remove(value);
        }
    }
}
