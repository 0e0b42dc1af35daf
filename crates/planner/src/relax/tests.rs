//! Hand-checked cases, and random ones against a slow independent simplex method and against brute force.

use super::certificate::{Certificate, Repair};
use super::knapsack::{Knapsack, Warm, ceiling};
use super::scaled::{Offer, Scaled};
use super::{Budget, Columns, Detail, Relaxed, Size, Steps};
use crate::interrupt::Interrupt;

const STEPS_AMPLE: u64 = 1_000_000;

static NEVER: Interrupt = Interrupt::new();

const AMPLE: Budget<'static> = Budget { steps: STEPS_AMPLE, interrupt: &NEVER };

/// A kind of machine, apart from the others.
struct Column {
    price: f64,
    room: Vec<f64>,
    caps: Vec<u32>,
}

/// Equal pods, apart from the others.
#[derive(Clone)]
struct Row {
    count: u64,
    demand: Vec<f64>,
    kin: usize,
}

/// A covering problem that is easy to change. Caps of one row are what fits and no more than a number of its own, and
/// zero where rows of its kin may not run.
struct Covering {
    rows: Vec<Row>,
    columns: Vec<Column>,
}

impl Covering {
    /// Every row has a size of its own, and unless kins matter a kin of its own.
    fn flat_by(&self, kin_of: impl Fn(usize) -> usize) -> super::Covering {
        let resources = self.columns.iter().map(|column| column.room.len()).max().unwrap_or(0);
        let numbers = || 0..self.rows.len();
        let kins = numbers().map(|k| kin_of(k) + 1).max().unwrap_or(0);
        let mut columns = Columns::with_capacity(self.columns.len(), resources, kins);
        for column in &self.columns {
            let sold = |kin: usize| numbers().any(|k| kin_of(k) == kin && column.caps[k] > 0);
            columns.push(column.price, column.room.iter().copied(), (0..kins).map(sold));
        }
        let size = |k: usize| {
            let held = |column: &&Column| column.caps[k] > 0 && u64::from(column.caps[k]) < fits(column, &self.rows[k]);
            let most = self.columns.iter().find(held).map_or(u32::MAX, |column| column.caps[k]);
            Size { demand: self.rows[k].demand.clone(), most }
        };
        let row = |k: usize| super::Row { count: self.rows[k].count, spare: 0, size: k, kin: kin_of(k) };
        super::Covering { sizes: numbers().map(size).collect(), rows: numbers().map(row).collect(), columns }
    }

    fn flat(&self) -> super::Covering {
        self.flat_by(|k| k)
    }
}

/// How many pods of a row the room of a column holds.
fn fits(column: &Column, row: &Row) -> u64 {
    let fits = column.room.iter().zip(&row.demand).filter(|(_, d)| **d > 0.0).map(|(a, d)| (a / d + 1e-9) as u64);
    fits.min().unwrap_or(u64::MAX)
}

fn relax(problem: &Covering, steps: u64) -> Relaxed {
    super::relax(&problem.flat(), Detail::Fine, Budget { steps, interrupt: &NEVER })
}

fn relax_exactly(problem: &Covering, steps: u64) -> Relaxed {
    super::relax_exactly(&problem.flat(), Budget { steps, interrupt: &NEVER })
}

fn certify(problem: &Covering, duals: &[f64]) -> f64 {
    certify_flat(&problem.flat(), duals)
}

/// A lower bound on the price of any placement, from what each pod of a row is said to be worth.
///
/// Holds for any duals: they are scaled so that no column carries more than its price is worth. Negative ones count
/// as zero, as do those of rows that cannot be covered or that a column of price zero may carry.
fn certify_flat(problem: &super::Covering, duals: &[f64]) -> f64 {
    let scaled = Scaled::new(problem);
    let clean =
        |(&k, unit): (&usize, &f64)| duals.get(k).filter(|dual| dual.is_finite()).map_or(0.0, |d| d.max(0.0) * unit);
    let duals: Vec<f64> = scaled.rows.iter().zip(&scaled.unit).map(clean).collect();
    let mut warm = vec![Warm::default(); scaled.columns.len()];
    let certificate = prove(&scaled, &duals, &mut warm, &mut Steps { used: 0, budget: AMPLE });
    super::worth(problem, &super::proven(&scaled, &certificate))
}

/// The bound that some duals prove, lowered where a column carries more than its price.
fn prove(problem: &Scaled<'_>, duals: &[f64], warm: &mut [Warm], steps: &mut Steps<'_>) -> Certificate {
    let mut knapsack = Knapsack::new(problem);
    let mut repair = Repair::new(duals);
    let mut most = vec![0.0; problem.rows.len()];
    for (column, known) in warm.iter_mut().enumerate() {
        problem.write_most(column, &mut most);
        let offer = Offer { room: problem.room_of(column), most: &most };
        let mut worth = ceiling(problem, offer, duals, &known.prices, &mut knapsack.excess);
        if worth > 1.0 {
            worth = knapsack.solve(problem, offer, duals, known, steps);
        }
        repair.apply(duals, worth, &most, &knapsack.excess);
    }
    repair.certificate(problem)
}

/// Reads `row COUNT : DEMAND...` and `column PRICE : ROOM... : CAP...` lines.
fn covering(text: &str) -> Covering {
    let mut problem = Covering { rows: Vec::new(), columns: Vec::new() };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, rest) = line.split_once(' ').unwrap();
        let parts: Vec<Vec<f64>> =
            rest.split(':').map(|part| part.split_whitespace().map(|x| x.parse().unwrap()).collect()).collect();
        match kind {
            "row" => problem.rows.push(Row { count: parts[0][0] as u64, demand: parts[1].clone(), kin: 0 }),
            _ => problem.columns.push(Column {
                price: parts[0][0],
                room: parts[1].clone(),
                caps: parts[2].iter().map(|&cap| cap as u32).collect(),
            }),
        }
    }
    problem
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-30)
}

/// Checks everything a result promises about itself, and that the bound is as expected.
fn check(problem: &Covering, expected: f64) -> Relaxed {
    let relaxed = relax(problem, STEPS_AMPLE);
    assert!(relaxed.complete);
    assert!(near(relaxed.bound, expected, 1e-7), "bound {} instead of {expected}", relaxed.bound);
    let worth: f64 = problem.rows.iter().zip(&relaxed.duals).map(|(row, dual)| row.count as f64 * dual).sum();
    assert!(near(worth, relaxed.bound, 1e-9), "duals sum to {worth}");
    assert!(near(certify(problem, &relaxed.duals), relaxed.bound, 1e-8));
    check_shares(problem, &relaxed);
    relaxed
}

/// The shares carry every coverable pod, fit their machines, and cost what the bound says.
fn check_shares(problem: &Covering, relaxed: &Relaxed) {
    let mut carried = vec![0.0; problem.rows.len()];
    let mut price = 0.0;
    for share in &relaxed.shares {
        let column = &problem.columns[share.column];
        price += share.machines * column.price.max(0.0);
        for &(k, pods) in &share.pods {
            carried[k] += share.machines * pods;
            assert!(pods <= f64::from(column.caps[k]) * (1.0 + 1e-7));
        }
        for (r, room) in column.room.iter().enumerate() {
            let used: f64 = share.pods.iter().map(|&(k, pods)| pods * problem.rows[k].demand[r]).sum();
            assert!(used <= room.max(0.0) * (1.0 + 1e-7) + 1e-12, "{used} of {room} used");
        }
    }
    for (k, row) in problem.rows.iter().enumerate() {
        if !relaxed.uncoverable.contains(&k) {
            assert!(carried[k] >= row.count as f64 * (1.0 - 1e-7), "row {k}: {} of {}", carried[k], row.count);
        }
    }
    assert!(near(price, relaxed.bound, 1e-7) || price < 1e-12, "shares cost {price}");
}

#[test]
fn one_row_pays_for_the_machines_it_fills() {
    // Three pods fill a machine of price 2, although the room would do for three and a half.
    check(&covering("row 30 : 2 \n column 2 : 7 : 3"), 20.0);
    // The better of two columns by price per pod.
    check(&covering("row 30 : 2 \n column 2 : 7 : 3 \n column 5 : 20 : 10"), 15.0);
    // A single pod pays for a whole machine, whatever more would fit.
    check(&covering("row 1 : 1 \n column 5 : 20 : 20 \n column 1.5 : 1 : 1"), 1.5);
}

#[test]
fn complementary_rows_share_machines() {
    // Processor-heavy and memory-heavy pods: eight of each fill two of the large machines together.
    let problem = covering(
        "row 8 : 2 1
         row 8 : 1 2
         column 3 : 12 12 : 6 6",
    );
    check(&problem, 6.0);
}

#[test]
fn rows_without_columns_are_left_out() {
    let problem = covering(
        "row 4 : 1
         row 5 : 1
         row 0 : 1
         row 6 : 9
         column 1 : 4 : 4 0 4 0
         column 7 : -1 : 9 9 9 9",
    );
    assert_eq!(check(&problem, 1.0).uncoverable, [1, 3]);
    assert_eq!(relax(&covering("row 4 : 1"), STEPS_AMPLE).uncoverable, [0]);
    assert_eq!(relax(&covering("column 4 : 1 : "), STEPS_AMPLE).bound, 0.0);
    assert_eq!(relax(&covering(""), STEPS_AMPLE).bound, 0.0);
}

#[test]
fn free_columns_make_their_rows_worth_nothing() {
    let problem = covering(
        "row 4 : 1
         row 6 : 2
         column 0 : 3 : 3 0
         column 1 : 6 : 6 3",
    );
    let relaxed = check(&problem, 2.0);
    assert_eq!(relaxed.duals[0], 0.0);
    assert!(near(certify(&problem, &[100.0, 1.0]), 2.0, 1e-8));
    check(&covering("row 4 : 1 \n column 0 : 3 : 3"), 0.0);
}

#[test]
fn pods_without_demand_are_bounded_by_caps() {
    check(&covering("row 12 : 0 0 \n column 2 : 5 5 : 4"), 6.0);
    check(&covering("row 12 : \n column 2 : : 4"), 6.0);
}

#[test]
fn units_do_not_matter() {
    let plain = covering("row 7 : 2 1 \n row 9 : 1 3 \n column 3 : 12 12 : 6 4 \n column 2 : 4 16 : 2 4");
    let expected = relax(&plain, STEPS_AMPLE).bound;
    for (first, second, price) in [(1e9, 1.0, 1.0), (1e-3, 1e12, 1e-6), (1e6, 1e-6, 1e9)] {
        let mut scaled = covering("row 7 : 2 1 \n row 9 : 1 3 \n column 3 : 12 12 : 6 4 \n column 2 : 4 16 : 2 4");
        for values in scaled.rows.iter_mut().map(|row| &mut row.demand) {
            (values[0], values[1]) = (values[0] * first, values[1] * second);
        }
        for column in &mut scaled.columns {
            (column.room[0], column.room[1]) = (column.room[0] * first, column.room[1] * second);
            column.price *= price;
        }
        check(&scaled, expected * price);
    }
}

/// A small deterministic source of numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// A random problem with whole numbers, hence many ties; caps are what fits, or less, or nothing.
fn random(dice: &mut Dice, rows_max: u64, columns_max: u64, count_max: u64) -> Covering {
    let (rows, columns) = (1 + dice.below(rows_max), 1 + dice.below(columns_max));
    let resources = 1 + dice.below(3);
    let mut problem = Covering { rows: Vec::new(), columns: Vec::new() };
    for _ in 0..rows {
        let demand = (0..resources).map(|_| dice.below(5) as f64).collect();
        problem.rows.push(Row { count: 1 + dice.below(count_max), demand, kin: dice.below(3) as usize });
    }
    // Those that need nothing are held by caps alone.
    let most: Vec<u64> = (0..rows).map(|_| if dice.below(4) == 0 { 2 } else { 9 + dice.below(20) }).collect();
    for _ in 0..columns {
        let room: Vec<f64> = (0..resources).map(|_| dice.below(16) as f64).collect();
        let mut column = Column { price: 1.0 + dice.below(12) as f64, room, caps: Vec::new() };
        for (row, most) in problem.rows.iter().zip(&most) {
            let fitting = fits(&column, row).min(*most) as u32;
            column.caps.push(if dice.below(6) == 0 { 0 } else { fitting });
        }
        problem.columns.push(column);
    }
    problem
}

/// The optimum of the relaxation by a full tableau on its dual, which starts feasible: maximise the worth of all
/// pods such that for every column some resource prices and cap prices explain its price.
fn slow_optimum(problem: &Covering, uncoverable: &[usize]) -> f64 {
    let rows: Vec<usize> = (0..problem.rows.len()).filter(|k| !uncoverable.contains(k)).collect();
    let (m, n) = (rows.len(), problem.columns.len());
    let resources = problem.rows[0].demand.len();
    let (w, v) = (m, m + n * resources);
    let width = v + n * m;
    let mut constraints: Vec<(Vec<f64>, f64)> = Vec::new();
    for (j, column) in problem.columns.iter().enumerate() {
        let mut pays = vec![0.0; width];
        for r in 0..resources {
            pays[w + j * resources + r] = column.room[r].max(0.0);
        }
        for (i, &k) in rows.iter().enumerate() {
            let cap = u64::from(column.caps[k]).min(problem.rows[k].count) as f64;
            pays[v + j * m + i] = cap;
            if cap > 0.0 {
                let mut worth = vec![0.0; width];
                worth[i] = 1.0;
                worth[v + j * m + i] = -1.0;
                for r in 0..resources {
                    worth[w + j * resources + r] = -problem.rows[k].demand[r];
                }
                constraints.push((worth, 0.0));
            }
        }
        constraints.push((pays, column.price));
    }
    let mut objective = vec![0.0; width];
    for (i, &k) in rows.iter().enumerate() {
        objective[i] = problem.rows[k].count as f64;
    }
    maximise(&objective, &constraints)
}

/// Textbook simplex method with the lowest-index rule: `max c x` with `a x <= b`, `x >= 0` and `b >= 0`.
fn maximise(objective: &[f64], constraints: &[(Vec<f64>, f64)]) -> f64 {
    let (width, height) = (objective.len(), constraints.len());
    let mut table = vec![vec![0.0; width + height + 1]; height + 1];
    for (i, (row, limit)) in constraints.iter().enumerate() {
        table[i][..width].copy_from_slice(row);
        table[i][width + i] = 1.0;
        table[i][width + height] = *limit;
    }
    table[height][..width].copy_from_slice(objective);
    let mut basis: Vec<usize> = (width..width + height).collect();
    while let Some(enter) = (0..width + height).find(|&x| table[height][x] > 1e-9) {
        let ratio = |i: usize| table[i][width + height] / table[i][enter];
        let leave = (0..height)
            .filter(|&i| table[i][enter] > 1e-9)
            .min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)).then(basis[a].cmp(&basis[b])))
            .expect("bounded");
        let scale = table[leave][enter];
        let pivot: Vec<f64> = table[leave].iter().map(|x| x / scale).collect();
        for row in &mut table {
            let factor = row[enter];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
        table[leave] = pivot;
        basis[leave] = enter;
    }
    -table[height][width + height]
}

#[test]
fn random_problems_agree_with_the_slow_method() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..600 {
        let problem = random(&mut dice, 5, 5, 30);
        let uncoverable = relax(&problem, STEPS_AMPLE).uncoverable;
        check(&problem, slow_optimum(&problem, &uncoverable));
    }
}

#[test]
fn any_budget_and_any_duals_give_a_bound() {
    let mut dice = Dice(77);
    for _ in 0..60 {
        let problem = random(&mut dice, 6, 6, 30);
        let full = relax(&problem, STEPS_AMPLE);
        for steps in (0..40).chain([60, 100, 200]) {
            let part = relax(&problem, steps);
            assert!(part.steps <= steps);
            assert!(part.bound <= full.bound * (1.0 + 1e-8));
            assert!(!part.complete || near(part.bound, full.bound, 1e-7));
        }
        for _ in 0..10 {
            let duals: Vec<f64> = problem.rows.iter().map(|_| dice.below(100) as f64 - 10.0).collect();
            assert!(certify(&problem, &duals) <= full.bound * (1.0 + 1e-8));
        }
    }
}

/// The cheapest whole machines for at most six pods, by trying every way to split them.
fn cheapest_whole(problem: &Covering) -> Option<f64> {
    let pods: Vec<usize> =
        problem.rows.iter().enumerate().flat_map(|(k, row)| std::iter::repeat_n(k, row.count as usize)).collect();
    let fits = |column: &Column, set: usize| {
        let held = |k: usize| (0..pods.len()).filter(|p| set >> p & 1 == 1 && pods[*p] == k).count();
        let counts: Vec<usize> = (0..problem.rows.len()).map(held).collect();
        let used = |r: usize| counts.iter().zip(&problem.rows).map(|(&n, row)| n as f64 * row.demand[r]).sum::<f64>();
        counts.iter().zip(&column.caps).all(|(&n, &cap)| n <= cap as usize)
            && column.room.iter().enumerate().all(|(r, &room)| used(r) <= room)
    };
    let all = 1_usize << pods.len();
    let mut best = vec![f64::INFINITY; all];
    best[0] = 0.0;
    for set in 1..all {
        let mut part = set;
        while part > 0 {
            for column in problem.columns.iter().filter(|column| fits(column, part)) {
                best[set] = best[set].min(best[set ^ part] + column.price);
            }
            part = (part - 1) & set;
        }
    }
    best[all - 1].is_finite().then_some(best[all - 1])
}

#[test]
fn no_whole_placement_is_cheaper() {
    let mut dice = Dice(4242);
    let mut tight = 0;
    for _ in 0..400 {
        let problem = random(&mut dice, 3, 4, 2);
        let Some(cheapest) = cheapest_whole(&problem) else { continue };
        for steps in [0, 3, 10, STEPS_AMPLE] {
            let relaxed = relax(&problem, steps);
            assert!(relaxed.bound <= cheapest, "{} above {cheapest}", relaxed.bound);
            tight += u32::from(steps == STEPS_AMPLE && relaxed.bound > 0.999 * cheapest);
        }
    }
    assert!(tight > 50, "only {tight} bounds are tight");
}

#[test]
fn order_of_rows_and_columns_does_not_matter() {
    let mut dice = Dice(31337);
    for _ in 0..100 {
        let mut problem = random(&mut dice, 8, 8, 50);
        let before = relax(&problem, STEPS_AMPLE);
        problem.rows.reverse();
        problem.columns.reverse();
        problem.columns.iter_mut().for_each(|column| column.caps.reverse());
        let after = relax(&problem, STEPS_AMPLE);
        assert!(near(before.bound, after.bound, 2e-9), "{} then {}", before.bound, after.bound);
    }
}

#[test]
fn equal_rows_and_columns_do_not_make_it_circle() {
    let (rows, columns) = (40, 60);
    let mut problem = Covering { rows: Vec::new(), columns: Vec::new() };
    for k in 0..rows {
        problem.rows.push(Row { count: 6, demand: vec![1.0 + f64::from(k % 2), 2.0 - f64::from(k % 2), 1.0], kin: 0 });
    }
    for j in 0..columns {
        let size = f64::from(1 << (j % 4));
        let caps = (0..rows).map(|_| (6.0 * size / 2.0) as u32).collect();
        problem.columns.push(Column { price: size, room: vec![6.0 * size, 6.0 * size, 100.0], caps });
    }
    // Half the pods of each kind: 120 (1, 2) and 120 (2, 1) fill 60 units of (6, 6).
    let relaxed = check(&problem, 60.0);
    assert!(relaxed.steps < 10_000, "{} steps", relaxed.steps);
}

#[test]
fn rows_that_run_out_together_do_not_stall_it() {
    // Every machine takes all pods of many rows, so one pattern empties all rows at once.
    let row = |k: i32| Row { count: 3, demand: vec![1.0 + f64::from(k % 7), 3.0 + f64::from(k % 5)], kin: 0 };
    let rows: Vec<Row> = (0..60).map(row).collect();
    let columns = (1..20).map(|size| {
        let room = vec![40.0 * f64::from(size), 50.0 * f64::from(size)];
        let fits = |row: &Row| (room[0] / row.demand[0]).min(room[1] / row.demand[1]).min(3.0) as u32;
        Column { price: f64::from(size), caps: rows.iter().map(fits).collect(), room }
    });
    let columns = columns.collect();
    let problem = Covering { rows, columns };
    // The second resource is short: 900 over 50 per unit of price.
    check(&problem, 18.0);
}

#[test]
fn many_rows_are_bounded_by_families_soundly() {
    let mut dice = Dice(77);
    let (mut coarse, mut exact) = (0.0, 0.0);
    for _ in 0..40 {
        let mut problem = random(&mut dice, 60, 20, 30);
        // Sizes that no two rows share, and rows of one kin that run on the same machines.
        let alike = problem.rows.len();
        problem.rows.iter_mut().enumerate().for_each(|(k, row)| row.kin = k);
        for k in 0..120 {
            let like = k % alike;
            let grown = 1.0 + dice.below(100) as f64 / 400.0;
            let demand: Vec<f64> = problem.rows[like].demand.iter().map(|amount| amount * grown).collect();
            problem.rows.push(Row { count: 1 + dice.below(9), demand, kin: like });
            for column in &mut problem.columns {
                column.caps.push(column.caps[like]);
            }
        }
        let by_families = super::relax(&problem.flat_by(|k| problem.rows[k].kin), Detail::Fine, AMPLE);
        let one_by_one = relax_exactly(&problem, STEPS_AMPLE);
        assert!(by_families.bound <= one_by_one.bound * (1.0 + 1e-7), "{} {}", by_families.bound, one_by_one.bound);
        assert!(near(by_families.bound, certify(&problem, &by_families.duals), 1e-6), "its duals prove it");
        coarse += by_families.bound;
        exact += one_by_one.bound;
    }
    assert!(coarse > 0.97 * exact, "little is lost: {coarse} of {exact}");
}

#[test]
fn families_hold_every_row_once_and_never_mix_what_differs() {
    let mut dice = Dice(5);
    for most in [1, 3, 10, 1000] {
        let problem = random(&mut dice, 90, 3, 9);
        let kins: Vec<usize> = (0..3).collect();
        let found = super::families(&problem.flat_by(|k| problem.rows[k].kin), &kins, most);
        let mut rows: Vec<usize> = found.iter().flatten().copied().collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..problem.rows.len()).collect::<Vec<usize>>());
        assert!(found.len() <= most.max(3), "kins are never merged, and more families than asked for never made");
        assert!(
            found.iter().all(|family| family.iter().all(|row| problem.rows[*row].kin == problem.rows[family[0]].kin))
        );
    }
}
