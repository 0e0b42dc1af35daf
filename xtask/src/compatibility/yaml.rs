//! Finds the cases of a fixture file that name rows, line by line.
//!
//! A case is a mapping with a `rows:` list and, in the same column, a `name:`; it may be an item of a list or a whole
//! document. Everything else in the file is left alone: fixtures hold Kubernetes objects of any shape.

use std::ops::Range;

use anyhow::{Context, Result};

use super::{FoundTest, Reasons};

/// The cases of a file, each with the entries of its `rows:`. A list without a name is an error; an
/// empty one says that no row states what the case proves.
pub(super) fn cases(path: &str, text: &str) -> Result<Vec<FoundTest>> {
    let lines: Vec<Line<'_>> = text.lines().map(Line::read).collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(first) = line.value_of("rows") else { continue };
        let number = index + 1;
        let case = case_around(&lines, index);
        let mut beside = lines[case.clone()].iter().filter(|other| other.column == line.column);
        let name = beside.find_map(|other| other.value_of("name"));
        let name = name.with_context(|| format!("{path}:{number}: `rows:` without a `name:` beside it"))?;
        let mentions = entries(first, &lines[index + 1..], number);
        let mut reasons = Reasons::default();
        for other in case {
            reasons.read(lines[other].comment, other + 1);
        }
        found.push(FoundTest { name: format!("{path}: {}", unquote(name)), mentions, differs: reasons.found });
    }
    Ok(found)
}

/// A line cut into what the scanner looks at.
struct Line<'text> {
    /// Where the first key or entry starts, after the dash of a list item; none for blank lines and comments.
    column: Option<usize>,
    /// Whether a list item starts here.
    starts_item: bool,
    /// What stands there, without a comment.
    content: &'text str,
    /// The text of a line that is nothing but a comment.
    comment: Option<&'text str>,
}

impl<'text> Line<'text> {
    fn read(raw: &'text str) -> Self {
        let trimmed = raw.trim_start();
        if let Some(comment) = trimmed.strip_prefix('#') {
            return Self { column: None, starts_item: false, content: "", comment: Some(comment) };
        }
        let content = trimmed.split_once(" #").map_or(trimmed, |(content, _)| content).trim_end();
        let starts_item = content.starts_with("- ");
        let content = if starts_item { content[2..].trim_start() } else { content };
        let column = (!content.is_empty()).then(|| content.as_ptr().addr() - raw.as_ptr().addr());
        Self { column, starts_item, content, comment: None }
    }

    /// The rest of the line if it begins with this key.
    fn value_of(&self, key: &str) -> Option<&'text str> {
        Some(self.content.strip_prefix(key)?.strip_prefix(':')?.trim())
    }
}

/// The lines of the mapping that holds the key at `index`, with the comments directly above it.
fn case_around(lines: &[Line<'_>], index: usize) -> Range<usize> {
    let own = lines[index].column;
    let outside = |line: &Line<'_>| line.content == "---" || line.column.is_some_and(|column| Some(column) < own);
    let starts_here = |line: &Line<'_>| line.starts_item && line.column == own;
    let mut start = index;
    while !starts_here(&lines[start]) && start > 0 && !outside(&lines[start - 1]) {
        start -= 1;
    }
    while start > 0 && lines[start - 1].comment.is_some() {
        start -= 1;
    }
    let mut end = index + 1;
    while end < lines.len() && !outside(&lines[end]) && !starts_here(&lines[end]) {
        end += 1;
    }
    // Comments at the end stand above the next case and belong to it.
    while end < lines.len() && lines[end - 1].comment.is_some() {
        end -= 1;
    }
    start..end
}

/// The entries of a list: in brackets, over one or more lines, or one per line after a dash.
fn entries(first: &str, rest: &[Line<'_>], number: usize) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut add = |text: &str, number: usize| {
        let words = text.split([',', '[', ']']).map(str::trim).map(unquote);
        found.extend(words.filter(|word| !word.is_empty()).map(|word| (word.to_owned(), number)));
    };
    add(first, number);
    let in_brackets = first.starts_with('[');
    let mut closed = first.ends_with(']');
    for (offset, line) in rest.iter().enumerate().filter(|(_, line)| line.column.is_some()) {
        if closed || !(in_brackets || line.starts_item && !line.content.contains(':')) {
            break;
        }
        add(line.content, number + 1 + offset);
        closed = in_brackets && line.content.ends_with(']');
    }
    found
}

fn unquote(text: &str) -> &str {
    text.trim_matches(|letter| letter == '"' || letter == '\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut seen = String::new();
        for FoundTest { name, mentions, differs } in cases("f.yaml", text).unwrap() {
            let rows: Vec<_> = mentions.iter().map(|(id, line)| format!("{id}@{line}")).collect();
            let differs: String = differs.iter().map(|(reason, line)| format!(" ! {reason}@{line}")).collect();
            seen += &format!("{name} = {}{differs}\n", rows.join(" "));
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn items_of_a_list_are_cases() {
        check(
            "cases:
  - name: good budget
    rows: [API-12, \"API-13\"]
    object:
      metadata:
        name: not-the-case
  - rows:
      - API-14 # why
      - API-15
    object: {kind: NodePool, name: inner}
    name: 'late name'
  - name: without rows
",
            "f.yaml: good budget = API-12@3 API-13@3\nf.yaml: late name = API-14@8 API-15@9\n",
        );
    }

    #[test]
    fn documents_are_cases_and_lists_may_break() {
        check(
            "name: one
rows: [API-01,
  API-02]
object:
  - name: inner
---
# DIFFERS: slower
# than theirs
#
# a note
name: two
rows:
- KWOK-05
spec: API-99
",
            "f.yaml: one = API-01@2 API-02@3\nf.yaml: two = KWOK-05@13 ! slower than theirs@7\n",
        );
    }

    #[test]
    fn a_comment_above_a_case_belongs_to_it() {
        check(
            "- name: a
  rows: [API-01]
# DIFFERS: above
- name: b
  # DIFFERS: within
  rows: [API-02]
",
            "f.yaml: a = API-01@2\nf.yaml: b = API-02@6 ! above@3 ! within@5\n",
        );
    }

    #[test]
    fn a_list_needs_a_name() {
        let fault = |text: &str| cases("f.yaml", text).unwrap_err().to_string();
        assert_eq!(fault("- rows: [API-01]\n- name: x\n"), "f.yaml:1: `rows:` without a `name:` beside it");
    }
}
