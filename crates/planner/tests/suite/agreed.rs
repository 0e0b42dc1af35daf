//! Cases that made-up clusters on a real control plane brought to light.

use expect_test::expect;

use crate::scenario::check;

/// Who is sought on its host settles the zone for those who seek it and are bound by one.
#[test]
fn pods_that_share_a_host_keep_their_own_distance() {
    check(
        "type t0 cpu=3 mem=9Gi a:0.22 c:0.22
         pool pool0
         pod  app0 cpu=700m
         pod  app1*2 cpu=300m near=host:app=app0 away=zone:app=app1",
        expect![[r#"
            pool0 t0 a $0.22: app0 app1-0
            nowhere: app1-1
              nodepool "pool0": unsatisfiable topology constraint for pod affinity, key=kubernetes.io/hostname; no reachable domain has a pod that the affinity selects"#]],
    );
}

/// A wish is given up for the sake of a pod that would stay out otherwise.
#[test]
fn a_pod_that_seeks_a_host_is_not_left_out() {
    check(
        "type t0 cpu=7 mem=14Gi a:0.3790
         pool pool0
         node n0 cpu=2 mem=4Gi
         node n1 cpu=2 mem=4Gi label=zone=b
         pod  app0 mem=3Gi
         pod  app1
         pod  app2*2 cpu=1700m mem=2Gi prefer=2:zone:In:b|c
         pod  app3 cpu=700m near=host:app=app1",
        expect![[r#"
            pool0 t0 a $0.379: app2-1
            node/n0: app1 app3 app0
            node/n1: app2-0"#]],
    );
}

/// A pod that gave up its wish because a limit sent it elsewhere has one turn in the sequence.
#[test]
fn every_pod_has_one_turn() {
    check(
        "type t1 cpu=6 spot:c:0.1073
         pool pool0 limit.cpu=6
         pool pool1 taint=soft=1:PreferNoSchedule
         pod  app0*2 spread=host/1?",
        expect![[r#"
            pool0 t1 c $0.1073: app0-0
            pool1 t1 c $0.1073: app0-1"#]],
    );
}

/// A place that does not take a pod in one reading is as it was for the next.
#[test]
fn a_reading_that_fails_leaves_nothing_behind() {
    check(
        "claim claim0 cpu=2 mem=4Gi
         pod   web*15 cpu=100m prefer=20:team:In:y prefer=5:zone:NotIn:a
         pod   door cpu=100m prefer=20:team:In:y prefer=5:zone:NotIn:a port=80",
        expect![[
            "nodeclaim/claim0: web-0 web-1 web-10 web-11 web-12 web-13 web-14 web-2 web-3 web-4 web-5 web-6 web-7 web-8 web-9 door"
        ]],
    );
}
