//! The dashboard and the alert rules ask only for what exists.

use std::collections::BTreeSet;
use std::path::PathBuf;

use controllers::metrics::{Kind, NODE_CLASS, Row, Source, WELL_KNOWN, table};
use serde_json::Value;

/// Labels that the scrape itself adds.
const SCRAPED: [&str; 2] = ["job", "instance"];
/// Labels that metrics of nodes have with every provider.
const EVERYWHERE: [&str; 8] =
    ["nodepool", "zone", "region", "instance_type", "arch", "os", "capacity_type", "windows_build"];
const KEYWORDS: [&str; 10] =
    ["by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless", "offset"];

/// A metric in a query, with the labels that it is asked for by.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    metric: String,
    labels: Vec<String>,
}

/// What a query is about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    asked: Vec<Asked>,
    grouped: Vec<String>,
}

/// Reads a query as far as names go.
fn read(text: &str) -> Query {
    let mut query = Query::default();
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_alphabetic() || "_\"[".contains(letter)) {
        let before_is_number = rest[..start].ends_with(|letter: char| letter.is_ascii_digit() || letter == '.');
        rest = &rest[start..];
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = &quoted[quoted.find('"').unwrap() + 1..];
            continue;
        }
        if rest.starts_with('[') {
            rest = &rest[rest.find(']').unwrap() + 1..];
            continue;
        }
        let length = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)));
        let (word, after) = rest.split_at(length.unwrap_or(rest.len()));
        rest = after;
        let opening = after.trim_start();
        if before_is_number {
            continue;
        }
        if ["by", "without", "on", "ignoring"].contains(&word) {
            let (list, after) = opening.strip_prefix('(').unwrap().split_once(')').unwrap();
            query
                .grouped
                .extend(list.split(',').map(|label| label.trim().to_owned()).filter(|label| !label.is_empty()));
            rest = after;
        } else if !KEYWORDS.contains(&word) && !is_applied(opening) {
            let mut asked = Asked { metric: word.to_owned(), labels: Vec::new() };
            if let Some(matchers) = opening.strip_prefix('{') {
                let end = matchers.find('}').unwrap();
                asked.labels.extend(matchers[..end].split("\",").filter_map(|matcher| {
                    let label = matcher.split(['=', '!']).next()?.trim();
                    (!label.is_empty()).then(|| label.to_owned())
                }));
                rest = &matchers[end + 1..];
            }
            query.asked.push(asked);
        }
    }
    query
}

/// Whether what follows a word makes it a function or an aggregation.
fn is_applied(after: &str) -> bool {
    after.starts_with('(') || ["by ", "by(", "without ", "without("].iter().any(|word| after.starts_with(word))
}

/// The row of a metric, and the label that a series of it has besides.
fn row_of(metric: &str) -> Option<(&'static Row, Option<&'static str>)> {
    let named = |name: &str| table().find(|row| row.name == name);
    if let Some(row) = named(metric) {
        return Some((row, (row.kind == Kind::Summary).then_some("quantile")));
    }
    ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
        let row = named(metric.strip_suffix(suffix)?)?;
        let fits = match row.kind {
            Kind::Histogram(_) => true,
            Kind::Summary => *suffix != "_bucket",
            Kind::Counter | Kind::Gauge => false,
        };
        fits.then_some((row, (*suffix == "_bucket").then_some("le")))
    })
}

fn labels_of(metric: &str) -> Result<BTreeSet<&'static str>, String> {
    let (row, more) = row_of(metric).ok_or_else(|| format!("there is no metric `{metric}`"))?;
    if let Source::Later { part } = row.source {
        return Err(format!("`{metric}` comes with part {part}"));
    }
    let own = row.labels.iter().flat_map(|label| match *label {
        WELL_KNOWN => EVERYWHERE.to_vec(),
        NODE_CLASS => Vec::new(),
        label => vec![label],
    });
    Ok(own.chain(more).chain(SCRAPED).collect())
}

/// What is wrong with a query and the labels that are shown beside its answer.
fn faults(text: &str, shown: &[String]) -> Vec<String> {
    let query = read(text);
    let mut faults = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for Asked { metric, labels } in &query.asked {
        match labels_of(metric) {
            Err(fault) => faults.push(fault),
            Ok(own) => {
                let unknown = labels.iter().filter(|label| !own.contains(label.as_str()));
                faults.extend(unknown.map(|label| format!("`{metric}` has no label `{label}`")));
                known.extend(own);
            }
        }
    }
    if query.asked.is_empty() {
        faults.push(format!("`{text}` asks for nothing"));
    }
    let unknown = query.grouped.iter().filter(|label| !known.contains(label.as_str()));
    faults.extend(unknown.map(|label| format!("nothing in `{text}` has a label `{label}`")));
    let left: BTreeSet<&str> =
        if query.grouped.is_empty() { known } else { query.grouped.iter().map(String::as_str).collect() };
    let unknown = shown.iter().filter(|label| !left.contains(label.as_str()));
    faults.extend(unknown.map(|label| format!("the answer to `{text}` has no label `{label}`")));
    faults
}

/// The labels that a text between these marks names.
fn named_in(text: &str, before: &str) -> Vec<String> {
    let parts = text.split(before).skip(1);
    parts
        .map(|part| part.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect())
        .collect()
}

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Every query of the dashboard names metrics and labels that exist, and so do its legends and variables.
#[test]
fn the_dashboard_asks_for_what_exists() {
    let dashboard: Value = serde_json::from_str(&file("dashboard.json")).unwrap();
    let mut queries = 0;
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries += 1;
            let shown = named_in(target["legendFormat"].as_str().unwrap(), "{{");
            found.extend(faults(target["expr"].as_str().unwrap(), &shown));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = variable["query"].as_str().unwrap();
        if let Some(inner) = query.strip_prefix("label_values(") {
            let (metric, label) = inner.trim_end_matches(')').split_once(", ").unwrap();
            found.extend(faults(metric, &[label.to_owned()]));
        }
    }
    assert!(found.is_empty() && queries > 30, "{queries} queries\n{}", found.join("\n"));
}

/// Every alert rule names metrics and labels that exist, and so do its texts.
#[test]
fn the_alerts_ask_for_what_exists() {
    let alerts: Value = serde_yaml_ng::from_str(&file("alerts.yaml")).unwrap();
    let rules: Vec<&Value> =
        alerts["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    let mut found = Vec::new();
    for rule in &rules {
        let texts = rule["annotations"].as_object().unwrap().values().map(|text| text.as_str().unwrap());
        let shown: Vec<String> = texts.flat_map(|text| named_in(text, "$labels.")).collect();
        found.extend(faults(rule["expr"].as_str().unwrap(), &shown));
        for key in ["summary", "description"] {
            assert!(rule["annotations"][key].is_string(), "{key} of {}", rule["alert"]);
        }
    }
    assert!(found.is_empty() && rules.len() > 10, "{}", found.join("\n"));
}

/// The reader of queries finds what is wrong.
#[test]
fn wrong_queries_are_found() {
    let table = [
        ("karpenter_nodepools_usage", ""),
        ("sum by (nodepool) (rate(karpenter_nodeclaims_created_total{reason=~\"a|b\", nodepool!=\"\"}[5m])) > 0.5", ""),
        ("karpenter_nodeclaims_made_total", "there is no metric `karpenter_nodeclaims_made_total`"),
        ("karpenter_nodepools_usage{pool=\"a\"}", "`karpenter_nodepools_usage` has no label `pool`"),
        (
            "sum by (zone) (karpenter_nodepools_usage)",
            "nothing in `sum by (zone) (karpenter_nodepools_usage)` has a label `zone`",
        ),
        ("karpenter_nodepools_usage_bucket", "there is no metric `karpenter_nodepools_usage_bucket`"),
        ("rate(karpenter_nodes_reboots_total[5m])", "`karpenter_nodes_reboots_total` comes with part 5"),
        ("1 > 0", "`1 > 0` asks for nothing"),
    ];
    for (query, fault) in table {
        assert_eq!(faults(query, &[]).join("; "), fault, "{query}");
    }
    let shown = ["reason".to_owned()];
    assert_eq!(faults("sum by (nodepool) (karpenter_nodeclaims_created_total)", &shown).len(), 1);
}
