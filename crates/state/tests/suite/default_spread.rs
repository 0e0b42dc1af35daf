//! The scheduler's default spread constraints.

use expect_test::expect;

use crate::script::check;

const DEFAULTS: &str = "defaults {podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway}]}}";

/// TOPO-27, TOPO-28, TOPO-29, TOPO-30: selectors are deduced from whoever says that pods belong together.
#[test]
fn default_constraints_select_what_belongs_together() {
    let objects = "service web select=app=web
        service front select=tier=front
        service all
        service external none
        replicaset web-1 select=app=web select=hash=1
        replicaset web-2 select=app=web select=hash=2
        statefulset db select=app=db
        replicationcontroller old select=app=old
        pod bare cpu=1
        pod served cpu=1 label=app=web
        pod twice cpu=1 label=app=web label=tier=front
        pod web-1 cpu=1 label=app=web label=hash=1 by=ReplicaSet/web-1
        pod web-2 cpu=1 label=app=web label=hash=2 by=ReplicaSet/web-2
        pod db cpu=1 label=app=db by=StatefulSet/db
        pod old cpu=1 label=app=old by=ReplicationController/old
        pod orphan cpu=1 label=app=job by=ReplicaSet/unknown
        pod own cpu=1 label=app=web spread=zone
        ? pending";
    check(
        &format!("{DEFAULTS}\n{objects}"),
        expect![[r#"
        bare orphan: asks(cpu=1 pods=1)
        own: asks(cpu=1 pods=1) spread(topology.kubernetes.io/zone of nothing)
        db: asks(cpu=1 pods=1) spread(zone of app=db) soft(host of app=db)
        old: asks(cpu=1 pods=1) spread(zone of app=old) soft(host of app=old)
        served: asks(cpu=1 pods=1) spread(zone of app=web) soft(host of app=web)
        web-1: asks(cpu=1 pods=1) spread(zone of app=web hash=1) soft(host of app=web hash=1)
        web-2: asks(cpu=1 pods=1) spread(zone of app=web hash=2) soft(host of app=web hash=2)
        twice: asks(cpu=1 pods=1) spread(zone of app=web tier=front) soft(host of app=web tier=front)
    "#]],
    );
    check(
        objects,
        expect![[r#"
        bare db old orphan served twice web-1 web-2: asks(cpu=1 pods=1)
        own: asks(cpu=1 pods=1) spread(topology.kubernetes.io/zone of nothing)
    "#]],
    );
}

/// Objects that are only needed for default constraints are only waited for when there are such.
#[test]
fn more_is_listed_when_there_are_defaults() {
    let lists = "listed pod\nlisted node\nlisted claim\nlisted pool\nlisted class\nlisted daemon\nlisted budget
        listed pvc\nlisted pv\nlisted storageclass\nlisted csinode\nlisted attachment\nlisted namespace\n? complete";
    check(lists, expect![["true\n"]]);
    check(&format!("{DEFAULTS}\n{lists}"), expect![["false\n"]]);
    let rest = "listed service\nlisted replicaset\nlisted statefulset\nlisted replicationcontroller\n? complete";
    check(&format!("{DEFAULTS}\n{lists}\n{rest}"), expect![["false\ntrue\n"]]);
}
