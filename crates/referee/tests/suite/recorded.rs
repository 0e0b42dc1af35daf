//! Random clusters on which the filters of the real kube-scheduler were asked, and what they said.

use referee::{Objection, Survey};

use crate::language;

const RECORDED: &str = include_str!("../data/kube-scheduler-1.36.txt");

/// What the kube-scheduler reports of a node, reasons in alphabetical order.
fn words(objections: &[Objection]) -> String {
    let reported = Survey::reported(objections);
    let mut words: Vec<String> = reported.iter().map(ToString::to_string).collect();
    words.sort();
    match words.is_empty() {
        true => "ok".to_owned(),
        false if reported.iter().all(Objection::could_fall) => format!("{} (could fall)", words.join(", ")),
        false => words.join(", "),
    }
}

#[test]
fn the_real_scheduler_says_the_same() {
    let cases = RECORDED.split("\n\n").filter(|case| !case.trim().is_empty() && !case.starts_with('#'));
    let mut compared = 0;
    for case in cases {
        let (answers, cluster): (Vec<&str>, Vec<&str>) = case.lines().partition(|line| line.starts_with("= "));
        let (situation, pod) = language::read(&cluster.join("\n"));
        let survey = referee::survey(&situation, &pod);
        // What contradicts itself is refused before any node is looked at.
        let contradiction = referee::unschedulable_message(&situation, &pod, Some(&survey)).contains("terms conflict");
        let said = survey.objections.iter().map(|(node, objections)| {
            let words = if contradiction { "PRE pod affinity terms conflict".to_owned() } else { words(objections) };
            format!("= {node}: {words}")
        });
        assert_eq!(said.collect::<Vec<String>>(), answers, "{case}");
        compared += answers.len();
    }
    assert!(compared > 500, "{compared} answers");
}
