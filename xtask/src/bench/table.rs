//! The comparison as a page in Markdown.

use super::demand::{Compared, Demand, Growth, Limit};

const HEADER: &str = "\
| scenario | Go ms | ours ms | faster | Go heap MB | ours MB | part | Go $/h | ours $/h | part | worst launch | bound $/h | over bound | unplaced Go / ours | missed |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
";
const DEMANDS_HEADER: &str = "\
| demand | must be | tightest | in | met |
|---|--:|--:|---|---|
";

/// The figures, a row for each scenario, and then the demands.
pub(super) fn page(compared: &[Compared], growth: Option<&Growth>) -> String {
    let mut page = HEADER.to_owned();
    compared.iter().for_each(|one| page.push_str(&row(one)));
    if let Some(growth) = growth {
        let ([few, many], [small, large]) = (growth.pods, growth.milliseconds);
        let excess = growth.excess();
        page.push_str(&format!(
            "\nThe diverse mix alone: {few} pods in {small:.2} ms, {many} in {large:.2} ms, {excess:.2} times linear.\n"
        ));
    }
    page.push('\n');
    page.push_str(DEMANDS_HEADER);
    tightest(compared, growth).iter().for_each(|(demand, name)| page.push_str(&demand_row(demand, name)));
    page
}

fn row(one: &Compared) -> String {
    let Compared { name, peer, ours } = one;
    let megabytes = |bytes: Option<u64>| shown(bytes.map(|bytes| bytes as f64 / 1e6), 2);
    let missed: Vec<&str> = one.demands().iter().filter(|demand| !demand.is_met()).map(|demand| demand.what).collect();
    let cells = [
        name.clone(),
        format!("{:.1}", peer.median_milliseconds()),
        format!("{:.2}", ours.median_milliseconds()),
        format!("{:.0}×", one.speed()),
        megabytes(peer.heap_bytes),
        megabytes(ours.heap_bytes),
        shown(one.heap(), 3),
        format!("{:.3}", peer.price),
        format!("{:.3}", ours.price),
        format!("{:.3}", one.price()),
        format!("{:.3}", one.worst_launch()),
        shown(ours.bound, 3),
        shown(one.over_bound(), 3),
        format!("{} / {}", peer.unplaced, ours.unplaced),
        if missed.is_empty() { "–".to_owned() } else { missed.join(", ") },
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn shown(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "–".to_owned(), |number| format!("{number:.digits$}"))
}

/// Of each demand the scenario with the least room, in the order in which demands first appear.
fn tightest(compared: &[Compared], growth: Option<&Growth>) -> Vec<(Demand, String)> {
    let mut tightest: Vec<(Demand, String)> = Vec::new();
    let of_scenarios = compared.iter().flat_map(|one| one.demands().into_iter().map(|demand| (demand, &*one.name)));
    for (demand, name) in of_scenarios.chain(growth.map(|growth| (growth.demand(), "diverse"))) {
        match tightest.iter_mut().find(|(known, _)| known.what == demand.what) {
            None => tightest.push((demand, name.to_owned())),
            Some(known) if demand.room() < known.0.room() => *known = (demand, name.to_owned()),
            Some(_) => {}
        }
    }
    tightest
}

fn demand_row(demand: &Demand, name: &str) -> String {
    let must = match demand.limit {
        Limit::AtLeast(limit) => format!("≥ {limit}"),
        Limit::AtMost(limit) => format!("≤ {limit}"),
    };
    let digits = if demand.reached >= 10.0 { 0 } else { 3 };
    let met = if demand.is_met() { "yes" } else { "**no**" };
    format!("| {} | {must} | {:.digits$} | {name} | {met} |\n", demand.what, demand.reached)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::demand::tests::compared;
    use super::*;

    #[test]
    fn a_page_shows_figures_and_demands() {
        let all = [
            compared(
                "diverse-5000",
                [15_000.0, 90_000.0, 1200.0, 1200.0, 0.0],
                [20.0, 5_000.0, 1190.0, 1190.0, 0.0],
                1100.0,
            ),
            compared("ec2-mixed-5000", [4_000.0, 40_000.0, 80.0, 90.0, 0.0], [40.0, 900.0, 52.0, 56.0, 0.0], 51.0),
            compared("existing-2000", [9_000.0, 400_000.0, 5.0, 5.0, 1.0], [45.0, 4_000.0, 5.0, 5.0, 1.0], 0.0),
        ];
        let growth = Growth { pods: [5_000, 100_000], milliseconds: [20.0, 440.0] };
        expect![[r#"
            | scenario | Go ms | ours ms | faster | Go heap MB | ours MB | part | Go $/h | ours $/h | part | worst launch | bound $/h | over bound | unplaced Go / ours | missed |
            |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
            | diverse-5000 | 15000.0 | 20.00 | 750× | 90.00 | 5.00 | 0.056 | 1200.000 | 1190.000 | 0.992 | 0.992 | 1100.000 | 1.082 | 0 / 0 | – |
            | ec2-mixed-5000 | 4000.0 | 40.00 | 100× | 40.00 | 0.90 | 0.022 | 80.000 | 52.000 | 0.650 | 0.622 | 51.000 | 1.020 | 0 / 0 | speed, EC2 |
            | existing-2000 | 9000.0 | 45.00 | 200× | 400.00 | 4.00 | 0.010 | 5.000 | 5.000 | 1.000 | 1.000 | 0.000 | – | 1 / 1 | – |

            The diverse mix alone: 5000 pods in 20.00 ms, 100000 in 440.00 ms, 1.10 times linear.

            | demand | must be | tightest | in | met |
            |---|--:|--:|---|---|
            | speed, diverse | ≥ 100 | 750 | diverse-5000 | yes |
            | heap | ≤ 0.1 | 0.056 | diverse-5000 | yes |
            | price | ≤ 1 | 1.000 | existing-2000 | yes |
            | pods that only the Go scheduler places | ≤ 0 | 0.000 | diverse-5000 | yes |
            | broken rules | ≤ 0 | 0.000 | diverse-5000 | yes |
            | speed, EC2 | ≥ 300 | 100 | ec2-mixed-5000 | **no** |
            | price over bound, EC2 | ≤ 1.05 | 1.020 | ec2-mixed-5000 | yes |
            | price, uncapped EC2 | ≤ 0.8 | 0.650 | ec2-mixed-5000 | yes |
            | worst launch price, uncapped EC2 | ≤ 0.8 | 0.622 | ec2-mixed-5000 | yes |
            | speed, existing nodes | ≥ 100 | 200 | existing-2000 | yes |
            | growth of time over growth of pods | ≤ 1.3 | 1.100 | diverse | yes |
        "#]].assert_eq(&page(&all, Some(&growth)));
    }
}
