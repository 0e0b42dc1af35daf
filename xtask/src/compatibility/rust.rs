//! Finds the test functions of a Rust file and the rows they name, line by line.
//!
//! Not a parser: it only tells code from comments and literals, so that braces can be counted, and knows that a test is
//! the function after an attribute such as `#[test]` or `#[tokio::test(start_paused = true)]`, or any function inside a
//! macro call whose name ends in `test` or `tests`, or whose name stands in such a call that holds nothing but names, as
//! in `cluster_tests! { this_holds, that_too }`. Functions that tests call are not tests; what they name does not count.

use std::collections::BTreeSet;

use super::{FoundTest, KnownRows, Reasons};

/// The tests of a file that name a row or explain a difference.
pub(super) fn tests(path: &str, text: &str, known: &KnownRows<'_>) -> Vec<FoundTest> {
    let listed = listed_tests(text);
    let mut splitter = Splitter::default();
    let mut header = Header::default();
    let mut test_macro = TestMacro::default();
    let mut open: Option<OpenTest> = None;
    let mut found = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = Line { number: index + 1, raw, parts: splitter.split(raw) };
        test_macro.read(&line.parts.code);
        if open.is_none() {
            let is_listed = function_name(&line.parts.code).is_some_and(|name| listed.contains(name));
            header.is_test |= is_listed || test_macro.open_braces > 0;
            open = header.read(&line, path, known);
        } else if let Some(test) = &mut open {
            test.read(&line, known);
        }
        if let Some(test) = open.take_if(|test| test.closed()) {
            found.push(test.finish());
        }
    }
    found.retain(|test| !test.mentions.is_empty() || !test.differs.is_empty());
    found
}

/// The functions that a macro call makes tests of by their names, wherever in the file they stand.
fn listed_tests(text: &str) -> BTreeSet<String> {
    let mut splitter = Splitter::default();
    let mut test_macro = TestMacro::default();
    let mut listed = BTreeSet::new();
    let mut call = String::new();
    for line in text.lines() {
        let code = splitter.split(line).code;
        let was_open = test_macro.open_braces > 0;
        test_macro.read(&code);
        let is_open = test_macro.open_braces > 0;
        if was_open || is_open {
            call += &code;
            call.push(' ');
        }
        if was_open && !is_open {
            listed.extend(names_in(&call));
            call.clear();
        }
    }
    listed
}

/// The names between the braces of a macro call; none if it holds anything else.
fn names_in(call: &str) -> Vec<String> {
    let inside = call.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')).map_or("", |(inside, _)| inside);
    let is_name = |word: &str| word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let names: Vec<&str> = inside.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.iter().all(|name| is_name(name)) { names.into_iter().map(str::to_owned).collect() } else { Vec::new() }
}

struct Line<'text> {
    number: usize,
    raw: &'text str,
    parts: Parts<'text>,
}

/// Whether the scanner is inside a macro call that makes tests of the functions in it.
#[derive(Default)]
struct TestMacro {
    open_braces: usize,
}

impl TestMacro {
    fn read(&mut self, code: &str) {
        let begins = code.trim().split_once('!').is_some_and(|(path, rest)| {
            let word = path.rsplit("::").next().unwrap_or_default();
            is_test_word(word.strip_suffix('s').unwrap_or(word)) && rest.trim_start().starts_with('{')
        });
        if begins || self.open_braces > 0 {
            self.open_braces = (self.open_braces + code.matches('{').count()).saturating_sub(code.matches('}').count());
        }
    }
}

/// What stands directly above the next item: comments and attributes.
#[derive(Default)]
struct Header {
    gathered: OpenTest,
    is_test: bool,
    open_brackets: usize,
}

impl Header {
    /// Takes the next line outside tests; if a test function begins on it, hands the test over.
    fn read(&mut self, line: &Line<'_>, path: &str, known: &KnownRows<'_>) -> Option<OpenTest> {
        let code = line.parts.code.trim();
        if code.starts_with("#[") {
            self.is_test |= is_test_attribute(code);
        }
        let in_attribute = self.open_brackets > 0 || code.starts_with("#[");
        if in_attribute {
            let opened = code.matches('[').count() + self.open_brackets;
            self.open_brackets = opened.saturating_sub(code.matches(']').count());
        }
        let function = function_name(code).filter(|_| self.is_test && self.open_brackets == 0);
        if let Some(name) = function {
            let mut test = std::mem::take(self).gathered;
            test.found.name = format!("{path}::{name}");
            test.found.mentions.extend(mentions_in_name(name, known).map(|id| (id, line.number)));
            test.read(line, known);
            return Some(test);
        }
        if in_attribute || line.parts.is_comment() {
            self.gathered.note(line, known);
        } else {
            *self = Self::default();
        }
        None
    }
}

/// A test function whose end has not been seen.
#[derive(Default)]
struct OpenTest {
    found: FoundTest,
    reasons: Reasons,
    open_braces: usize,
    entered: bool,
}

impl OpenTest {
    fn read(&mut self, line: &Line<'_>, known: &KnownRows<'_>) {
        self.note(line, known);
        for letter in line.parts.code.chars() {
            match letter {
                '{' => {
                    self.open_braces += 1;
                    self.entered = true;
                }
                '}' => self.open_braces = self.open_braces.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn note(&mut self, line: &Line<'_>, known: &KnownRows<'_>) {
        self.found.mentions.extend(known.mentions(line.raw).map(|id| (id.to_owned(), line.number)));
        let comment = line.parts.comment.filter(|text| line.parts.is_comment() || text.contains("DIFFERS:"));
        self.reasons.read(comment.map(|text| text.trim_start_matches(['/', '!'])), line.number);
    }

    fn closed(&self) -> bool {
        self.entered && self.open_braces == 0
    }

    fn finish(self) -> FoundTest {
        FoundTest { differs: self.reasons.found, ..self.found }
    }
}

/// Whether an attribute makes a function a test: the last word of its path is `test`, `rstest` or ends in `_test`.
fn is_test_attribute(code: &str) -> bool {
    let path = code.trim_start_matches("#[").split(['(', ']', ' ', '=']).next().unwrap_or_default();
    is_test_word(path.rsplit("::").next().unwrap_or_default())
}

fn is_test_word(word: &str) -> bool {
    word == "test" || word == "rstest" || word.ends_with("_test")
}

/// The name after the word `fn`, if there is one.
fn function_name(code: &str) -> Option<&str> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut words = code.split(|letter: char| !is_name(letter)).filter(|word| !word.is_empty());
    words.find(|word| *word == "fn")?;
    words.next()
}

/// `aws_nc_04_and_api_12_hold` names `AWS-NC-04` and `API-12`: the words before a number of two digits, taken together
/// as far as they make a known group.
fn mentions_in_name(name: &str, known: &KnownRows<'_>) -> impl Iterator<Item = String> {
    let upper = name.to_uppercase();
    let words: Vec<&str> = upper.split('_').collect();
    let mut found = Vec::new();
    for (end, number) in words.iter().enumerate() {
        if number.len() != 2 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let groups = (0..end).map(|start| words[start..end].join("-"));
        found.extend(
            groups.filter(|group| known.groups.contains(group.as_str())).map(|group| format!("{group}-{number}")),
        );
    }
    found.into_iter()
}

/// Tells code from comments and literals, over line ends.
#[derive(Default)]
struct Splitter {
    inside: Inside,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Code,
    /// A `/* */` comment and how deep it is nested.
    Comment(usize),
    Text,
    /// A raw string and its number of `#`.
    RawText(usize),
}

/// One line, split.
struct Parts<'text> {
    /// The code, with every literal and comment left out.
    code: String,
    /// What follows `//`, if the line has such a comment.
    comment: Option<&'text str>,
}

impl Parts<'_> {
    fn is_comment(&self) -> bool {
        self.comment.is_some() && self.code.trim().is_empty()
    }
}

impl Splitter {
    fn split<'text>(&mut self, line: &'text str) -> Parts<'text> {
        let mut code = String::new();
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            if self.inside == Inside::Code {
                if let Some(comment) = rest.strip_prefix("//") {
                    return Parts { code, comment: Some(comment) };
                }
                let (length, inside) = literal_or_comment(rest, code.chars().last());
                self.inside = inside;
                if length == 0 {
                    code.push(letter);
                }
                rest = &rest[if length == 0 { letter.len_utf8() } else { length }..];
            } else {
                rest = &rest[self.step_inside(rest, letter)..];
            }
        }
        Parts { code, comment: None }
    }

    /// Moves on inside a literal or comment; answers how many bytes were read.
    fn step_inside(&mut self, rest: &str, letter: char) -> usize {
        match self.inside {
            Inside::Comment(depth) if rest.starts_with("/*") => {
                self.inside = Inside::Comment(depth + 1);
                2
            }
            Inside::Comment(depth) if rest.starts_with("*/") => {
                self.inside = if depth > 1 { Inside::Comment(depth - 1) } else { Inside::Code };
                2
            }
            Inside::Text if letter == '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            Inside::Text if letter == '"' => {
                self.inside = Inside::Code;
                1
            }
            Inside::RawText(hashes) if letter == '"' && rest[1..].starts_with(&"#".repeat(hashes)) => {
                self.inside = Inside::Code;
                1 + hashes
            }
            _ => letter.len_utf8(),
        }
    }
}

/// What begins here after `before`: how many bytes its opening takes, and what follows it is inside of. Nothing special
/// is zero bytes.
fn literal_or_comment(rest: &str, before: Option<char>) -> (usize, Inside) {
    if rest.starts_with("/*") {
        return (2, Inside::Comment(1));
    }
    if rest.starts_with('"') {
        return (1, Inside::Text);
    }
    // A letter or digit before makes the `r` part of a name, except in `br"` and `cr"`.
    let name_before =
        before.is_some_and(|letter| (letter.is_alphanumeric() && !"bc".contains(letter)) || letter == '_');
    if let Some(after) = rest.strip_prefix('r').filter(|_| !name_before) {
        let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
        if after[hashes..].starts_with('"') {
            return (hashes + 2, Inside::RawText(hashes));
        }
    }
    (character_literal(rest), Inside::Code)
}

/// The length of a literal such as `'{'` or `'\u{7d}'`; zero for a lifetime or anything else.
fn character_literal(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    if !rest.starts_with('\'') {
        return 0;
    }
    match letters.next() {
        Some((_, '\\')) => {
            letters.next();
            letters.find(|(_, letter)| *letter == '\'').map_or(0, |(end, _)| end + 1)
        }
        Some(_) => letters.next().filter(|(_, letter)| *letter == '\'').map_or(0, |(end, _)| end + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows;

    fn check(text: &str, expected: &str) {
        let ids = ["API-01", "API-02", "AWS-NC-04", "KWOK-05"];
        let ledger: String = ids.iter().map(|id| format!("{id}\tcore\t1\ttitle\n")).collect();
        let rows = rows::parse(&format!("id\tsource\tpart\ttitle\n{ledger}")).unwrap();
        let mut seen = String::new();
        for FoundTest { name, mentions, differs } in super::tests("a.rs", text, &KnownRows::new(&rows)) {
            let rows: Vec<_> = mentions.iter().map(|(id, line)| format!("{id}@{line}")).collect();
            let differs: String = differs.iter().map(|(reason, line)| format!(" ! {reason}@{line}")).collect();
            seen += &format!("{name} = {}{differs}\n", rows.join(" "));
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_test_owns_its_header_its_name_and_its_body() {
        check(
            "/// API-01 holds.
#[tokio::test(start_paused = true)]
async fn aws_nc_04_and_api_02_hold() {
    check(\"KWOK-05\"); // API-77
}
",
            "a.rs::aws_nc_04_and_api_02_hold = API-01@1 AWS-NC-04@3 API-02@3 KWOK-05@4 API-77@4\n",
        );
    }

    #[test]
    fn what_stands_outside_tests_does_not_count() {
        check(
            "//! API-01
/// API-01
fn helper() { \"API-01\"; }
// API-01

#[test]
fn empty() {}
/// API-01
struct Between;
#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(
        expected = \"API-02\"
    )]
    fn inner() {
        fn nested() {}
    }
    // API-01 after
}
",
            "a.rs::inner = API-02@14\n",
        );
    }

    #[test]
    fn braces_in_literals_and_comments_do_not_end_a_test() {
        check(
            "#[test]
fn braces<'a>() {
    let _ = (\"}\\\"}\", '}', '\\'', '\\u{7d}', b'}', r#\"}\"}\"#, br\"}\", 'a: loop {});
    let raw = r#\"
        }
    \"#;
    /* } /* } */ } */ // }
    let text = \"}
    }\";
    // API-01
}
fn after() { API-02 }
",
            "a.rs::braces = API-01@10\n",
        );
    }

    #[test]
    fn tests_inside_macros_and_on_one_line_are_seen() {
        check(
            "proptest! {
    #[test]
    fn property(text in \"[a-z]{3}\") {
        // API-01
    }
    #[test] fn short() { API-02 }
    fn helper() { API-02 }
}
e2e::cluster_tests! {
    /// API-01
    async fn on_a_cluster(cluster: &Cluster) {
        // KWOK-05
    }
    fn too() { API-02 }
}
fn outside() { API-02 }
macro_rules! own_test { () => { fn not() { API-02 } } }
",
            "a.rs::property = API-01@4
a.rs::short = API-02@6
a.rs::on_a_cluster = API-01@10 KWOK-05@12
a.rs::too = API-02@14
",
        );
    }

    #[test]
    fn functions_that_a_macro_lists_are_tests() {
        check(
            "e2e::cluster_tests! {
    before, // API-02
    after,
}
/// API-01
async fn before(bed: &impl Bed) {
    // KWOK-05
}
/// API-01
fn helper() {}
proptest! { after(helper) }
/// API-02
async fn after<B: Bed>(
    bed: &B,
) {}
",
            "a.rs::before = API-01@5 KWOK-05@7\na.rs::after = API-02@12\n",
        );
    }

    #[test]
    fn reasons_run_on_over_comment_lines() {
        check(
            "/// KWOK-05 is turned round.
///
/// DIFFERS: the node reports
/// what its type has.
///
/// More.
#[test]
fn capacity() {
    let one = 1; // DIFFERS: one is enough
    let two = 2; // and two are not
    let text = \"DIFFERS: not a comment\";
}
",
            "a.rs::capacity = KWOK-05@1 ! the node reports what its type has.@3 ! one is enough@9\n",
        );
    }
}
