//! Figures as a page in Markdown.

use std::fmt::Write;

use crate::bed::Figures;
use crate::manifests::Story;

/// One telling of a story.
pub(crate) struct Measured {
    pub(crate) story: Story,
    pub(crate) contender: String,
    pub(crate) figures: Figures,
}

type Read = fn(&Figures) -> f64;

/// What is compared, by its heading.
const COLUMNS: [(&str, Read); 12] = [
    ("claims", |one| one.claims as f64),
    ("first claim s", |one| one.first_claim),
    ("all claims s", |one| one.last_claim),
    ("solve to last claim s", |one| one.solve_to_last_claim),
    ("nodes ready s", |one| one.all_nodes_ready),
    ("all bound s", |one| one.all_bound),
    ("all running s", |one| one.all_running),
    ("of it after ready s", |one| one.all_running - one.all_nodes_ready),
    ("CPU s", |one| one.usage.cpu_seconds),
    ("peak MiB", |one| one.usage.peak_mebibytes),
    ("requests", |one| one.requests.all as f64),
    ("writes per claim", |one| one.requests.write_count() as f64 / one.claims.max(1) as f64),
];

/// One telling in a line, for the impatient.
pub(crate) fn line(figures: &Figures) -> String {
    let cells = COLUMNS.iter().map(|(heading, read)| format!("{heading} {}", number(read(figures))));
    let others = figures.others.iter().map(|(name, seconds)| format!("{name} {}", number(*seconds)));
    let writes = figures.requests.writes.iter().map(|(what, count)| format!("{count} {what}"));
    let join = |parts: Vec<String>| parts.join(", ");
    format!(
        "  {}\n  processor seconds beside it: {}\n  writes: {}",
        join(cells.collect()),
        join(others.collect()),
        join(writes.collect())
    )
}

/// Medians of every story and controller, and each controller's ratio to the last one.
pub(crate) fn page(stories: &[Story], contenders: &[&str], measured: &[Measured]) -> String {
    let mut page = String::new();
    let headings: Vec<&str> = COLUMNS.iter().map(|(heading, _)| *heading).collect();
    for story in stories {
        let rule = "---:|".repeat(headings.len());
        // Writing to a string does not fail.
        let _ = write!(page, "\n### {story}\n\n| controller | {} |\n|---|{rule}\n", headings.join(" | "));
        let rows: Vec<Vec<f64>> = contenders.iter().map(|name| medians(measured, *story, name)).collect();
        for (name, row) in contenders.iter().zip(&rows) {
            let cells: Vec<String> = row.iter().map(|value| number(*value)).collect();
            let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
        }
        let Some((last, others)) = rows.split_last() else { continue };
        for (name, row) in contenders.iter().zip(others) {
            let ratio = |(own, other): (&f64, &f64)| {
                if *other > 0.0 { format!("{:.3}", own / other) } else { "–".to_owned() }
            };
            let cells: Vec<String> = row.iter().zip(last).map(ratio).collect();
            let _ = writeln!(page, "| {name} / {} | {} |", contenders[contenders.len() - 1], cells.join(" | "));
        }
    }
    page
}

fn medians(measured: &[Measured], story: Story, contender: &str) -> Vec<f64> {
    let own: Vec<&Figures> = measured
        .iter()
        .filter(|one| one.story == story && one.contender == contender)
        .map(|one| &one.figures)
        .collect();
    COLUMNS.iter().map(|(_, read)| median(own.iter().map(|figures| read(figures)).collect())).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() >= 1.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Requests;
    use crate::processes::Usage;

    #[test]
    fn ratios_are_to_the_last_controller() {
        let story = Story::Alone { pods: 2 };
        let figures = |seconds: f64| Figures {
            claims: 2,
            first_claim: seconds,
            last_claim: seconds,
            solve_to_last_claim: seconds,
            all_nodes_ready: seconds,
            all_bound: seconds,
            all_running: seconds,
            usage: Usage { cpu_seconds: seconds, peak_mebibytes: 10.0 * seconds },
            others: Vec::new(),
            requests: Requests { all: 8, writes: [("create nodeclaims".to_owned(), 4)].into() },
        };
        let told = |contender: &str, seconds: f64| Measured {
            story,
            contender: contender.to_owned(),
            figures: figures(seconds),
        };
        let measured = [told("ours", 1.0), told("peer", 4.0), told("ours", 3.0), told("ours", 1.5), told("peer", 4.5)];
        let page = page(&[story], &["ours", "peer"], &measured);
        let rows: Vec<&str> = page.lines().skip(3).collect();
        assert_eq!(
            rows[2..],
            [
                "| ours | 2 | 1.50 | 1.50 | 1.50 | 1.50 | 1.50 | 1.50 | 0.00 | 1.50 | 15 | 8 | 2 |",
                "| peer | 2 | 4.50 | 4.50 | 4.50 | 4.50 | 4.50 | 4.50 | 0.00 | 4.50 | 45 | 8 | 2 |",
                "| ours / peer | 1.000 | 0.333 | 0.333 | 0.333 | 0.333 | 0.333 | 0.333 | – | 0.333 | 0.333 | 1.000 | 1.000 |",
            ]
        );
    }
}
