//! Names and identities drawn from the server's seed.

use fastrand::Rng;

/// What generated suffixes are made of: no vowels and no look-alikes, so that no words come out.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// The longest name that can be generated; longer bases are cut.
const GENERATED_LENGTH_MAX: usize = 63;

/// A suffix of five letters.
pub(crate) fn suffix(rng: &mut Rng) -> String {
    (0..SUFFIX_LENGTH).map(|_| char::from(SUFFIX_LETTERS[rng.usize(..SUFFIX_LETTERS.len())])).collect()
}

/// A name that begins with `base`.
pub(crate) fn generated(rng: &mut Rng, base: &str) -> String {
    let kept: String = base.chars().take(GENERATED_LENGTH_MAX - SUFFIX_LENGTH).collect();
    kept + &suffix(rng)
}

/// An identity in the form of a random UUID.
pub(crate) fn uid(rng: &mut Rng) -> String {
    let bits = rng.u128(..);
    let versioned = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{versioned:032x}");
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}
