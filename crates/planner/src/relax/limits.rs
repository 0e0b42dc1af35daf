//! How many pods fit on machines.

use super::Covering;

/// Up to this many rows, caps are lowered to the number of pods. It sharpens the bound while machines are large for
/// the pods there are, which many rows together rarely let happen; with many rows it would make patterns long and slow.
const ROWS_FEW: usize = 24;

/// Numbers of pods this close below a whole one, relatively, are that one, less what rounding took.
const SAME: f64 = 1e-12;

/// Numbers from here on have no fractions, so that what is added to it is rounded.
const WHOLE: f64 = (1_u64 << 52) as f64;

/// How many pods of a row one machine may carry, by groups of rows for which that is the same.
pub(super) struct Limits {
    /// The group of each row.
    group_of: Vec<usize>,
    /// By group the most that one machine may have, whatever its room.
    most: Vec<f64>,
    /// By resource then group how many pods one unit holds; without end where none is needed.
    pods_per_unit: Vec<f64>,
}

impl Limits {
    pub(super) fn new(problem: &Covering) -> Self {
        let few = problem.rows.len() <= ROWS_FEW;
        let (group_of, sizes): (Vec<usize>, Vec<usize>) = if few {
            ((0..problem.rows.len()).collect(), problem.rows.iter().map(|row| row.size).collect())
        } else {
            (problem.rows.iter().map(|row| row.size).collect(), (0..problem.sizes.len()).collect())
        };
        let mut most: Vec<f64> = sizes.iter().map(|size| f64::from(problem.sizes[*size].most)).collect();
        if few {
            let there = problem.rows.iter().map(|row| row.count.saturating_add(row.spare) as f64);
            most.iter_mut().zip(there).for_each(|(most, there)| *most = most.min(there));
        }
        let mut pods_per_unit = Vec::with_capacity(problem.resources() * sizes.len());
        for r in 0..problem.resources() {
            pods_per_unit.extend(sizes.iter().map(|size| (1.0 + SAME) / problem.sizes[*size].demand(r)));
        }
        Self { group_of, most, pods_per_unit }
    }

    pub(super) fn groups(&self) -> usize {
        self.most.len()
    }

    /// The group of each row.
    pub(super) fn into_groups(self) -> Vec<usize> {
        self.group_of
    }

    pub(super) fn group(&self, row: usize) -> usize {
        self.group_of[row]
    }

    /// Adds to a list the pods of each group that one machine with some room carries.
    pub(super) fn write(&self, room: &[f64], list: &mut Vec<f64>) {
        let start = list.len();
        list.extend(&self.most);
        let pods = &mut list[start..];
        for (per_unit, room) in self.pods_per_unit.chunks_exact(pods.len().max(1)).zip(room) {
            let room = room.max(0.0);
            for (pods, per_unit) in pods.iter_mut().zip(per_unit) {
                let held = room * per_unit;
                // Where nothing is needed and nothing is there this is no number, and no limit.
                *pods = if held < *pods { held } else { *pods };
            }
        }
        for pods in pods {
            let rounded = (*pods + WHOLE) - WHOLE;
            *pods = if rounded > *pods { rounded - 1.0 } else { rounded };
        }
    }
}
