//! What the ideal fleet has beyond whole nodes.

use std::collections::BTreeMap;

use super::TINY;
use crate::relax::Share;

/// Parts are put together if a node then holds this many pods of each family that is on it. A node that holds fewer is
/// filled well by the pods of one share and badly by a few of each. Nodes of machines that hold hundreds of pods were up to
/// five percent cheaper together, and small ones dearer.
const PODS_OF_EACH: f64 = 8.0;

/// What shares have beyond whole machines. Several parts of a large machine may make up a whole one. Shares of one column
/// lie side by side.
pub(super) fn parts(shares: &[&Share]) -> Vec<Share> {
    let mut parts = Vec::new();
    for of_column in shares.chunk_by(|left, right| left.column == right.column) {
        let own: Vec<Share> = of_column.iter().filter_map(|share| part(share)).collect();
        let joined = joined(&own);
        let pods: f64 = joined.pods.iter().map(|(_, each)| each).sum();
        if pods >= PODS_OF_EACH * joined.pods.len() as f64 && !own.is_empty() {
            parts.push(joined);
        } else {
            parts.extend(own);
        }
    }
    parts
}

fn part(share: &Share) -> Option<Share> {
    let machines = share.machines - (share.machines + TINY).floor();
    (machines > TINY).then(|| Share { column: share.column, machines, pods: share.pods.clone() })
}

/// Parts of one column together, with what they hold in the mean.
fn joined(parts: &[Share]) -> Share {
    let machines: f64 = parts.iter().map(|part| part.machines).sum();
    let mut pods: BTreeMap<usize, f64> = BTreeMap::new();
    for part in parts {
        part.pods
            .iter()
            .for_each(|(family, each)| *pods.entry(*family).or_default() += each * part.machines / machines);
    }
    Share { column: parts.first().map_or(0, |part| part.column), machines, pods: pods.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `column machines family:pods...`, and writes parts alike.
    fn check(shares: &[&str]) -> Vec<String> {
        let read = |line: &&str| {
            let mut words = line.split(' ');
            let mut number = || words.next().unwrap().parse::<f64>().unwrap();
            let (column, machines) = (number() as usize, number());
            let pods = words.map(|word| {
                let (family, pods) = word.split_once(':').unwrap();
                (family.parse().unwrap(), pods.parse().unwrap())
            });
            Share { column, machines, pods: pods.collect() }
        };
        let shares: Vec<Share> = shares.iter().map(read).collect();
        let text = |part: &Share| {
            let pods: Vec<String> = part.pods.iter().map(|(family, pods)| format!("{family}:{pods:.1}")).collect();
            format!("{} {:.2} {}", part.column, part.machines, pods.join(" "))
        };
        parts(&shares.iter().collect::<Vec<_>>()).iter().map(text).collect()
    }

    #[test]
    fn parts_of_large_machines_are_put_together() {
        assert_eq!(check(&["3 2.5 0:40", "3 0.75 0:20 1:100", "1 4 0:9"]), ["3 1.25 0:28.0 1:60.0"]);
        assert_eq!(check(&["3 2.5 0:4", "3 0.75 0:2 1:10"]), ["3 0.50 0:4.0", "3 0.75 0:2.0 1:10.0"]);
        assert_eq!(check(&["3 0.5 0:40", "4 0.5 0:40"]), ["3 0.50 0:40.0", "4 0.50 0:40.0"]);
        assert_eq!(check(&["3 2 0:40"]), Vec::<String>::new());
    }
}
