//! Label and field selectors: read from text, matched against headers.

use crate::header::Header;
use crate::status_body::Status;
use schema::ResourceInfo;
use serde_json::Value;
use std::collections::BTreeMap;

/// All conditions that an object must meet to be in a list or watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    test: LabelTest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelTest {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Reads both selectors of a request; unknown fields and malformed text are refused.
    pub(crate) fn parse(info: &ResourceInfo, labels: Option<&str>, fields: Option<&str>) -> Result<Self, Status> {
        Ok(Self {
            labels: labels.map(parse_labels).transpose()?.unwrap_or_default(),
            fields: fields.map(|text| parse_fields(info, text)).transpose()?.unwrap_or_default(),
        })
    }

    /// Whether nothing is left out.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, header: &Header) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(&header.labels))
            && self.fields.iter().all(|field| (header.field(&field.path) == Some(&field.value)) == field.equal)
    }
}

impl LabelRequirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            LabelTest::In(values) => value.is_some_and(|value| values.contains(value)),
            LabelTest::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            LabelTest::Exists => value.is_some(),
            LabelTest::DoesNotExist => value.is_none(),
            LabelTest::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            LabelTest::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Whether labels match the `LabelSelector` of an object's spec. An absent selector matches nothing, an empty one
/// everything; a selector with an unknown operator matches nothing.
pub(crate) fn label_selector_matches(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let Some(selector) = selector.as_object() else { return false };
    let exact = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut requirements: Vec<Option<LabelRequirement>> = exact
        .map(|(key, value)| {
            let test = LabelTest::In(vec![value.as_str()?.to_owned()]);
            Some(LabelRequirement { key: key.clone(), test })
        })
        .collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    requirements.extend(expressions.map(expression));
    requirements.into_iter().all(|requirement| requirement.is_some_and(|requirement| requirement.matches(labels)))
}

fn expression(expression: &Value) -> Option<LabelRequirement> {
    let values = || {
        let values = expression["values"].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let test = match expression["operator"].as_str()? {
        "In" => LabelTest::In(values()),
        "NotIn" => LabelTest::NotIn(values()),
        "Exists" => LabelTest::Exists,
        "DoesNotExist" => LabelTest::DoesNotExist,
        _ => return None,
    };
    Some(LabelRequirement { key: expression["key"].as_str()?.to_owned(), test })
}

/// A `LabelSelector` of a spec as the text form, as a scale's status shows it.
pub(crate) fn label_selector_text(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for part in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = part["key"].as_str().unwrap_or_default();
        let values: Vec<&str> = part["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let text = match part["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// The fields that objects of a resource can be selected by, beside name and namespace.
pub(crate) fn selectable_fields(group: &str, resource: &str) -> &'static [&'static str] {
    match (group, resource) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "replicationcontrollers") => &["status.replicas"],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("batch", "jobs") => &["status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
        _ => &[],
    }
}

fn parse_fields(info: &ResourceInfo, text: &str) -> Result<Vec<FieldRequirement>, Status> {
    let mut requirements = Vec::new();
    for term in split_terms(text) {
        if term.is_empty() {
            continue;
        }
        let (path, value, equal) = split_field(&term)
            .ok_or_else(|| Status::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'")))?;
        let path =
            if info.group.is_empty() && info.plural == "pods" && path == "spec.host" { "spec.nodeName" } else { path };
        check_field(info, path)?;
        requirements.push(FieldRequirement { path: path.to_owned(), value: unescape(value), equal });
    }
    Ok(requirements)
}

fn check_field(info: &ResourceInfo, path: &str) -> Result<(), Status> {
    let own = selectable_fields(&info.group, &info.plural);
    let has_own_list = !own.is_empty() || info.is_custom;
    let by_metadata = path == "metadata.name" || (path == "metadata.namespace" && (info.namespaced || !has_own_list));
    if by_metadata || own.contains(&path) {
        return Ok(());
    }
    Err(Status::bad_request(match (info.kind.as_str(), has_own_list) {
        ("Job", _) => format!("field label \"{path}\" not supported for Job"),
        (_, true) => format!("field label not supported: {path}"),
        (_, false) => {
            format!("\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    }))
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for character in text.chars() {
        if character == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = character == '\\' && !escaped;
        if let Some(term) = terms.last_mut() {
            term.push(character);
        }
    }
    terms
}

fn split_field(term: &str) -> Option<(&str, &str, bool)> {
    let at = term.find(['=', '!'])?;
    let (path, rest) = term.split_at(at);
    let (value, equal) = match rest.strip_prefix("!=") {
        Some(value) => (value, false),
        None => (rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?, true),
    };
    Some((path, value, equal))
}

fn unescape(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        let next = if character == '\\' { characters.next() } else { Some(character) };
        plain.extend(next);
    }
    plain
}

fn parse_labels(text: &str) -> Result<Vec<LabelRequirement>, Status> {
    let tokens = tokens(text);
    let mut rest = tokens.as_slice();
    let mut requirements = Vec::new();
    while !rest.is_empty() {
        let (requirement, left) = parse_requirement(rest)
            .map_err(|problem| Status::bad_request(format!("unable to parse requirement: {problem}")))?;
        requirements.push(requirement);
        rest = match left {
            [] => left,
            [comma, next @ ..] if comma == "," && !next.is_empty() => next,
            [other, ..] => {
                return Err(Status::bad_request(format!(
                    "unable to parse requirement: found '{other}', expected: ',' or 'end of string'"
                )));
            }
        };
    }
    Ok(requirements)
}

fn parse_requirement(tokens: &[String]) -> Result<(LabelRequirement, &[String]), String> {
    if let [bang, key, rest @ ..] = tokens
        && bang == "!"
    {
        check_key(key)?;
        return Ok((LabelRequirement { key: key.clone(), test: LabelTest::DoesNotExist }, rest));
    }
    let [key, rest @ ..] = tokens else { return Err("found '', expected: identifier".to_owned()) };
    check_key(key)?;
    let (test, rest) = match rest {
        [] => (LabelTest::Exists, rest),
        [comma, ..] if comma == "," => (LabelTest::Exists, rest),
        [operator, rest @ ..] => parse_test(operator, rest)?,
    };
    Ok((LabelRequirement { key: key.clone(), test }, rest))
}

fn parse_test<'a>(operator: &str, rest: &'a [String]) -> Result<(LabelTest, &'a [String]), String> {
    match operator {
        "=" | "==" => single_value(rest).map(|(value, rest)| (LabelTest::In(vec![value]), rest)),
        "!=" => single_value(rest).map(|(value, rest)| (LabelTest::NotIn(vec![value]), rest)),
        ">" | "<" => {
            let (value, rest) = single_value(rest)?;
            let number =
                value.parse().map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())?;
            let test = if operator == ">" { LabelTest::GreaterThan(number) } else { LabelTest::LessThan(number) };
            Ok((test, rest))
        }
        "in" => value_set(rest).map(|(values, rest)| (LabelTest::In(values), rest)),
        "notin" => value_set(rest).map(|(values, rest)| (LabelTest::NotIn(values), rest)),
        other => Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
    }
}

/// The value after an operator; nothing at all is the empty value.
fn single_value(rest: &[String]) -> Result<(String, &[String]), String> {
    match rest {
        [] => Ok((String::new(), rest)),
        [comma, ..] if comma == "," => Ok((String::new(), rest)),
        [value, rest @ ..] if is_word(value) => Ok((value.clone(), rest)),
        [other, ..] => Err(format!("found '{other}', expected: identifier")),
    }
}

fn value_set(rest: &[String]) -> Result<(Vec<String>, &[String]), String> {
    let [open, rest @ ..] = rest else { return Err("found '', expected: '('".to_owned()) };
    if open != "(" {
        return Err(format!("found '{open}' expected: '('"));
    }
    let close = rest.iter().position(|token| token == ")").ok_or("found '', expected: ',' or ')'")?;
    let mut values: Vec<String> = vec![String::new()];
    for token in &rest[..close] {
        match (token.as_str(), values.last_mut()) {
            (",", _) => values.push(String::new()),
            (word, Some(last)) if is_word(word) && last.is_empty() => word.clone_into(last),
            (other, _) => return Err(format!("found '{other}', expected: ',' or ')'")),
        }
    }
    Ok((values, &rest[close + 1..]))
}

fn check_key(key: &str) -> Result<(), String> {
    if is_word(key) && !key.is_empty() {
        Ok(())
    } else {
        Err(format!("found '{key}', expected: !, identifier, or 'end of string'"))
    }
}

fn is_word(token: &str) -> bool {
    token.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '/'))
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut previous = ' ';
    for character in text.chars() {
        let joins = match character {
            character if character.is_whitespace() => {
                previous = ' ';
                continue;
            }
            '=' => matches!(previous, '=' | '!') && tokens.last().is_some_and(|last| last.len() == 1),
            '!' | '<' | '>' | '(' | ')' | ',' => false,
            _ => previous != ' ' && !matches!(previous, '=' | '!' | '<' | '>' | '(' | ')' | ','),
        };
        match tokens.last_mut() {
            Some(last) if joins => last.push(character),
            _ => tokens.push(character.to_string()),
        }
        previous = character;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::{label_selector_matches, label_selector_text, parse_labels};
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn label_selectors_are_read_and_matched() {
        let labels: BTreeMap<String, String> =
            [("a", "1"), ("b", ""), ("x.y/z", "w")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let cases = [
            ("a=1", Ok(true)),
            ("a==1,b=", Ok(true)),
            ("a!=1", Ok(false)),
            ("c!=1", Ok(true)),
            ("a in (1, 2)", Ok(true)),
            ("a notin (1,2)", Ok(false)),
            ("c notin (1)", Ok(true)),
            ("b in (,x)", Ok(true)),
            ("x.y/z", Ok(true)),
            ("!x.y/z", Ok(false)),
            ("!c, a", Ok(true)),
            ("a>0,a<2", Ok(true)),
            ("c>0", Ok(false)),
            ("a in 1", Err("unable to parse requirement: found '1' expected: '('")),
            ("a=1 b", Err("unable to parse requirement: found 'b', expected: ',' or 'end of string'")),
            ("=1", Err("unable to parse requirement: found '=', expected: !, identifier, or 'end of string'")),
        ];
        for (text, expected) in cases {
            let found = parse_labels(text).map(|all| all.iter().all(|requirement| requirement.matches(&labels)));
            assert_eq!(
                found.as_ref().map_err(|status| status.message.as_str()),
                expected.as_ref().map_err(|text| *text),
                "{text}"
            );
        }
    }

    #[test]
    fn selectors_of_specs_match_and_show() {
        let labels: BTreeMap<String, String> = [("a".to_owned(), "1".to_owned())].into();
        let cases = [
            (json!(null), false, ""),
            (json!({}), true, ""),
            (json!({ "matchLabels": { "a": "1" } }), true, "a=1"),
            (
                json!({ "matchExpressions": [{ "key": "a", "operator": "NotIn", "values": ["1"] }] }),
                false,
                "a notin (1)",
            ),
            (json!({ "matchExpressions": [{ "key": "b", "operator": "DoesNotExist" }] }), true, "!b"),
            (json!({ "matchExpressions": [{ "key": "b", "operator": "Near" }] }), false, "b"),
        ];
        for (selector, matches, text) in cases {
            assert_eq!(label_selector_matches(&selector, &labels), matches, "{selector}");
            assert_eq!(label_selector_text(&selector), text, "{selector}");
        }
    }
}
