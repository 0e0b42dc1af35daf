//! Reports for people: one row for each scenario.

use std::path::Path;

use crate::report::{Memory, Report};

/// Title and width of every column but the first, whose width depends on the names.
const COLUMNS: [(&str, usize); 11] = [
    ("pods", 7),
    ("median ms", 10),
    ("pods/s", 11),
    ("claims", 6),
    ("unplaced", 8),
    ("$/h", 10),
    ("bound $/h", 10),
    ("gap", 7),
    ("worst $/h", 10),
    ("steps", 11),
    ("heap MB", 8),
];
const FIRST_COLUMN: &str = "scenario";

/// How many objections of the referee are told; a wrong rule objects to every pod.
const OBJECTIONS_MAX: usize = 10;

/// A table whose rows can be printed one by one, as they become known.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    name_width: usize,
}

impl Table {
    /// For the scenarios in these files, which are usually called like their scenarios.
    pub fn of_files<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        let stems = files.into_iter().filter_map(|file| file.file_stem());
        let widest = stems.map(|stem| stem.to_string_lossy().chars().count()).max().unwrap_or(0);
        Self { name_width: widest.max(FIRST_COLUMN.len()) }
    }

    /// The titles.
    pub fn header(&self) -> String {
        self.line(FIRST_COLUMN, &COLUMNS.map(|(title, _)| title.to_owned()))
    }

    /// A scenario, and under it what the referee has against the plan.
    pub fn row(&self, report: &Report) -> String {
        let Report { scenario, timing, memory, violations, result, .. } = report;
        let row = self.line(
            &scenario.name,
            &[
                grouped(scenario.pods as u64),
                format!("{:.2}", timing.total.median),
                grouped(timing.pods_per_second as u64),
                grouped(result.new_node_claims as u64),
                grouped(result.pod_error_count as u64),
                format!("{:.4}", result.price_per_hour),
                format!("{:.4}", result.bound_per_hour),
                format!("{:.2}%", result.gap * 100.0),
                format!("{:.4}", result.worst_launch_per_hour),
                grouped(result.steps),
                if *memory == Memory::default() { "-".to_owned() } else { megabytes(memory.peak_bytes) },
            ],
        );
        std::iter::once(row).chain(objections(violations)).collect::<Vec<_>>().join("\n")
    }

    fn line(&self, name: &str, cells: &[String; COLUMNS.len()]) -> String {
        let mut line = format!("{name:<width$}", width = self.name_width);
        for (cell, (_, width)) in cells.iter().zip(COLUMNS) {
            line.push_str(&format!(" {cell:>width$}"));
        }
        line
    }
}

fn objections(violations: &[String]) -> impl Iterator<Item = String> {
    let told = violations.iter().take(OBJECTIONS_MAX).map(|violation| format!("  not allowed: {violation}"));
    let rest = violations.len().saturating_sub(OBJECTIONS_MAX);
    told.chain((rest > 0).then(|| format!("  and {rest} more")))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e6)
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (123_456, "123,456"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn many_objections_are_cut_short() {
        let told = |count: usize| objections(&vec!["x".to_owned(); count]).collect::<Vec<_>>();
        assert_eq!(told(0), Vec::<String>::new());
        assert_eq!(told(OBJECTIONS_MAX).len(), OBJECTIONS_MAX);
        assert_eq!(told(OBJECTIONS_MAX + 2).last().map(String::as_str), Some("  and 2 more"));
    }
}
