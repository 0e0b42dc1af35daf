//! Proofs of bounds: duals that no column can outdo.

use std::collections::BTreeMap;

use super::melted::Melted;
use super::scaled::Scaled;

/// Duals that no column can outdo, and the bound they prove, up to rounding.
pub(super) struct Certificate {
    pub(super) bound: f64,
    pub(super) duals: Vec<f64>,
}

impl Certificate {
    /// Takes duals that are proven once divided by the most that one unit of price carries under them.
    fn new(problem: &Scaled<'_>, duals: &[f64], most: f64) -> Self {
        let scale = if most > 0.0 { 1.0 / most } else { 0.0 };
        let duals: Vec<f64> = duals.iter().map(|dual| dual * scale).collect();
        let bound = duals.iter().zip(&problem.need).map(|(dual, need)| dual * need).sum();
        Self { bound, duals }
    }

    /// The best bound to be had without search: one row alone, or one resource alone.
    pub(super) fn obvious(problem: &Scaled<'_>) -> Self {
        let mut best = Self { bound: 0.0, duals: vec![0.0; problem.rows.len()] };
        if let Some(row) = (0..problem.rows.len()).max_by(|&a, &b| problem.need[a].total_cmp(&problem.need[b])) {
            let mut duals = vec![0.0; problem.rows.len()];
            duals[row] = 1.0;
            best.improve(Self::new(problem, &duals, 1.0));
        }
        for r in 0..problem.resources {
            let most = (0..problem.columns.len()).map(|j| problem.room_of(j)[r]).fold(0.0, f64::max);
            best.improve(Self::new(problem, problem.demand_of(r), most));
        }
        best.improve(Self::melted(problem));
        best
    }

    /// The bound if pods were liquid and every column took all of them: one price per resource explains it.
    fn melted(problem: &Scaled<'_>) -> Self {
        let columns: Vec<usize> = (0..problem.columns.len()).collect();
        let prices = Melted::on(problem, &columns).prices;
        let priced = |k: usize| (0..problem.resources).map(|r| problem.demand_of(r)[k] * prices[r].max(0.0)).sum();
        let duals: Vec<f64> = (0..problem.rows.len()).map(priced).collect();
        let worth = |j: usize| problem.room_of(j).iter().zip(&prices).map(|(room, price)| room * price.max(0.0)).sum();
        let most = (0..problem.columns.len()).map(worth).fold(0.0, f64::max);
        Self::new(problem, &duals, most)
    }

    /// What pods are worth for the sake of the resources they need, and what columns have left of their price besides.
    ///
    /// Each column tells its prices for resources. A row is worth what it needs at the prices of the column where that is
    /// least, so that no column carries more than its whole room is worth. Where that is less than the column costs,
    /// because caps hold it down, rows may be worth more, in turn, until some column has nothing left.
    pub(super) fn priced(problem: &Scaled<'_>, prices: &[Vec<f64>]) -> Self {
        let full = |(column, prices): (usize, &Vec<f64>)| {
            prices.iter().zip(problem.room_of(column)).map(|(price, room)| price * room).sum::<f64>()
        };
        let mut left: Vec<f64> = prices.iter().enumerate().map(|priced| 1.0 - full(priced)).collect();
        let sellers = problem.sellers();
        // Rows are many, and of few sizes: each column prices a size once, per pod of it.
        let mut by_size: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut duals = Vec::with_capacity(problem.rows.len());
        for row in 0..problem.rows.len() {
            let unit = problem.unit[row];
            let worths = by_size.entry(problem.size(row)).or_insert_with(|| {
                let needs: Vec<f64> = problem.demands_of(row).map(|demand| demand / unit).collect();
                let worth = |prices: &Vec<f64>| prices.iter().zip(&needs).map(|(price, need)| price * need).sum();
                prices.iter().map(worth).collect()
            });
            let carrying = sellers[problem.kin(row)].iter().filter(|column| problem.most_on(**column, row) > 0.0);
            // No unit of price buys more than one of any row.
            duals.push(carrying.map(|column| worths[*column] * unit).fold(1.0, f64::min));
        }
        let mut turns: Vec<usize> = (0..problem.rows.len()).collect();
        turns.sort_by(|a, b| problem.need[*b].total_cmp(&problem.need[*a]).then(a.cmp(b)));
        for row in turns {
            let sellers = sellers[problem.kin(row)].iter().map(|column| (*column, problem.most_on(*column, row)));
            let carrying = sellers.filter(|(_, most)| *most > 0.0);
            let raises = carrying.clone().map(|(column, most)| left[column].max(0.0) / most);
            let more = raises.fold(f64::INFINITY, f64::min);
            if more > 0.0 && more.is_finite() {
                carrying.for_each(|(column, most)| left[column] -= more * most);
                duals[row] += more;
            }
        }
        // Whatever the prices were, no column carries more than its price after this.
        let most = left.iter().map(|left| 1.0 - left).fold(1.0, f64::max);
        Self::new(problem, &duals, most)
    }

    pub(super) fn improve(&mut self, other: Self) {
        if other.bound > self.bound {
            *self = other;
        }
    }
}

/// Duals on the way to a certificate: lowered, column by column, to what the column's price allows.
pub(super) struct Repair {
    duals: Vec<f64>,
    /// The most that one unit of price carried on any column before.
    most: f64,
}

impl Repair {
    pub(super) fn new(duals: &[f64]) -> Self {
        Self { duals: duals.to_vec(), most: 0.0 }
    }

    /// Makes up for a column that carries more than its price.
    ///
    /// Its resource prices and the excess they leave to each row explain `worth`, so divided by `worth` they explain
    /// its price. Rows worth no more than that explains may stay as they are, which beats lowering all alike.
    pub(super) fn apply(&mut self, duals: &[f64], worth: f64, most: &[f64], excess: &[f64]) {
        self.most = self.most.max(worth);
        if worth > 1.0 {
            let share = 1.0 / worth;
            for (((repaired, dual), most), excess) in self.duals.iter_mut().zip(duals).zip(most).zip(excess) {
                let explained = (dual + (-excess).max(0.0)) * share;
                if *most > 0.0 && explained < *repaired {
                    *repaired = explained;
                }
            }
        }
    }

    pub(super) fn certificate(&self, problem: &Scaled<'_>) -> Certificate {
        Certificate::new(problem, &self.duals, self.most.min(1.0))
    }
}
