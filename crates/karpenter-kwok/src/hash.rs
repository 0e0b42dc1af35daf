//! Numbers that look drawn but repeat: the same words give the same number on every machine, for ever.

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// No byte of UTF-8, so that `["ab", "c"]` and `["a", "bc"]` are told apart.
const SEPARATOR: u8 = 0xff;

/// The 64-bit FNV-1a hash of the words, stirred once more.
///
/// Plain FNV leaves names that differ in their last letter with equal high bits; callers take small pieces of the
/// number, so every bit has to depend on every letter.
pub(crate) fn hash(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([SEPARATOR]));
    stir(bytes.fold(OFFSET_BASIS, |state, byte| (state ^ u64::from(byte)).wrapping_mul(PRIME)))
}

fn stir(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// One of `count` positions, by hash; `None` when there is none to take.
pub(crate) fn position(words: &[&str], count: usize) -> Option<usize> {
    let count = u64::try_from(count).ok()?;
    usize::try_from(hash(words).checked_rem(count)?).ok()
}

#[cfg(test)]
mod tests {
    use super::{hash, position};

    #[test]
    fn the_number_never_changes() {
        assert_eq!(hash(&["default", "default-abcde"]), hash(&["default", "default-abcde"]));
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }

    #[test]
    fn positions_are_spread() {
        let mut hits = [0_u32; 4];
        for number in 0..4000 {
            hits[position(&["pool", &format!("claim-{number}")], 4).unwrap()] += 1;
        }
        assert!(hits.iter().all(|hit| (900..1100).contains(hit)), "{hits:?}");
        assert_eq!(position(&["pool"], 0), None);
    }
}
