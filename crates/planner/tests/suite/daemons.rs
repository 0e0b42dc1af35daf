//! What daemons take of new and existing nodes.

use expect_test::expect;

use crate::scenario::{check, planned};

/// Daemons of every kind: counted where they run and nowhere else.
///
/// PROV-34: by labels, type and taints. PROV-37: any alternative is enough. PROV-38: labels that nodes get when they
/// join or become usable count as given.
#[test]
fn daemons_take_room_on_nodes_they_will_run_on() {
    let cluster = "type m.large  cpu=2 mem=8Gi  a:0.10
                   type m.xlarge cpu=4 mem=16Gi a:0.20
                   pool default label=team=web taint=soft=yes:PreferNoSchedule taint=hard=yes:NoSchedule
                   pod  web cpu=1500m tolerate=hard tolerate=soft\n";
    let with = |daemon: &str| format!("{cluster}{daemon}");
    let counted = [
        "daemon d cpu=1 tolerate=hard",
        "daemon d cpu=1 tolerate=hard select=team=web",
        "daemon d cpu=1 tolerate=hard select=zone=a",
        "daemon d cpu=1 tolerate=hard affinity=team:In:db or=team:In:web",
        "daemon d cpu=1 tolerate=hard select=karpenter.sh/initialized=true",
        "daemon d cpu=1 tolerate=hard select=karpenter.sh/registered=true",
    ];
    let not_counted = [
        "daemon d cpu=1",
        "daemon d cpu=1 tolerate=hard select=team=db",
        "daemon d cpu=1 tolerate=hard select=arch=arm64",
        "daemon d cpu=1 tolerate=hard affinity=team:In:db or=team:In:ops",
        "daemon d cpu=1 tolerate=hard select=unheard=of",
    ];
    for daemon in counted {
        assert_eq!(planned(&with(daemon)), "default m.xlarge a $0.2: web", "{daemon}");
    }
    for daemon in not_counted {
        assert_eq!(planned(&with(daemon)), "default m.large|m.xlarge a $0.1: web", "{daemon}");
    }
}

/// PROV-34: a daemon for one architecture weighs only on types of that architecture.
#[test]
fn daemon_overhead_differs_by_type() {
    check(
        "type a.large  cpu=2 mem=8Gi  arch=arm64 a:0.08
         type m.large  cpu=2 mem=8Gi  a:0.10
         pool default
         daemon d cpu=1 select=arch=arm64
         pod  web cpu=1500m",
        expect!["default m.large a $0.1: web"],
    );
}

/// PROV-40: a daemon that runs is part of what is used; only what is still to come is kept free, and never less than
/// nothing.
#[test]
fn daemons_are_not_counted_twice_on_existing_nodes() {
    check(
        "node   running cpu=2 used.cpu=500m daemons.cpu=500m
         node   waiting cpu=2
         node   greedy  cpu=2 used.cpu=1500m daemons.cpu=1500m
         daemon d cpu=500m
         pod    web*8 cpu=500m",
        expect![[r#"
            node/greedy: web-0
            node/running: web-1 web-2 web-3
            node/waiting: web-4 web-5 web-6
            nowhere: web-7"#]],
    );
}

/// A daemon that wants a device the node does not have will not start there, and keeps nobody else away.
#[test]
fn a_daemon_for_a_missing_device_does_not_block_a_node() {
    check(
        "node   n1 cpu=2
         daemon d cpu=500m gpu=1
         pod    web*2 cpu=500m",
        expect!["node/n1: web-0 web-1"],
    );
}

/// PROV-41: requests of a claim are those of its pods and, once, the smallest daemon overhead of its types.
#[test]
fn claims_ask_for_pods_and_the_least_daemon_overhead() {
    check(
        "show requests
         type a.large  cpu=2 mem=8Gi  arch=arm64 a:0.08
         type m.large  cpu=2 mem=8Gi  a:0.10
         pool default
         daemon everywhere cpu=100m
         daemon heavy      cpu=200m mem=1Gi select=arch=arm64
         pod  web*2 cpu=500m",
        expect![[r#"
            default a.large|m.large a $0.08: web-0 web-1
              requests cpu=1100m pods=3"#]],
    );
}
