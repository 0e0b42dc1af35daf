//! Families of values by label, and how they are told.
//!
//! The text is what Prometheus calls version 0.0.4, with numbers spelt as Go spells them: an upper bound is part of a
//! series' identity, and queries of dashboards name it as the reference's scrape has it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::table::{Kind, Naming, Row};

/// The quantiles that a summary tells.
const QUANTILES: [f64; 5] = [0.0, 0.5, 0.9, 0.99, 1.0];
/// The newest values that a summary's quantiles are about. The reference takes those of the last ten minutes, which are
/// about as many on a busy day; counting them needs no clock.
const SUMMARY_VALUES_MAX: usize = 1024;

/// Collects families as they are made.
#[derive(Debug)]
pub(crate) struct Registry {
    naming: Naming,
    exported: Vec<Arc<dyn Exported>>,
}

impl Registry {
    pub(super) fn new(naming: Naming) -> Self {
        Self { naming, exported: Vec::new() }
    }

    /// Makes the family of a row.
    pub(super) fn family<F: Family>(&mut self, row: &Row) -> F {
        let family = F::named(row, row.label_names(&self.naming));
        self.exported.push(family.exported());
        family
    }

    pub(super) fn finish(self) -> (Naming, Vec<Arc<dyn Exported>>) {
        (self.naming, self.exported)
    }
}

/// Something that can be written on a page.
pub(super) trait Exported: fmt::Debug + Send + Sync {
    fn write(&self, page: &mut Page);
}

/// Values by label; clones share them.
pub(super) trait Family {
    fn named(row: &Row, labels: Vec<String>) -> Self;
    fn exported(&self) -> Arc<dyn Exported>;
}

/// The values of one family.
#[derive(Debug)]
struct Values<const N: usize, V> {
    header: Header,
    by_label: Mutex<BTreeMap<[String; N], V>>,
}

#[derive(Clone, Debug)]
struct Header {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    labels: Vec<String>,
}

impl<const N: usize, V> Values<N, V> {
    fn new(row: &Row, labels: Vec<String>) -> Arc<Self> {
        debug_assert_eq!(labels.len(), N, "{}", row.name);
        let header = Header { name: row.name, kind: row.kind, help: row.help, labels };
        Arc::new(Self { header, by_label: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[String; N], V>> {
        // Every change is one assignment, so a panic elsewhere leaves nothing half-written.
        self.by_label.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn owned<const N: usize>(labels: [&str; N]) -> [String; N] {
    labels.map(ToOwned::to_owned)
}

/// Declares a family type around its values.
macro_rules! family {
    ($(#[$doc:meta])* $family:ident of $value:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $family<const N: usize>(Arc<Values<N, $value>>);

        impl<const N: usize> Family for $family<N> {
            fn named(row: &Row, labels: Vec<String>) -> Self {
                Self(Values::new(row, labels))
            }

            fn exported(&self) -> Arc<dyn Exported> {
                Arc::clone(&self.0) as Arc<dyn Exported>
            }
        }
    };
}

family! {
    /// Counts.
    Counter of Count
}
family! {
    /// Tells what is.
    Gauge of f64
}
family! {
    /// Counts values by their size.
    Histogram of Buckets
}
family! {
    /// Tells quantiles of the newest values.
    Summary of Newest
}

/// A number of things; its own type, so that a counter is not mistaken for a gauge.
#[derive(Clone, Copy, Debug, Default)]
struct Count(f64);

#[derive(Clone, Debug, Default)]
struct Buckets {
    /// Values up to each bound, not cumulative; one more for those above all bounds.
    counts: Vec<u64>,
    sum: f64,
}

#[derive(Clone, Debug, Default)]
struct Newest {
    values: VecDeque<f64>,
    sum: f64,
    count: u64,
}

impl<const N: usize> Counter<N> {
    /// One more.
    pub fn inc(&self, labels: [&str; N]) {
        self.add(labels, 1.0);
    }

    /// Some more; zero makes the series known.
    pub fn add(&self, labels: [&str; N], more: f64) {
        self.0.lock().entry(owned(labels)).or_default().0 += more.max(0.0);
    }
}

impl<const N: usize> Gauge<N> {
    /// What is now.
    pub fn set(&self, labels: [&str; N], value: f64) {
        self.0.lock().insert(owned(labels), value);
    }

    /// Forgets what is no more, and tells these only.
    pub fn replace(&self, values: impl IntoIterator<Item = ([String; N], f64)>) {
        *self.0.lock() = values.into_iter().collect();
    }

    /// Forgets a series.
    pub fn forget(&self, labels: [&str; N]) {
        self.0.lock().remove(&owned(labels));
    }

    /// Adds to what is, or takes away.
    pub fn change(&self, labels: [&str; N], by: f64) {
        *self.0.lock().entry(owned(labels)).or_default() += by;
    }
}

impl<const N: usize> Histogram<N> {
    /// One more value.
    pub fn observe(&self, labels: [&str; N], value: f64) {
        let bounds = self.0.header.bounds();
        let mut values = self.0.lock();
        let buckets =
            values.entry(owned(labels)).or_insert_with(|| Buckets { counts: vec![0; bounds.len() + 1], sum: 0.0 });
        buckets.counts[bounds.partition_point(|bound| *bound < value)] += 1;
        buckets.sum += value;
    }
}

impl<const N: usize> Summary<N> {
    /// One more value.
    pub fn observe(&self, labels: [&str; N], value: f64) {
        let mut values = self.0.lock();
        let newest = values.entry(owned(labels)).or_default();
        if newest.values.len() == SUMMARY_VALUES_MAX {
            newest.values.pop_front();
        }
        newest.values.push_back(value);
        newest.sum += value;
        newest.count += 1;
    }
}

impl Header {
    fn bounds(&self) -> &'static [f64] {
        match self.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge | Kind::Summary => &[],
        }
    }
}

/// How the value of a family's series is told.
trait Told {
    fn tell(&self, header: &Header, labels: &[String], page: &mut Page);
}

impl Told for Count {
    fn tell(&self, header: &Header, labels: &[String], page: &mut Page) {
        page.sample(header.name, "", pairs(header, labels), self.0);
    }
}

impl Told for f64 {
    fn tell(&self, header: &Header, labels: &[String], page: &mut Page) {
        page.sample(header.name, "", pairs(header, labels), *self);
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
impl Told for Buckets {
    fn tell(&self, header: &Header, labels: &[String], page: &mut Page) {
        let mut below = 0;
        let bounds = header.bounds().iter().copied().chain([f64::INFINITY]);
        for (bound, count) in bounds.zip(&self.counts) {
            below += count;
            let bound = number(bound);
            page.sample(header.name, "_bucket", pairs(header, labels).chain([("le", bound.as_str())]), below as f64);
        }
        page.sample(header.name, "_sum", pairs(header, labels), self.sum);
        page.sample(header.name, "_count", pairs(header, labels), below as f64);
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
impl Told for Newest {
    fn tell(&self, header: &Header, labels: &[String], page: &mut Page) {
        let mut sorted: Vec<f64> = self.values.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        for quantile in QUANTILES {
            let spelt = number(quantile);
            let pairs = pairs(header, labels).chain([("quantile", spelt.as_str())]);
            page.sample(header.name, "", pairs, at_quantile(&sorted, quantile));
        }
        page.sample(header.name, "_sum", pairs(header, labels), self.sum);
        page.sample(header.name, "_count", pairs(header, labels), self.count as f64);
    }
}

/// The value below which this part of the values lies: the smallest for 0, the largest for 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a position among at most a thousand values"
)]
fn at_quantile(sorted: &[f64], quantile: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

fn pairs<'a>(header: &'a Header, values: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> + Clone {
    header.labels.iter().map(String::as_str).zip(values.iter().map(String::as_str))
}

impl<const N: usize, V: Told + fmt::Debug + Send> Exported for Values<N, V> {
    fn write(&self, page: &mut Page) {
        let values = self.lock();
        if values.is_empty() {
            return;
        }
        let Header { name, kind, help, .. } = &self.header;
        page.header(name, *kind, help);
        for (labels, value) in &*values {
            value.tell(&self.header, labels, page);
        }
    }
}

/// A scrape in the making.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Tells a metric in full. One without samples is left out.
    pub(crate) fn metric<'a, L>(&mut self, row: &Row, samples: impl IntoIterator<Item = (L, f64)>)
    where
        L: IntoIterator<Item = (&'a str, &'a str)>,
    {
        let mut told = self.begin(row);
        samples.into_iter().for_each(|(labels, value)| told.sample(labels, value));
    }

    /// Begins a metric; its samples follow.
    pub(crate) fn begin<'a>(&'a mut self, row: &'a Row) -> Samples<'a> {
        Samples { page: self, row, is_first: true }
    }

    fn header(&mut self, name: &str, kind: Kind, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample<'a>(
        &mut self,
        name: &str,
        suffix: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        value: f64,
    ) {
        self.text.push_str(name);
        self.text.push_str(suffix);
        let mut separator = '{';
        for (label, value) in labels {
            self.text.push(separator);
            self.text.push_str(label);
            self.text.push_str("=\"");
            self.escape(value);
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        self.text.push(' ');
        self.text.push_str(&number(value));
        self.text.push('\n');
    }

    fn escape(&mut self, value: &str) {
        for letter in value.chars() {
            match letter {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                other => self.text.push(other),
            }
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The samples of one metric; the first brings the metric's description with it.
pub(crate) struct Samples<'a> {
    page: &'a mut Page,
    row: &'a Row,
    is_first: bool,
}

impl Samples<'_> {
    /// One more sample.
    pub(crate) fn sample<'a>(&mut self, labels: impl IntoIterator<Item = (&'a str, &'a str)>, value: f64) {
        let Row { name, kind, help, .. } = *self.row;
        if std::mem::take(&mut self.is_first) {
            self.page.header(name, kind, help);
        }
        self.page.sample(name, "", labels, value);
    }
}

/// A number with as few digits as tell it apart; with seven digits before the point or more, or four zeros after it,
/// it has an exponent of two digits at least.
pub(crate) fn number(value: f64) -> String {
    const PLAIN: std::ops::Range<i32> = -4..6;
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(power) if !PLAIN.contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", power.abs())
        }
        _ => format!("{value}"),
    }
}

#[cfg(test)]
#[path = "families_tests.rs"]
mod tests;
