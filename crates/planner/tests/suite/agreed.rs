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

/// Where pods settle for the second of two places for a volume so that all find room, the bound knows of both.
#[test]
fn the_bound_of_a_plan_that_gave_wishes_up_is_below_its_price() {
    check(
        "type t0 cpu=7 mem=35Gi a:0.5093 spot:a:0.3259 b:0.5335 c:0.5335
         type t1 cpu=5 mem=15Gi arch=arm64 a:0.2709 b:0.2709 c:0.2580
         type t2 cpu=5 mem=20Gi arch=arm64 pods=4 a:0.1680 b:0.1600 c:0.1680
         type t3 cpu=4 mem=8Gi overhead.mem=300Mi a:0.2280 b:0.2508
         pool pool0
         pool pool1 limit.mem=20Gi
         pod  app0 cpu=700m mem=1124Mi volume=zone:b,arch:amd64 volume=zone:a
         pod  app1*2 cpu=1850m mem=3Gi volume=zone:a|b
         pod  app2*2 cpu=3100m mem=5Gi affinity=zone:In:a
         pod  app3 cpu=2200m mem=1Gi affinity=zone:In:a near=host:app=app0
         pod  app4 cpu=2700m mem=100Mi spread=host/2/of=app=app0
         pod  app5*2 cpu=2100m mem=100Mi
         show bound",
        expect![[r#"
            pool1 t2|t1 a|b|c $0.16: app4 app5-0
            pool0 t2|t1|t0 a $0.168: app0 app3 app5-1
            pool0 t2|t1|t0 a $0.168: app2-0 app1-0
            pool0 t2|t1|t0 a $0.168: app2-1 app1-1
            bound $0.646399999354"#]],
    );
}
