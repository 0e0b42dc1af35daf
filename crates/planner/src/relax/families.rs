//! Rows that are much alike taken together, when there are too many to tell all of them apart in time.

use super::{Columns, Covering, Row, Size, demand};

/// Rows by family; every row is in one.
pub(crate) type Families = Vec<Vec<usize>>;

/// Splits the rows of each kin until there are as many families as asked for, always where rows of one family differ
/// most, or until families are of one size each.
pub(super) fn families(problem: &Covering, most: usize) -> Families {
    let total: Vec<f64> = (0..problem.resources()).map(|r| total(problem, r)).collect();
    let mut families: Vec<Family> = Vec::new();
    let kins = problem.rows.iter().map(|row| row.kin).max().map_or(0, |last| last + 1);
    for kin in 0..kins {
        let members: Vec<usize> = (0..problem.rows.len()).filter(|row| problem.rows[*row].kin == kin).collect();
        if !members.is_empty() {
            families.push(Family::new(problem, members, &total));
        }
    }
    while families.len() < most {
        let widest =
            (0..families.len()).max_by(|a, b| families[*a].error.total_cmp(&families[*b].error).then(b.cmp(a)));
        let Some(position) = widest.filter(|position| families[*position].error > 0.0) else { break };
        let Family { members, resource, middle, .. } = families.swap_remove(position);
        let (small, large) = members.into_iter().partition(|row| demand(problem, *row, resource) <= middle);
        families.push(Family::new(problem, small, &total));
        families.push(Family::new(problem, large, &total));
    }
    let mut families: Families = families.into_iter().map(|family| family.members).collect();
    families.sort();
    families
}

/// One row for each family: its pods, with what they ask for on average; and of the columns some. Only a guide: no bound
/// rests on it.
pub(super) fn merged(problem: &Covering, families: &Families, kept: &[usize]) -> Covering {
    let size = |family: &Vec<usize>| {
        let pods: f64 = family.iter().map(|row| problem.rows[*row].count as f64).sum();
        let average = |r: usize| {
            let sum: f64 = family.iter().map(|row| problem.rows[*row].count as f64 * demand(problem, *row, r)).sum();
            sum / pods.max(1.0)
        };
        let most = family.iter().map(|row| problem.sizes[problem.rows[*row].size].most).min().unwrap_or(0);
        Size { demand: (0..problem.resources()).map(average).collect(), most }
    };
    let row = |(size, family): (usize, &Vec<usize>)| Row {
        count: family.iter().map(|row| problem.rows[*row].count).sum(),
        spare: family.iter().map(|row| problem.rows[*row].spare).sum(),
        size,
        kin: family.first().map_or(0, |row| problem.rows[*row].kin),
    };
    let known = &problem.columns;
    let kins = known.words * 64;
    let mut columns = Columns::with_capacity(kept.len(), known.resources, kins);
    for column in kept {
        let sold = (0..kins).map(|kin| known.is_sold(*column, kin));
        columns.push(known.price(*column), known.room(*column).iter().copied(), sold);
    }
    Covering {
        sizes: families.iter().map(size).collect(),
        rows: families.iter().enumerate().map(row).collect(),
        columns,
    }
}

struct Family {
    members: Vec<usize>,
    /// How far its rows are from their middle, as a part of all there is.
    error: f64,
    /// The resource in which they differ most, and its middle.
    resource: usize,
    middle: f64,
}

impl Family {
    fn new(problem: &Covering, members: Vec<usize>, total: &[f64]) -> Self {
        let mut family = Self { members, error: 0.0, resource: 0, middle: 0.0 };
        let pods: f64 = family.members.iter().map(|row| problem.rows[*row].count as f64).sum();
        let mut widest = 0.0;
        for (resource, total) in total.iter().enumerate().filter(|(_, total)| **total > 0.0) {
            let amount = |row: &usize| problem.rows[*row].count as f64 * demand(problem, *row, resource);
            let middle = family.members.iter().map(amount).sum::<f64>() / pods.max(1.0);
            let off = |row: &usize| problem.rows[*row].count as f64 * (demand(problem, *row, resource) - middle).abs();
            let (least, most) = family
                .members
                .iter()
                .map(|row| demand(problem, *row, resource))
                .fold((f64::INFINITY, 0.0_f64), |(least, most), amount| (least.min(amount), most.max(amount)));
            // A middle that rounding put beyond all members would split nothing off.
            if least <= middle && middle < most {
                let error = family.members.iter().map(off).sum::<f64>() / total;
                family.error += error;
                if error > widest {
                    (widest, family.resource, family.middle) = (error, resource, middle);
                }
            }
        }
        family
    }
}

fn total(problem: &Covering, resource: usize) -> f64 {
    (0..problem.rows.len()).map(|row| problem.rows[row].count as f64 * demand(problem, row, resource)).sum()
}
