//! Reads the dependency table out of a page.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail, ensure};

/// The first cells of the table's header; how it is found in the page.
const HEADER: [&str; 4] = ["crate", "what lives there", "may use", "will never know"];
/// What a row says of a crate that only joins others.
const ANYTHING: &str = "what it wires";

/// What one crate is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The crate.
    pub(super) name: String,
    /// The crates of the workspace it may use.
    pub(super) may_use: MayUse,
    /// Whether the row announces a crate of a later part, which need not exist.
    pub(super) is_planned: bool,
}

/// The crates of the workspace that a crate may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MayUse {
    /// All of them: it is a program that joins the others.
    Anything,
    /// These and no others.
    Only(BTreeSet<String>),
}

/// All rows, in the order of the page; a missing table or a row it cannot read is an error.
pub(super) fn parse(page: &str) -> Result<Vec<Row>> {
    let mut lines = page.lines().skip_while(|line| cells(line) != HEADER);
    lines.next().ok_or_else(|| anyhow!("there is no table with the header `| {} |`", HEADER.join(" | ")))?;
    let rows: Vec<Row> = lines
        // The line of dashes under the header.
        .skip(1)
        .take_while(|line| line.trim_start().starts_with('|'))
        .map(parse_row)
        .collect::<Result<_>>()?;
    ensure!(!rows.is_empty(), "the table has no rows");
    Ok(rows)
}

fn parse_row(line: &str) -> Result<Row> {
    let cells = cells(line);
    let &[name_cell, _, may_use_cell, _] = cells.as_slice() else {
        bail!("a row has {} cells instead of {}: {line}", cells.len(), HEADER.len());
    };
    let name = quoted(name_cell).into_iter().next();
    let name = name.ok_or_else(|| anyhow!("a row does not begin with a crate in backticks: {line}"))?;
    Ok(Row { name, may_use: parse_may_use(may_use_cell)?, is_planned: name_cell.contains("(part ") })
}

fn parse_may_use(cell: &str) -> Result<MayUse> {
    // What stands in parentheses is about tests or is an explanation.
    let cell = without_parentheses(cell);
    if cell.contains(ANYTHING) {
        return Ok(MayUse::Anything);
    }
    let names: BTreeSet<String> = quoted(&cell).into_iter().collect();
    if names.is_empty() && !["", "-", "–", "—"].contains(&cell.trim()) {
        bail!("`{}` is no list of crates in backticks; write `–` for none", cell.trim());
    }
    Ok(MayUse::Only(names))
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map(|inner| inner.split('|').map(str::trim).collect()).unwrap_or_default()
}

/// The words between pairs of backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|character| {
            let outside = depth == 0 && *character != '(';
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            outside
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MayUse, Row, parse};

    fn page(rows: &str) -> String {
        format!(
            "# House\n\n| other | table |\n|---|---|\n| `x` | y |\n\n\
             | crate | what lives there | may use | will never know |\n|---|---|---|---|\n{rows}\n\nMore `text`.\n"
        )
    }

    fn only(names: &[&str]) -> MayUse {
        MayUse::Only(names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>())
    }

    fn row(name: &str, may_use: MayUse, is_planned: bool) -> Row {
        Row { name: name.to_owned(), may_use, is_planned }
    }

    #[test]
    fn rows_are_read_in_all_their_shapes() {
        let text = page(
            "| `model` | numbers | – | anything |\n\
             | `planner` | plans | `model` (`referee` in tests) | I/O |\n\
             | `state` | snapshots | `model`, `api` | a client |\n\
             | `sim` (part 2) | a simulator | `model` | us |\n\
             | `karpenter-kwok` (binary) | the program | what it wires | – |",
        );
        assert_eq!(
            parse(&text).unwrap(),
            [
                row("model", only(&[]), false),
                row("planner", only(&["model"]), false),
                row("state", only(&["api", "model"]), false),
                row("sim", only(&["model"]), true),
                row("karpenter-kwok", MayUse::Anything, false),
            ]
        );
    }

    #[test]
    fn a_page_without_the_table_is_an_error() {
        assert!(parse("# House\n").unwrap_err().to_string().contains("no table"));
        assert!(parse(&page("")).unwrap_err().to_string().contains("no rows"));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_an_error() {
        for bad in ["| `model` | numbers | – |", "| model | numbers | – | x |", "| `state` | x | model | y |"] {
            assert!(parse(&page(bad)).is_err(), "{bad}");
        }
    }
}
