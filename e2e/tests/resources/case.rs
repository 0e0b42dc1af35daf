//! Reading the cases from `fixtures/resources`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// Which controller's definitions are installed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Flavour {
    Eks,
    Kwok,
}

impl Flavour {
    /// The chart that ships the definitions.
    pub(crate) fn chart(self) -> &'static str {
        match self {
            Self::Eks => "karpenter",
            Self::Kwok => "karpenter-kwok",
        }
    }
}

/// What the API server must do with the object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expectation {
    Accepted,
    /// Reject it, with this text in the message.
    Rejected(String),
}

/// A part of an object with an address of its own.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Subresource {
    Status,
    Scale,
}

impl Subresource {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
        }
    }
}

/// One object sent to the API server, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The rows of the compatibility table that it proves; empty for what is ours beyond them.
    pub(crate) rows: Vec<String>,
    pub(crate) flavour: Flavour,
    pub(crate) expect: Expectation,
    pub(crate) object: Value,
    /// If there is one, it exists already and `object` is its update.
    pub(crate) before: Option<Value>,
    /// What the update is sent to, if not the object itself.
    pub(crate) subresource: Option<Subresource>,
    /// Values that the answer must have, by JSON pointer.
    #[serde(default)]
    pub(crate) defaults: BTreeMap<String, Value>,
}

impl Case {
    /// Fails for what could be read but would prove nothing, or something else than it says.
    fn check(&self) -> Result<()> {
        ensure!(
            self.subresource.is_none() || self.before.is_some(),
            "a subresource is of something: `before` is missing"
        );
        match &self.expect {
            Expectation::Accepted => {}
            Expectation::Rejected(text) => {
                ensure!(!text.is_empty(), "an empty text is part of every message");
                ensure!(self.defaults.is_empty(), "a rejected object has no defaults");
            }
        }
        Ok(())
    }
}

/// All cases in the folder, in the order of their files.
pub(crate) fn read_cases(folder: &Path) -> Result<Vec<Case>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list `{}`", folder.display()))? {
        paths.push(entry.with_context(|| format!("list `{}`", folder.display()))?.path());
    }
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let file = path.display();
        let text = fs::read_to_string(&path).with_context(|| format!("read `{file}`"))?;
        cases.extend(parse_cases(&text).with_context(|| format!("read the cases of `{file}`"))?);
    }
    let mut names = BTreeSet::new();
    for case in &cases {
        ensure!(names.insert(&case.name), "two cases are called `{}`", case.name);
    }
    Ok(cases)
}

/// The cases of one file: one YAML document each, at least one.
fn parse_cases(text: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (index, document) in serde_yaml_ng::Deserializer::from_str(text).enumerate() {
        let number = index + 1;
        // YAML's own value refuses a key written twice, which JSON's would silently drop; JSON's spells the enums.
        let value = serde_yaml_ng::Value::deserialize(document).with_context(|| format!("read document {number}"))?;
        let value = serde_json::to_value(value).with_context(|| format!("read document {number}"))?;
        // A separator with nothing behind it.
        if value.is_null() {
            continue;
        }
        let label = value["name"].as_str().unwrap_or("without name").to_owned();
        let case: Case = serde_json::from_value(value).with_context(|| format!("read document {number} ({label})"))?;
        case.check().with_context(|| format!("use document {number} ({label})"))?;
        cases.push(case);
    }
    if cases.is_empty() {
        bail!("there is no case");
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::{Expectation, Flavour, parse_cases};

    const GOOD: &str = "name: one\nrows: [API-01]\nflavour: kwok\nexpect: {rejected: no}\nobject: {kind: NodePool}\n";

    fn complaint(text: &str) -> String {
        format!("{:#}", parse_cases(text).unwrap_err())
    }

    #[test]
    fn a_case_is_read_as_written() {
        let cases =
            parse_cases(&format!("# a comment\n---\n{GOOD}---\n{}", GOOD.replace("{rejected: no}", "accepted")));
        let cases = cases.unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].flavour, Flavour::Kwok);
        assert_eq!(cases[0].expect, Expectation::Rejected("no".to_owned()));
        assert_eq!(cases[1].expect, Expectation::Accepted);
    }

    #[test]
    fn what_proves_nothing_is_refused() {
        for (text, complained) in [
            (String::new(), "there is no case"),
            ("# only a comment\n".to_owned(), "there is no case"),
            (format!("{GOOD}subresorce: status\n"), "unknown field `subresorce`"),
            (format!("{GOOD}subresource: status\n"), "`before` is missing"),
            (format!("{GOOD}defaults: {{/spec: 1}}\n"), "no defaults"),
            (format!("{GOOD}name: two\n"), "duplicate"),
            (GOOD.replace("rows: [API-01]\n", ""), "missing field `rows`"),
            (GOOD.replace("kwok", "azure"), "unknown variant `azure`"),
            (GOOD.replace("rejected: no", "refused: no"), "unknown variant `refused`"),
            (GOOD.replace("rejected: no", "rejected: ''"), "empty text"),
            (GOOD.replace("object: ", "objects: "), "unknown field `objects`"),
        ] {
            let found = complaint(&text);
            assert!(found.contains(complained), "wanted `{complained}`, found `{found}`");
        }
    }
}
