//! Scrapes, gathered over a story: which metric had which labels filled, and a value other than zero.

use std::collections::{BTreeMap, BTreeSet};

/// Everything that scrapes told so far.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The type of each metric.
    kinds: BTreeMap<String, String>,
    metrics: BTreeMap<String, Told>,
}

/// What was told of one metric.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Whether a value was other than zero.
    pub(crate) is_nonzero: bool,
    /// Label names, and whether some sample had a value for it.
    pub(crate) labels: BTreeMap<String, bool>,
    /// The upper bounds of a histogram.
    pub(crate) bounds: BTreeSet<String>,
}

impl Gathered {
    /// Reads one scrape.
    pub(crate) fn read(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(described) = line.strip_prefix("# TYPE ") {
                let (name, kind) = described.split_once(' ').unwrap();
                self.kinds.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                self.sample(line);
            }
        }
    }

    fn sample(&mut self, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) =
            series.split_once('{').map_or((series, ""), |(name, rest)| (name, rest.strip_suffix('}').unwrap()));
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
            let base = name.strip_suffix(suffix)?;
            self.kinds.get(base).filter(|kind| matches!(kind.as_str(), "histogram" | "summary")).map(|_| base)
        });
        let told = self.metrics.entry(family.unwrap_or(name).to_owned()).or_default();
        told.is_nonzero |= value != "0";
        for (label, value) in pairs(labels) {
            match label {
                "le" => {
                    told.bounds.insert(value.to_owned());
                }
                "quantile" => {}
                label => *told.labels.entry(label.to_owned()).or_default() |= !value.is_empty(),
            }
        }
    }

    pub(crate) fn kind(&self, metric: &str) -> Option<&str> {
        self.kinds.get(metric).map(String::as_str)
    }

    pub(crate) fn metric(&self, name: &str) -> Option<&Told> {
        self.metrics.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.metrics.keys()
    }
}

/// The labels of a sample; no value in these stories has a quotation mark in it.
fn pairs(labels: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = labels;
    std::iter::from_fn(move || {
        let (label, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        rest = after.strip_prefix(',').unwrap_or(after);
        Some((label, value))
    })
}

/// The value of a series whose labels contain these, summed up.
pub(crate) fn sum(text: &str, metric: &str, wanted: &[(&str, &str)]) -> f64 {
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    let matching = samples.filter(|(series, _)| {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels: BTreeMap<&str, &str> = pairs(labels.trim_end_matches('}')).collect();
        name == metric && wanted.iter().all(|(label, value)| labels.get(label) == Some(value))
    });
    matching.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
}
