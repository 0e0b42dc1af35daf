//! Rows that are much alike taken together, when there are too many to tell all of them apart in time.

use super::melted::Melted;
use super::scaled::Scaled;
use super::{Columns, Covering, Detail, Row, Size, demand};

/// So many families tell enough apart where all pods may run on the same machines, or as good as that.
const ALIKE_MAX: usize = 48;
/// So many where they choose among machines: there are fewer sizes in each family then.
const CHOOSY_MAX: usize = 112;
/// So many of pods that are alike, and of others, do for a guide on which no bound rests.
const COARSE_ALIKE_MAX: usize = 32;
const COARSE_CHOOSY_MAX: usize = 40;

/// With more kinds of pods than this, few families are left to tell sizes apart.
const KINDS_MAX: usize = 44;
/// What kins lose by being taken for one, as a part of what they cost, is no more than rounding,
const ROUNDING: f64 = 1e-9;
/// or this where kinds are too many otherwise.
const LOSING: f64 = 0.15;

/// Rows by family; every row is in one.
pub(crate) type Families = Vec<Vec<usize>>;

/// How many families are worth their time.
pub(super) fn families_max(alike: &[usize], detail: Detail) -> usize {
    let is_choosy = alike.iter().any(|kind| *kind > 0);
    match (detail, is_choosy) {
        (Detail::Fine, true) => CHOOSY_MAX,
        (Detail::Fine, false) => ALIKE_MAX,
        (Detail::Coarse, true) => COARSE_CHOOSY_MAX,
        (Detail::Coarse, false) => COARSE_ALIKE_MAX,
    }
}

/// Splits the rows of kins that are alike until there are as many families as asked for, always where rows of one family
/// differ most, or until families are of one size each.
pub(super) fn families(problem: &Covering, alike: &[usize], most: usize) -> Families {
    let total: Vec<f64> = (0..problem.resources()).map(|r| total(problem, r)).collect();
    let mut families: Vec<Family> = Vec::new();
    let kinds = alike.iter().map(|kind| kind + 1).max().unwrap_or(0);
    for kind in 0..kinds {
        let is_member = |row: &usize| alike[problem.rows[*row].kin] == kind;
        let members: Vec<usize> = (0..problem.rows.len()).filter(is_member).collect();
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

/// By kin, a number that it shares with kins which are as good as one: where resources cost the least, all of them may
/// run. Some may run elsewhere besides, which is of little use to them. Where that leaves too many kinds, kins are one that
/// could do somewhat better apart.
pub(super) fn alike(problem: &Covering, scaled: &Scaled<'_>) -> Vec<usize> {
    let kins = problem.rows.iter().map(|row| row.kin + 1).max().unwrap_or(0);
    let sold_to = |kin: usize| -> Vec<usize> {
        (0..scaled.columns.len()).filter(|column| problem.columns.is_sold(scaled.columns[*column], kin)).collect()
    };
    let sold: Vec<Vec<usize>> = (0..kins).map(sold_to).collect();
    let numbers = grouped(scaled, &sold, ROUNDING);
    let are_few = numbers.iter().all(|kind| *kind < KINDS_MAX);
    if are_few { numbers } else { grouped(scaled, &sold, LOSING) }
}

/// By kin, the kind that it is of: of those known the one where it loses least and no more than so much, or else a new one.
fn grouped(scaled: &Scaled<'_>, sold: &[Vec<usize>], losing: f64) -> Vec<usize> {
    let mut known: Vec<Melted> = Vec::new();
    let mut numbers = Vec::with_capacity(sold.len());
    for columns in sold {
        let worths =
            known.iter().enumerate().filter_map(|(kind, melted)| Some((melted.worth_on(scaled, columns)?, kind)));
        let best = worths.min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(worth, _)| *worth <= 1.0 + losing);
        numbers.push(best.map_or(known.len(), |(_, kind)| kind));
        if best.is_none() {
            known.push(Melted::on(scaled, columns));
        }
    }
    numbers
}

/// One row for each family: its pods, with what they ask for on average; and of the columns some, sold where most of the
/// pods may run. Only a guide: no bound rests on it.
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
        kin: size,
    };
    let known = &problem.columns;
    let mut columns = Columns::with_capacity(kept.len(), known.resources, families.len());
    for column in kept {
        let is_sold = |family: &Vec<usize>| {
            let pods = |sold: bool| {
                let rows = family.iter().map(|row| &problem.rows[*row]);
                rows.filter(|row| known.is_sold(*column, row.kin) == sold).map(|row| row.count).sum::<u64>()
            };
            pods(true) >= pods(false)
        };
        columns.push(known.price(*column), known.room(*column).iter().copied(), families.iter().map(is_sold));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each column with its price, its room of two resources and the kins that may run there.
    fn numbers(columns: &[(f64, [f64; 2], Vec<usize>)]) -> Vec<usize> {
        let kins = columns.iter().flat_map(|(_, _, sold)| sold).map(|kin| kin + 1).max().unwrap();
        let mut sold = Columns::with_capacity(columns.len(), 2, kins);
        for (price, room, own) in columns {
            sold.push(*price, *room, (0..kins).map(|kin| own.contains(&kin)));
        }
        let sizes = [[1.0, 2.0], [1.0, 8.0]].map(|demand| Size { demand: demand.into(), most: u32::MAX });
        let row = |number: usize| Row { count: 10, spare: 0, size: number % 2, kin: number / 2 };
        let problem = Covering { sizes: sizes.into(), rows: (0..2 * kins).map(row).collect(), columns: sold };
        alike(&problem, &Scaled::new(&problem))
    }

    #[test]
    fn kins_are_as_good_as_one_where_they_share_what_is_cheapest() {
        let both = |price: f64, memory: f64, own: usize| {
            let lean = (1.0, [16.0, 32.0], vec![0, 1, 2]);
            let fat = (1.2, [16.0, 128.0], vec![0, 1]);
            numbers(&[lean, fat, (1.3, [16.0, 128.0], vec![2]), (price, [16.0, memory], vec![own])])
        };
        // The last kin has to pay more for memory.
        assert_eq!(both(9.0, 64.0, 1), [0, 0, 1]);
        assert_eq!(both(9.0, 64.0, 0), [0, 0, 1]);
        // What one of them finds cheaper elsewhere tells them apart.
        assert_eq!(both(0.5, 64.0, 1), [0, 1, 2]);
        assert_eq!(both(0.5, 64.0, 0), [0, 1, 2]);
    }

    #[test]
    fn too_many_kinds_are_one_at_a_small_loss() {
        let market = |kins: usize, own: f64| {
            let everybody = (1.0, [16.0, 64.0], (0..kins).collect());
            let alone = (1..kins).map(|kin| (own, [16.0, 64.0 + kin as f64 / 100.0], vec![kin]));
            numbers(&std::iter::once(everybody).chain(alone).collect::<Vec<_>>())
        };
        assert_eq!(market(3, 0.95), [0, 1, 2]);
        assert_eq!(market(60, 0.95), [0; 60]);
        // What is much cheaper alone stays alone.
        assert_eq!(market(60, 0.5), (0..60).collect::<Vec<usize>>());
    }
}
