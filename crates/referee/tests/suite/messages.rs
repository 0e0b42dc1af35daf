//! What the event says.

use expect_test::expect;

use crate::{language, says};

#[test]
fn an_empty_cluster_has_a_sentence_of_its_own() {
    says("try p", expect!["no nodes available to schedule pods"]);
}

#[test]
fn reasons_are_counted_and_sorted_and_each_node_reports_one_filter() {
    says(
        "node a cpu=1 taint=x:NoSchedule
         node b cpu=1 memory=1Gi
         node c cpu=4
         node d cordoned
         pod one @c cpu=3
         try p cpu=2 memory=2Gi",
        expect![
            "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, preemption: 0/4 nodes are available: 1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
        ],
    );
}

#[test]
fn what_evictions_cannot_change_is_not_tried() {
    says(
        "node a
         node b taint=x:NoSchedule
         pod one @a cpu=3
         try p cpu=2",
        expect![
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
        ],
    );
}

#[test]
fn victims_that_do_not_help_are_told() {
    says(
        "node a
         pod one @a cpu=1
         pod two @a cpu=3 priority=9
         try p cpu=2 priority=5",
        expect![
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Insufficient cpu."
        ],
    );
}

#[test]
fn with_victims_found_nothing_is_added() {
    let cluster = "
        node a
        pod small @a cpu=1
        pod large @a cpu=2 priority=1
        pod proud @a cpu=1 priority=9
        try p cpu=1 priority=5";
    says(cluster, expect!["0/1 nodes are available: 1 Insufficient cpu."]);
    let (situation, pod) = language::read(cluster);
    let found = referee::preempt(&situation, &pod, &referee::survey(&situation, &pod));
    let referee::Preemption::Candidates(candidates) = found else { panic!("{found:?}") };
    let victims: Vec<String> = candidates[0].victims.iter().map(ToString::to_string).collect();
    assert_eq!(victims, ["default/small"]);
}

#[test]
fn polite_pods_preempt_nobody() {
    says(
        "node a cpu=1
         pod one @a cpu=1
         try p cpu=1 priority=5 never-preempts",
        expect![
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        ],
    );
}

#[test]
fn daemon_pods_are_told_about_their_one_node() {
    says(
        "node a
         node b
         node c
         pod one @b cpu=4
         try daemon field=In,b cpu=1",
        expect![
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
        ],
    );
}

#[test]
fn what_is_known_before_any_node_is_told_alone() {
    says(
        "node a\ntry p unbound",
        expect!["0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"],
    );
    says("node a\ntry p field=In,a+In,b", expect!["0/1 nodes are available: pod affinity terms conflict. not found"]);
}
