//! Rules for names, labels and other short texts, with the API server's words for what is wrong.

use std::sync::OnceLock;

use regex::Regex;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";
const PERCENT: &str = "[0-9]+%";

const LABEL_LENGTH_MAX: usize = 63;
const SUBDOMAIN_LENGTH_MAX: usize = 253;
const PORT_NAME_LENGTH_MAX: usize = 15;

/// How objects of a kind may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    /// Anything that can stand in a path.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name; with the beginning of a generated one if `is_prefix`.
    pub(crate) fn problems(self, name: &str, is_prefix: bool) -> Vec<String> {
        // What is generated ends well, so a beginning may end with a dash.
        let masked = if is_prefix { mask_trailing_dash(name) } else { name.to_owned() };
        match self {
            Self::Subdomain => subdomain(&masked),
            Self::Label => label(&masked),
            Self::PathSegment => path_segment(name, is_prefix),
        }
    }
}

fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(start) if !start.is_empty() => format!("{start}a"),
        _ => name.to_owned(),
    }
}

macro_rules! matcher {
    ($function:ident, $pattern:expr) => {
        fn $function(text: &str) -> bool {
            static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
            let regex = REGEX.get_or_init(|| Regex::new(&format!("^(?:{})$", $pattern)).ok());
            regex.as_ref().is_some_and(|regex| regex.is_match(text))
        }
    };
}

matcher!(is_label, LABEL);
matcher!(is_subdomain, SUBDOMAIN);
matcher!(is_qualified, QUALIFIED);
matcher!(is_label_value, LABEL_VALUE);
matcher!(is_config_key, CONFIG_KEY);
matcher!(is_percent_text, PERCENT);

fn too_long(length_max: usize) -> String {
    format!("must be no more than {length_max} characters")
}

/// The usual sentence: what is allowed, examples, the pattern.
fn not_matching(words: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// A name such as `example.com`.
pub(crate) fn subdomain(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH_MAX {
        problems.push(too_long(SUBDOMAIN_LENGTH_MAX));
    }
    if !is_subdomain(text) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                     and must start and end with an alphanumeric character";
        problems.push(not_matching(words, SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// A name such as `my-name`.
pub(crate) fn label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_LENGTH_MAX {
        problems.push(too_long(LABEL_LENGTH_MAX));
    }
    if !is_label(text) {
        problems.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                         must start and end with an alphanumeric character";
            not_matching(words, LABEL, &["my-name", "123-abc"])
        });
    }
    problems
}

fn path_segment(text: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && (text == "." || text == "..") {
        return vec![format!("may not be '{text}'")];
    }
    let found = ["/", "%"].into_iter().filter(|part| text.contains(part));
    found.map(|part| format!("may not contain '{part}'")).collect()
}

/// The key of a label or annotation, or any other name with an optional domain before it.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    const WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let sentence = || not_matching(WORDS, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut problems = Vec::new();
    let parts: Vec<_> = text.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(subdomain(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            name
        }
        _ => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {} {optional}", sentence())];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH_MAX {
        problems.push(format!("name part {}", too_long(LABEL_LENGTH_MAX)));
    }
    if !is_qualified(name) {
        problems.push(format!("name part {}", sentence()));
    }
    problems
}

/// The value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_LENGTH_MAX {
        problems.push(too_long(LABEL_LENGTH_MAX));
    }
    if !is_label_value(text) {
        let words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                     and must start and end with an alphanumeric character";
        problems.push(not_matching(words, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    problems
}

/// A key of a config map or secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH_MAX {
        problems.push(too_long(SUBDOMAIN_LENGTH_MAX));
    }
    if !is_config_key(text) {
        let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        problems.push(not_matching(words, CONFIG_KEY, &["key.name", "KEY_NAME", "key-name"]));
    }
    match text {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The name of a port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > PORT_NAME_LENGTH_MAX {
        problems.push(too_long(PORT_NAME_LENGTH_MAX));
    }
    let allowed = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if text.is_empty() || !text.bytes().all(allowed) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// A percentage such as `10%`.
pub(crate) fn percent(text: &str) -> Vec<String> {
    if is_percent_text(text) {
        return Vec::new();
    }
    let words = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![not_matching(words, PERCENT, &["1%", "93%"])]
}

/// A number between two others.
pub(crate) fn range(value: i64, min: i64, max: i64) -> Vec<String> {
    if (min..=max).contains(&value) { Vec::new() } else { vec![format!("must be between {min} and {max}, inclusive")] }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{NameRule, label_value, port_name, qualified_name};

    #[test]
    fn problems_are_told_in_the_servers_words() {
        let cases = [
            ("name", NameRule::Subdomain.problems("A.b", false)),
            ("good", NameRule::Subdomain.problems("a.b-1", false)),
            ("prefix", NameRule::Subdomain.problems("a-", true)),
            ("namespace", NameRule::Label.problems("a.b", false)),
            ("role", NameRule::PathSegment.problems("a/b", false)),
            ("key", qualified_name("example.com/a/b")),
            ("key", qualified_name("/a b")),
            ("value", label_value("-")),
            ("port", port_name("A--")),
        ];
        let text: Vec<_> = cases.iter().map(|(what, problems)| format!("{what}: {}", problems.join("; "))).collect();
        expect![[r#"
            name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            good: 
            prefix: 
            namespace: must not contain dots
            role: may not contain '/'
            key: a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
            key: prefix part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            value: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            port: must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-); must contain at least one letter (a-z); must not contain consecutive hyphens; must not begin or end with a hyphen"#]]
        .assert_eq(&text.join("\n"));
    }
}
