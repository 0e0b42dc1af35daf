//! How much is done at once, by how much processor time the container asked for.

/// From one core to this many, more is done at once; beyond it nothing changes.
const CORES_MAX: usize = 60;

/// So many as `least` at one core, `most` at sixty, and in between in proportion. A part of a core counts as a whole one.
pub(crate) fn scaled(least: usize, most: usize, cpu_millicores: u32) -> usize {
    let more = cores(cpu_millicores).saturating_sub(1);
    (least + (most - least) * more / (CORES_MAX - 1)).clamp(least, most)
}

/// Whole cores that were asked for, at least one.
fn cores(cpu_millicores: u32) -> usize {
    usize::try_from(cpu_millicores.div_ceil(1000)).unwrap_or(usize::MAX).max(1)
}

/// Threads of the program: one for each core, and two at least, so that a scrape or a solve holds nobody up.
pub fn threads(cpu_millicores: u32) -> usize {
    cores(cpu_millicores).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CFG-06: more processor time means more passes at once and more threads for solves and scrapes.
    #[test]
    fn workers_grow_with_cores() {
        let table = [
            (1, 10, 2),
            (1000, 10, 2),
            (1001, 26, 2),
            (2000, 26, 2),
            (4000, 60, 4),
            (30_500, 513, 31),
            (60_000, 1000, 60),
            (100_000, 1000, 100),
        ];
        for (millicores, workers, expected_threads) in table {
            assert_eq!(
                (scaled(10, 1000, millicores), threads(millicores)),
                (workers, expected_threads),
                "{millicores}"
            );
        }
    }
}
