//! Small numbers for things that are compared often.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use model::Requirements;

/// A fast hash for keys that no stranger chooses to collide. Nothing is ever read in its order.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(ODD);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let last = rest.iter().fold(rest.len() as u64, |sum, byte| (sum << 8) | u64::from(*byte));
        self.mix(last);
    }

    fn write_u8(&mut self, number: u8) {
        self.mix(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }
}

/// Values by something that is hashed; only ever looked up.
pub(crate) type Hashed<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Numbers by something that is hashed.
pub(crate) type Index<K> = Hashed<K, usize>;

/// A set of demands on labels, by number. [`Want::NOTHING`] demands nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Want(pub(crate) u32);

impl Want {
    pub(crate) const NOTHING: Self = Self(0);
}

/// All demands of a placement, each once.
pub(crate) struct Wants {
    numbers: Index<Requirements>,
    wants: Vec<Requirements>,
}

impl Wants {
    pub(crate) fn new() -> Self {
        Self { numbers: Index::default(), wants: vec![Requirements::none()] }
    }

    pub(crate) fn number(&mut self, requirements: &Requirements) -> Want {
        if requirements.is_empty() {
            return Want::NOTHING;
        }
        if let Some(known) = self.numbers.get(requirements) {
            return Want(*known as u32);
        }
        let number = self.wants.len();
        self.wants.push(requirements.clone());
        self.numbers.insert(requirements.clone(), number);
        Want(number as u32)
    }

    pub(crate) fn get(&self, want: Want) -> &Requirements {
        &self.wants[want.0 as usize]
    }
}
