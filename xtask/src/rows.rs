//! The ledger of compatibility rows, `docs/rows.tsv`, and `cargo xtask rows`, which draws some of them for a spot check.
//!
//! A row is one testable statement about behaviour with an ID that never changes, such as `API-12`. Tests name the rows
//! they prove; [`crate::compatibility`] joins both.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::compatibility;

/// Where the ledger lives, relative to the root of the repository.
pub(crate) const LEDGER: &str = "docs/rows.tsv";

const HEADER: &str = "id\tsource\tpart\ttitle";
const SOURCES: [&str; 3] = ["core", "core-1.15", "aws"];

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Group and two digits: `API-12`, `AWS-NC-04`.
    pub(crate) id: String,
    /// The part of the roadmap in which the row falls due.
    pub(crate) part: u8,
    /// What has to hold, in a few words.
    pub(crate) title: String,
}

impl Row {
    /// The ID without its number: `AWS-NC` for `AWS-NC-04`.
    pub(crate) fn group(&self) -> &str {
        group_of(&self.id).unwrap_or(&self.id)
    }
}

/// Reads the ledger from the repository at `root`.
pub(crate) fn read(root: &Path) -> Result<Vec<Row>> {
    let text = fs::read_to_string(root.join(LEDGER)).with_context(|| format!("cannot read `{LEDGER}`"))?;
    parse(&text)
}

/// Parses a ledger; every fault names its line.
pub(crate) fn parse(text: &str) -> Result<Vec<Row>> {
    let mut lines = text.lines();
    ensure!(lines.next() == Some(HEADER), "`{LEDGER}`: the first line must be the header `{HEADER}`");
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for (index, line) in lines.enumerate() {
        let row = parse_row(line).with_context(|| format!("`{LEDGER}` line {}", index + 2))?;
        ensure!(seen.insert(row.id.clone()), "`{LEDGER}` line {}: `{}` occurs twice", index + 2, row.id);
        rows.push(row);
    }
    Ok(rows)
}

fn parse_row(line: &str) -> Result<Row> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [id, source, part, title] = fields[..] else {
        bail!("four fields separated by tabs are wanted, {} were found", fields.len());
    };
    ensure!(group_of(id).is_some(), "`{id}` is not an ID such as `API-12`");
    ensure!(SOURCES.contains(&source), "source `{source}` is none of {SOURCES:?}");
    let part: u8 = part.parse().with_context(|| format!("part `{part}` is not a number"))?;
    ensure!((1..=8).contains(&part), "part {part} is not between 1 and 8");
    ensure!(!title.trim().is_empty(), "the title is empty");
    Ok(Row { id: id.to_owned(), part, title: title.to_owned() })
}

/// The group of something that has the shape of a row ID, known or not: letters, then two or more digits.
pub(crate) fn group_of(id: &str) -> Option<&str> {
    let (group, number) = id.rsplit_once('-')?;
    let shaped = number.len() >= 2
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && group.starts_with(|first: char| first.is_ascii_uppercase())
        && group.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-');
    shaped.then_some(group)
}

/// Draws rows of the compatibility ledger for a spot check; the same seed draws the same rows.
#[derive(Debug, clap::Args)]
pub(crate) struct RowsArgs {
    /// How many rows to draw.
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) draw: usize,
    /// The seed of the draw.
    #[arg(long, value_name = "N")]
    pub(crate) seed: u64,
    /// Only rows of these groups; `AWS` stands for all groups that begin with `AWS-`.
    #[arg(long, value_delimiter = ',', value_name = "GROUP")]
    pub(crate) group: Vec<String>,
    /// Only rows that fall due in these parts of the roadmap.
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    pub(crate) part: Vec<u8>,
    /// Only rows that a test names.
    #[arg(long)]
    pub(crate) tested: bool,
}

/// Runs `cargo xtask rows` in the repository at `root`.
pub(crate) fn run(root: &Path, args: &RowsArgs) -> Result<()> {
    let rows = read(root)?;
    let evidence = compatibility::gather(root, &rows)?;
    let pool = select(&rows, args, |row| !evidence.tests(&row.id).is_empty())?;
    let drawn = draw(&pool, args.draw, args.seed);
    let mut out = io::stdout().lock();
    for row in &drawn {
        writeln!(out, "{}  {}", row.id, row.title)?;
        let tests = evidence.tests(&row.id);
        if tests.is_empty() {
            writeln!(out, "    no test")?;
        }
        for test in tests {
            writeln!(out, "    {test}")?;
        }
    }
    writeln!(out, "{} of {} rows drawn with seed {}", drawn.len(), pool.len(), args.seed)?;
    Ok(())
}

fn select<'rows>(rows: &'rows [Row], args: &RowsArgs, tested: impl Fn(&Row) -> bool) -> Result<Vec<&'rows Row>> {
    for wanted in &args.group {
        let known = rows.iter().any(|row| in_group(row, wanted));
        ensure!(known, "no row of `{LEDGER}` belongs to group `{wanted}`");
    }
    let selected = rows
        .iter()
        .filter(|row| args.group.is_empty() || args.group.iter().any(|wanted| in_group(row, wanted)))
        .filter(|row| args.part.is_empty() || args.part.contains(&row.part))
        .filter(|row| !args.tested || tested(row));
    Ok(selected.collect())
}

fn in_group(row: &Row, wanted: &str) -> bool {
    row.group().strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Takes up to `count` different rows, in the order drawn: the first steps of a Fisher-Yates shuffle.
fn draw<'rows>(pool: &[&'rows Row], count: usize, seed: u64) -> Vec<&'rows Row> {
    let mut pool = pool.to_vec();
    let mut random = SplitMix64(seed);
    let count = count.min(pool.len());
    for taken in 0..count {
        let other = taken + random.below(pool.len() - taken);
        pool.swap(taken, other);
    }
    pool.truncate(count);
    pool
}

/// The generator of Steele, Lea and Flood: tiny, well mixed, and the same for ever, which a dependency does not promise.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`. The bias of the remainder is far below what a spot check could notice.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEDGER_TEXT: &str = "id\tsource\tpart\ttitle
API-01\tcore\t1\tfirst
API-02\tcore\t4\tsecond
AWS-NC-01\taws\t1\tthird
AWS-NC-02\taws\t6\tfourth
E2E-01\tcore-1.15\t5\tfifth
";

    fn args(draw: usize, group: &[&str]) -> RowsArgs {
        RowsArgs {
            draw,
            seed: 7,
            group: group.iter().map(|name| (*name).to_owned()).collect(),
            part: vec![],
            tested: false,
        }
    }

    fn ids(rows: &[&Row]) -> Vec<String> {
        rows.iter().map(|row| row.id.clone()).collect()
    }

    #[test]
    fn rows_know_their_group() {
        let rows = parse(LEDGER_TEXT).unwrap();
        let groups: Vec<_> = rows.iter().map(Row::group).collect();
        assert_eq!(groups, ["API", "API", "AWS-NC", "AWS-NC", "E2E"]);
    }

    #[test]
    fn faults_name_the_line() {
        let fault = |line: &str| format!("{:#}", parse(&format!("{HEADER}\n{line}\n")).unwrap_err());
        assert!(fault("API-1\tcore\t1\tx").contains("line 2: `API-1` is not an ID"));
        assert!(fault("API-01\telsewhere\t1\tx").contains("source `elsewhere`"));
        assert!(fault("API-01\tcore\t9\tx").contains("part 9"));
        assert!(fault("API-01\tcore\t1").contains("four fields"));
        assert!(fault("API-01\tcore\t1\t ").contains("title is empty"));
        assert!(fault("API-01\tcore\t1\tx\nAPI-01\tcore\t1\ty").contains("line 3: `API-01` occurs twice"));
        assert!(parse("").is_err());
    }

    #[test]
    fn selection_is_by_group_part_and_test() {
        let rows = parse(LEDGER_TEXT).unwrap();
        let all = |args: &RowsArgs| ids(&select(&rows, args, |row| row.id == "API-02").unwrap());
        assert_eq!(all(&args(9, &["AWS"])), ["AWS-NC-01", "AWS-NC-02"]);
        assert_eq!(all(&args(9, &["API", "E2E"])), ["API-01", "API-02", "E2E-01"]);
        assert_eq!(all(&RowsArgs { part: vec![1], ..args(9, &[]) }), ["API-01", "AWS-NC-01"]);
        assert_eq!(all(&RowsArgs { tested: true, ..args(9, &[]) }), ["API-02"]);
        assert!(select(&rows, &args(9, &["AP"]), |_| true).is_err());
    }

    #[test]
    fn one_seed_is_one_draw_without_repetition() {
        let rows = parse(LEDGER_TEXT).unwrap();
        let pool: Vec<&Row> = rows.iter().collect();
        assert_eq!(ids(&draw(&pool, 3, 7)), ids(&draw(&pool, 3, 7)));
        let mut everything = ids(&draw(&pool, 99, 7));
        everything.sort();
        assert_eq!(everything, ids(&pool));
        let orders: BTreeSet<_> = (0..50).map(|seed| ids(&draw(&pool, 5, seed))).collect();
        assert!(orders.len() > 20, "fifty seeds gave only {} orders", orders.len());
    }

    #[test]
    fn the_generator_matches_its_published_sequence() {
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
