//! The tool that measures load works, and its counts add up. Real time and memory are not looked at here.

use world::load::{Instruments, LoadSettings, Report, page, run};

fn small() -> LoadSettings {
    LoadSettings { seed: 3, nodes: 50, pods: 1_500, changes: 40, minutes: 2, window_minutes: 1, pending: 300 }
}

fn play(settings: &LoadSettings) -> Report {
    let mut told = 0;
    let report = run(settings, Instruments::none(), &mut |_| told += 1).unwrap();
    assert_eq!(told, report.windows.len());
    report
}

#[test]
fn a_small_cluster_is_made_changed_and_decided_about() {
    let report = play(&small());
    let Report { starts, windows, .. } = &report;
    println!("{}", page(&report));
    // Two windows of a minute are too short to tell a lag that grows from one that is drawn.
    let missed: Vec<String> = report.missed().into_iter().filter(|demand| !demand.starts_with("lag")).collect();
    assert_eq!(missed, Vec::<String>::new());
    let titles: Vec<&str> = starts.iter().map(|start| start.title.as_str()).collect();
    assert_eq!(titles, ["first start", "killed and started again", "start with a crowd"]);
    assert!(starts.iter().all(|start| start.pending > 0 && start.claims > 0), "{starts:?}");
    assert_eq!((starts[0].nodes, starts[0].pods - starts[0].pending), (50, 1_500), "the cluster is as large as asked");
    assert!((200..=300).contains(&starts[2].pending), "most of the crowd finds no room: {starts:?}");
    let (seen, wanted): (u64, u64) = (windows.iter().map(|window| window.pod_changes).sum(), 40 * 120);
    assert!(seen.abs_diff(wanted) < wanted / 4, "{seen} of {wanted} changes");
    for window in windows {
        assert!(window.plans > 0 && window.claims_made > 0 && window.lags.count > 0, "{window:?}");
        let planned: u64 = window.passes.get("provisioner").map_or(0, |(count, _)| *count);
        assert!(planned >= window.plans, "every plan has a pass: {window:?}");
    }
    let gone: u64 = windows.iter().map(|window| window.claims_gone).sum();
    assert!(gone > 0, "nodes come and go");
}
