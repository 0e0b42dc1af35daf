//! `cargo xtask compatibility`: which rows of the ledger a test proves, written to `docs/compatibility.md`.
//!
//! A row counts as covered when a test names its ID. In Rust that is a function with a test attribute, whose name, body
//! or the comments and attributes directly above it hold the ID; in a fixture file it is a case whose `rows:` list holds
//! it. Ranges such as `API-01..04` are not expanded: a test says in full what it proves. A comment `DIFFERS:` with a
//! reason marks the rows of that test, or only those that the reason itself names, as deliberate differences.

mod groups;
mod rust;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::rows::{self, Row};

/// Where the page is written, relative to the root of the repository.
pub(crate) const PAGE: &str = "docs/compatibility.md";

/// Writes the page of compatibility rows and the tests that prove them.
#[derive(Debug, clap::Args)]
pub(crate) struct CompatibilityArgs {
    /// Write nothing; fail if the committed page is not what would be written.
    #[arg(long)]
    pub(crate) check: bool,
}

/// Runs `cargo xtask compatibility` in the repository at `root`.
pub(crate) fn run(root: &Path, args: &CompatibilityArgs) -> Result<()> {
    let rows = rows::read(root)?;
    let page = render(&rows, &gather(root, &rows)?);
    let path = root.join(PAGE);
    if !args.check {
        return fs::write(&path, page).with_context(|| format!("cannot write `{PAGE}`"));
    }
    let committed = fs::read_to_string(&path).with_context(|| format!("cannot read `{PAGE}`"))?;
    if committed != page {
        bail!("`{PAGE}` is stale; run `cargo xtask compatibility` and commit the result");
    }
    Ok(())
}

/// A test or fixture case as a scanner found it.
#[derive(Debug, Default, PartialEq, Eq)]
struct FoundTest {
    /// As the page shows it: `path::function` or `path: case`.
    name: String,
    /// Row IDs it names, known or not, with the line.
    mentions: Vec<(String, usize)>,
    /// Reasons given after `DIFFERS:`, with the line.
    differs: Vec<(String, usize)>,
}

/// What the tests say about the rows.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    tests: BTreeMap<String, BTreeSet<String>>,
    differences: BTreeMap<String, BTreeSet<Difference>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    reason: String,
    test: String,
}

impl Evidence {
    /// The tests that name a row, in order.
    pub(crate) fn tests(&self, id: &str) -> Vec<&str> {
        self.tests.get(id).into_iter().flatten().map(String::as_str).collect()
    }
}

/// The IDs of the ledger, for recognising them in a text.
struct KnownRows<'rows> {
    ids: BTreeSet<&'rows str>,
    groups: BTreeSet<&'rows str>,
}

impl<'rows> KnownRows<'rows> {
    fn new(rows: &'rows [Row]) -> Self {
        Self { ids: rows.iter().map(|row| row.id.as_str()).collect(), groups: rows.iter().map(Row::group).collect() }
    }

    /// Words of a known group with a number, whether the ledger has that number or not.
    fn mentions<'text>(&self, text: &'text str) -> impl Iterator<Item = &'text str> {
        text.split(|letter: char| !(letter.is_alphanumeric() || letter == '-' || letter == '_'))
            .map(|word| word.trim_matches('-'))
            .filter(|word| rows::group_of(word).is_some_and(|group| self.groups.contains(group)))
    }
}

/// Reads every test of the repository at `root`; a test that names a row the ledger does not have is an error.
pub(crate) fn gather(root: &Path, rows: &[Row]) -> Result<Evidence> {
    let known = KnownRows::new(rows);
    let mut evidence = Evidence::default();
    let mut faults = Vec::new();
    for (folder, extension) in [("crates", "rs"), ("e2e", "rs"), ("e2e/fixtures", "yaml")] {
        for path in files(&root.join(folder), extension)? {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string().replace('\\', "/");
            let tests = match extension {
                "rs" => Ok(rust::tests(&shown, &text, &known)),
                _ => yaml::cases(&shown, &text),
            };
            match tests {
                Ok(tests) => tests.into_iter().for_each(|test| evidence.add(&shown, test, &known, &mut faults)),
                Err(fault) => faults.push(fault.to_string()),
            }
        }
    }
    if !faults.is_empty() {
        bail!("tests name rows that cannot be resolved:\n  {}", faults.join("\n  "));
    }
    Ok(evidence)
}

impl Evidence {
    fn add(&mut self, file: &str, test: FoundTest, known: &KnownRows<'_>, faults: &mut Vec<String>) {
        let FoundTest { name, mentions, differs } = test;
        let mut named = BTreeSet::new();
        for (id, line) in mentions {
            if known.ids.contains(id.as_str()) {
                self.tests.entry(id.clone()).or_default().insert(name.clone());
                named.insert(id);
            } else {
                faults.push(format!("{file}:{line}: `{id}` is not a row of `{}`", rows::LEDGER));
            }
        }
        for (reason, line) in differs {
            let within: BTreeSet<String> = known.mentions(&reason).map(str::to_owned).collect();
            let meant = if within.is_empty() { &named } else { &within };
            if reason.is_empty() {
                faults.push(format!("{file}:{line}: `DIFFERS:` without a reason"));
            } else if meant.is_empty() {
                faults.push(format!("{file}:{line}: `DIFFERS:` in a test that names no row"));
            }
            for id in meant {
                let difference = Difference { reason: reason.clone(), test: name.clone() };
                self.differences.entry(id.clone()).or_default().insert(difference);
            }
        }
    }
}

/// All files with the extension below a folder, sorted; a folder that does not exist has none.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(files(&path, extension)?);
        } else if path.is_file() && path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Collects the reasons of `DIFFERS:` comments. Comment lines that follow directly continue the reason; an empty one, or
/// code, ends it.
#[derive(Default)]
struct Reasons {
    found: Vec<(String, usize)>,
    open: bool,
}

impl Reasons {
    /// Takes the next line: the text of its comment if it is nothing but one, or `None`.
    fn read(&mut self, comment: Option<&str>, line: usize) {
        let text = comment.map_or("", str::trim);
        if let Some((_, reason)) = text.split_once("DIFFERS:") {
            self.found.push((reason.trim().to_owned(), line));
            self.open = true;
        } else if text.is_empty() {
            self.open = false;
        } else if self.open
            && let Some((reason, _)) = self.found.last_mut()
        {
            reason.push(' ');
            reason.push_str(text);
        }
    }
}

const INTRODUCTION: &str = "
# Compatibility

<!-- Written by `cargo xtask compatibility`; edits are overwritten. -->

Every row is one statement about how the reference behaves, with the tests that prove it here. The rows are kept in
`docs/rows.tsv`; a test proves a row by naming its ID. A row without a test (–) counts against us, whether the code does
what it says or not. A test may also prove that we differ on purpose: those rows stand in a section of their own, with
the reason.
";

/// Renders the page; its first line is the share of covered rows.
fn render(rows: &[Row], evidence: &Evidence) -> String {
    let all: Vec<&Row> = rows.iter().collect();
    let covered = covered(&all, evidence);
    let differing = rows.iter().filter(|row| evidence.differences.contains_key(&row.id)).count();
    let mut page = format!(
        "{} % of {} rows are covered by a test ({covered} rows; {differing} of them differ on purpose).\n{INTRODUCTION}",
        percentage(covered, rows.len()),
        rows.len()
    );
    let mut groups: Vec<(&str, Vec<&Row>)> = Vec::new();
    let mut parts: BTreeMap<u8, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        parts.entry(row.part).or_default().push(row);
        match groups.iter_mut().find(|(group, _)| *group == row.group()) {
            Some((_, members)) => members.push(row),
            None => groups.push((row.group(), vec![row])),
        }
    }
    let by_group = groups.iter().map(|(group, members)| {
        let label = format!("[{group}](#{}) {}", group.to_lowercase(), groups::meaning(group));
        (label.trim_end().to_owned(), members.as_slice())
    });
    summary(&mut page, "Summary", "group", by_group, evidence);
    let by_part = parts.iter().map(|(part, members)| (part.to_string(), members.as_slice()));
    summary(&mut page, "By the part of the roadmap in which a row falls due", "part", by_part, evidence);
    differences(&mut page, rows, evidence);
    for (group, members) in &groups {
        group_table(&mut page, group, members, evidence);
    }
    page
}

fn covered(rows: &[&Row], evidence: &Evidence) -> usize {
    rows.iter().filter(|row| evidence.tests.contains_key(&row.id)).count()
}

/// One decimal, rounded down, so that 100.0 means all.
fn percentage(covered: usize, total: usize) -> String {
    let per_mille = (covered * 1000).checked_div(total).unwrap_or(0);
    format!("{}.{}", per_mille / 10, per_mille % 10)
}

fn summary<'rows>(
    page: &mut String,
    title: &str,
    column: &str,
    lines: impl Iterator<Item = (String, &'rows [&'rows Row])>,
    evidence: &Evidence,
) {
    line(page, format_args!("\n## {title}\n\n| {column} | rows | with test | % |\n|---|---:|---:|---:|"));
    for (label, members) in lines {
        let covered = covered(members, evidence);
        let share = percentage(covered, members.len());
        line(page, format_args!("| {label} | {} | {covered} | {share} |", members.len()));
    }
}

fn differences(page: &mut String, rows: &[Row], evidence: &Evidence) {
    line(page, format_args!("\n## Differences on purpose\n"));
    if evidence.differences.is_empty() {
        return line(page, format_args!("None."));
    }
    line(page, format_args!("| ID | the reference | ours, and why | test |\n|---|---|---|---|"));
    for row in rows {
        for Difference { reason, test } in evidence.differences.get(&row.id).into_iter().flatten() {
            line(page, format_args!("| {} | {} | {} | `{test}` |", row.id, cell(&row.title), cell(reason)));
        }
    }
}

fn group_table(page: &mut String, group: &str, rows: &[&Row], evidence: &Evidence) {
    line(page, format_args!("\n## {group}\n\n| ID | what | tests |\n|---|---|---|"));
    for row in rows {
        let tests: Vec<String> = evidence.tests(&row.id).iter().map(|test| format!("`{}`", cell(test))).collect();
        let tests = if tests.is_empty() { "–".to_owned() } else { tests.join("<br>") };
        line(page, format_args!("| {} | {} | {tests} |", row.id, cell(&row.title)));
    }
}

/// Writing to a string cannot fail, so the answer is dropped here once.
fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{text}");
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Vec<Row> {
        rows::parse("id\tsource\tpart\ttitle\nAPI-01\tcore\t1\tfirst\nAPI-02\tcore\t1\ta|b\nAWS-NC-01\taws\t6\tthird\n")
            .unwrap()
    }

    fn evidence_of(tests: Vec<FoundTest>) -> (Evidence, Vec<String>) {
        let rows = ledger();
        let (mut evidence, mut faults) = (Evidence::default(), Vec::new());
        for test in tests {
            evidence.add("a.rs", test, &KnownRows::new(&rows), &mut faults);
        }
        (evidence, faults)
    }

    fn found(name: &str, mentions: &[&str], differs: &[&str]) -> FoundTest {
        let numbered = |texts: &[&str]| texts.iter().map(|text| ((*text).to_owned(), 4)).collect();
        FoundTest { name: name.to_owned(), mentions: numbered(mentions), differs: numbered(differs) }
    }

    #[test]
    fn only_whole_words_of_known_groups_are_mentions() {
        let rows = ledger();
        let known = KnownRows::new(&rows);
        let words: Vec<_> = known
            .mentions("API-01, (AWS-NC-01) API-77; NC-01 XAPI-01 API-1 CVE-2020 API-02-x API-02- API-01..02")
            .collect();
        assert_eq!(words, ["API-01", "AWS-NC-01", "API-77", "API-02", "API-01"]);
    }

    #[test]
    fn the_page_starts_with_the_share_and_lists_every_row() {
        let (evidence, faults) = evidence_of(vec![
            found("a.rs::one", &["API-02"], &["API-02 is better so"]),
            found("a.rs::two", &["API-02", "AWS-NC-01"], &[]),
        ]);
        assert_eq!(faults, [""; 0]);
        let page = render(&ledger(), &evidence);
        assert!(page.starts_with("66.6 % of 3 rows are covered by a test (2 rows; 1 of them differ on purpose).\n"));
        for expected in [
            "| [API](#api) resources and their validation | 2 | 1 | 50.0 |",
            "| 1 | 2 | 1 | 50.0 |",
            "| API-02 | a\\|b | API-02 is better so | `a.rs::one` |",
            "| API-01 | first | – |",
            "| API-02 | a\\|b | `a.rs::one`<br>`a.rs::two` |",
            "| AWS-NC-01 | third | `a.rs::two` |",
        ] {
            assert!(page.lines().any(|line| line == expected), "`{expected}` is missing in\n{page}");
        }
    }

    #[test]
    fn a_reason_marks_the_rows_it_names_or_else_all_of_the_test() {
        let (evidence, _) = evidence_of(vec![
            found("a.rs::one", &["API-01", "API-02"], &["API-02 for speed"]),
            found("a.rs::two", &["AWS-NC-01"], &["for thrift"]),
        ]);
        assert_eq!(evidence.differences.keys().collect::<Vec<_>>(), ["API-02", "AWS-NC-01"]);
    }

    #[test]
    fn unknown_rows_and_empty_reasons_are_faults() {
        let (_, faults) = evidence_of(vec![
            found("a.rs::one", &["API-99"], &[]),
            found("a.rs::two", &["API-01"], &[""]),
            found("a.rs::three", &[], &["for fun"]),
        ]);
        assert_eq!(
            faults,
            [
                "a.rs:4: `API-99` is not a row of `docs/rows.tsv`",
                "a.rs:4: `DIFFERS:` without a reason",
                "a.rs:4: `DIFFERS:` in a test that names no row",
            ]
        );
    }

    #[test]
    fn a_share_is_rounded_down() {
        assert_eq!(percentage(727, 728), "99.8");
        assert_eq!(percentage(9999, 10000), "99.9");
        assert_eq!(percentage(5, 5), "100.0");
        assert_eq!(percentage(0, 0), "0.0");
    }

    #[test]
    fn a_stale_page_fails_the_check_and_names_the_command() {
        let root = std::env::temp_dir().join(format!("compatibility-{}", std::process::id()));
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::create_dir_all(root.join("crates/one/src")).unwrap();
        fs::write(root.join(rows::LEDGER), "id\tsource\tpart\ttitle\nAPI-01\tcore\t1\tfirst\n").unwrap();
        let source = root.join("crates/one/src/lib.rs");
        fs::write(&source, "/// API-01\n#[test]\nfn proves() {}\n").unwrap();
        run(&root, &CompatibilityArgs { check: false }).unwrap();
        run(&root, &CompatibilityArgs { check: true }).unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        assert!(page.contains("| API-01 | first | `crates/one/src/lib.rs::proves` |"), "{page}");
        fs::write(&source, "fn proves() {}\n").unwrap();
        let fault = run(&root, &CompatibilityArgs { check: true }).unwrap_err().to_string();
        assert!(fault.contains("cargo xtask compatibility"), "{fault}");
        fs::write(&source, "#[test]\nfn api_99_is_no_row() {}\n").unwrap();
        let fault = run(&root, &CompatibilityArgs { check: true }).unwrap_err().to_string();
        assert!(fault.contains("crates/one/src/lib.rs:2: `API-99` is not a row"), "{fault}");
        fs::remove_dir_all(&root).unwrap();
    }
}
