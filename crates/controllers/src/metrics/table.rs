//! The table of all metrics: what each is called, what it counts, and by which labels.
//!
//! Every subject declares its rows with [`families!`]; the families that hold values are made from the same lines, so
//! that a metric cannot be exported under another name, type or label than the table says. Dashboards, alert rules
//! and tests read [`table`].

use std::fmt;

use cloud::CloudProvider;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by these upper bounds.
    Histogram(&'static [f64]),
    /// Tells quantiles of the newest values.
    Summary,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
            Self::Summary => "summary",
        })
    }
}

/// Where the values of a metric come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Written down as things happen.
    Counted,
    /// Read off the cluster when somebody asks.
    Computed,
    /// Not exported yet: the feature that it is about arrives with this part of the roadmap.
    Later {
        /// The part.
        part: u8,
    },
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The whole name, as in a query.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its labels; [`NODE_CLASS`] and [`WELL_KNOWN`] stand for what depends on the provider.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub help: &'static str,
    /// Where its values come from.
    pub source: Source,
}

/// Stands for the label that names the provider's kind of NodeClass.
pub const NODE_CLASS: &str = "{NodeClass}";
/// Stands for one label for each well-known node label.
pub const WELL_KNOWN: &str = "{well-known}";

impl Row {
    /// The names of its labels under a provider.
    pub fn label_names(&self, naming: &Naming) -> Vec<String> {
        let spelt = self.labels.iter().map(|label| match *label {
            NODE_CLASS => vec![naming.node_class.clone()],
            WELL_KNOWN => naming.well_known.iter().map(|(_, label)| label.clone()).collect(),
            label => vec![label.to_owned()],
        });
        spelt.flatten().collect()
    }
}

/// The labels that depend on the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// The label for [`NODE_CLASS`].
    pub node_class: String,
    /// The node label and the metric label for each of [`WELL_KNOWN`], in order.
    pub well_known: Vec<(String, String)>,
}

impl Naming {
    /// The labels under this provider.
    pub fn of(provider: &dyn CloudProvider) -> Self {
        let vocabulary = provider.vocabulary();
        let well_known = vocabulary.well_known().filter_map(|key| {
            let (_, name) = key.split_once('/')?;
            Some((key.to_string(), name.to_lowercase().replace('-', "_")))
        });
        Self {
            node_class: provider.node_class_kind().label().replace(['/', '.', '-'], "_"),
            well_known: well_known.collect(),
        }
    }
}

/// Every metric, subject by subject.
pub fn table() -> impl Iterator<Item = &'static Row> {
    let subjects = [
        super::claims::ROWS,
        super::nodes::ROWS,
        super::pods::ROWS,
        super::pools::ROWS,
        super::scheduler::ROWS,
        super::voluntary::ROWS,
        super::cluster::ROWS,
        super::provider::ROWS,
        super::conditions::ROWS,
        super::runtime::ROWS,
        super::calls::ROWS,
        super::own::ROWS,
        crate::process::PROCESS_ROWS,
    ];
    subjects.into_iter().flatten()
}

/// Upper bounds in seconds for most durations: fine below a second, coarse up to ten minutes.
pub(crate) const SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
];
/// The bounds that Prometheus clients use when told nothing.
pub(crate) const DEFAULT_SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How many labels there are, for the type of a family.
pub(crate) const fn count(labels: &[&str]) -> usize {
    labels.len()
}

/// Declares the metrics of one subject: a struct of the families that are fed as things happen, constants for the rows
/// that are computed from the cluster, and `ROWS` with all of them and those of later parts.
macro_rules! families {
    (
        $(#[$doc:meta])*
        $subject:ident {
            $($field:ident: $kind:ident [$($label:expr),*] $name:literal $(in $buckets:expr)?, $help:literal;)*
        }
        computed {
            $($constant:ident: $computed_kind:ident [$($computed_label:expr),*]
                $computed_name:literal, $computed_help:literal;)*
        }
        later {
            $($part:literal: $later_kind:ident [$($later_label:expr),*] $later_name:literal
                $(in $later_buckets:expr)?, $later_help:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $subject {
            $(#[doc = $help]
            pub $field: $crate::metrics::families::$kind<
                { $crate::metrics::table::count(&[$($label),*]) }
            >,)*
        }

        impl $subject {
            pub(super) fn new(registry: &mut $crate::metrics::families::Registry) -> Self {
                // A subject may have nothing that is fed.
                let _ = &registry;
                Self {
                    $($field: registry.family(&$crate::metrics::table::Row {
                        name: $name,
                        kind: $crate::metrics::table::kind!($kind $($buckets)?),
                        labels: &[$($label),*],
                        help: $help,
                        source: $crate::metrics::table::Source::Counted,
                    }),)*
                }
            }
        }

        $(pub(crate) const $constant: $crate::metrics::table::Row = $crate::metrics::table::Row {
            name: $computed_name,
            kind: $crate::metrics::table::kind!($computed_kind),
            labels: &[$($computed_label),*],
            help: $computed_help,
            source: $crate::metrics::table::Source::Computed,
        };)*

        pub(crate) const ROWS: &[$crate::metrics::table::Row] = &[
            $($crate::metrics::table::Row {
                name: $name,
                kind: $crate::metrics::table::kind!($kind $($buckets)?),
                labels: &[$($label),*],
                help: $help,
                source: $crate::metrics::table::Source::Counted,
            },)*
            $($constant,)*
            $($crate::metrics::table::Row {
                name: $later_name,
                kind: $crate::metrics::table::kind!($later_kind $($later_buckets)?),
                labels: &[$($later_label),*],
                help: $later_help,
                source: $crate::metrics::table::Source::Later { part: $part },
            },)*
        ];
    };
}

/// The [`Kind`] of a family's type.
macro_rules! kind {
    (Histogram $buckets:expr) => {
        $crate::metrics::table::Kind::Histogram($buckets)
    };
    (Counter) => {
        $crate::metrics::table::Kind::Counter
    };
    (Gauge) => {
        $crate::metrics::table::Kind::Gauge
    };
    (Summary) => {
        $crate::metrics::table::Kind::Summary
    };
}

pub(crate) use {families, kind};

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
