//! What comes with every node.

use expect_test::expect;

use crate::script::check;

/// PROV-35: the newest pod of a DaemonSet shows what admission makes of its template.
#[test]
fn the_newest_pod_of_a_daemon_set_has_the_word() {
    check(
        "daemon logs cpu=1
         ? daemons
         pod logs-1 cpu=2 on=n1 by=DaemonSet/logs born=1
         ? daemons
         pod logs-2 cpu=3 on=n2 by=DaemonSet/logs born=2
         pod other cpu=9 on=n2 by=DaemonSet/other born=3
         ? daemons
         gone pod logs-2
         ? daemons
         gone pod logs-1
         ? daemons
         gone daemon logs
         ? daemons",
        expect![[r#"
            shop/logs asks(cpu=1 pods=1)
            shop/logs asks(cpu=2 pods=1)
            shop/logs asks(cpu=3 pods=1)
            shop/logs asks(cpu=2 pods=1)
            shop/logs asks(cpu=1 pods=1)
            nothing
        "#]],
    );
}

/// A claim without a machine keeps room for daemons, as many as there are by now.
#[test]
fn promised_nodes_follow_the_daemons() {
    check(
        "claim c1 pool=default request.cpu=3
         ? places
         daemon logs cpu=1
         ? places
         gone daemon logs
         ? places",
        expect![[r#"
            nodeclaim/c1 Promised of default has(cpu=3)
            nodeclaim/c1 Promised of default has(cpu=3) daemons(cpu=1 pods=1)
            nodeclaim/c1 Promised of default has(cpu=3)
        "#]],
    );
}
