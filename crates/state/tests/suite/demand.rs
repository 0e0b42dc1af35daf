//! Which pods need a place.

use std::sync::{Arc, Weak};

use expect_test::expect;
use model::{PodClass, PodKey};

use crate::script::{Script, check};

/// Equal pods together, the oldest first; who cannot be planned is not asked for.
#[test]
fn waiting_pods_are_grouped_by_class() {
    check(
        "pod b cpu=1 born=2
         pod a cpu=1 born=3
         pod c cpu=1 born=1
         pod big cpu=2
         pod picky cpu=1 select=zone=a
         pod faulty cpu=1 select=hostname=n1
         pod unseen cpu=1 new
         pod bound cpu=1 on=n1
         pod daemon cpu=1 owner=DaemonSet
         pod ended cpu=1 done
         ? pending",
        expect![[r#"
            c b a: asks(cpu=1 pods=1)
            picky: asks(cpu=1 pods=1) labels(topology.kubernetes.io/zone In [a])
            big: asks(cpu=2 pods=1)
        "#]],
    );
}

/// REQ-11: a value that stands for another is taken for it, whoever writes it: pods, pools, claims, volumes, classes of
/// volumes, nodes and overlays.
#[test]
fn values_that_stand_for_others_are_understood() {
    check(
        "overlays
         type m cpu=4 offer=a:0.10
         pool default require=zone:In:az-1
         overlay o require=zone:In:az-1 price=0.05
         claim c1 pool=default require=zone:In:az-1
         node n1 label=zone=az-1
         storageclass fast driver=ebs zone=az-1
         pv v1 zone=az-1
         pvc bound volume=v1 bound
         pvc new class=fast
         pod picky select=zone=az-1
         pod bound volume=bound
         pod new volume=new
         ? pools
         ? types
         ? places
         ? pending",
        expect![[r#"
            default weight 0 requires(karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/nodepool In [default], topology.kubernetes.io/zone In [a]) uses(cpu=4 nodes=1) types(m)
            default m has(cpu=4) a:0.05
            nodeclaim/c1 Promised of default labels(topology.kubernetes.io/zone In [a])
            node/n1 Ready labels(topology.kubernetes.io/zone In [a])
            bound: asks(pods=1) volumes(topology.kubernetes.io/zone In [a])
            new: asks(pods=1) volumes(topology.kubernetes.io/zone In [a]) attaches(ebs shop/new)
            picky: asks(pods=1) labels(topology.kubernetes.io/zone In [a])
        "#]],
    );
}

/// PROV-09, PROV-10, PROV-11, PROV-12: pods of a node that is going need another, if they can move now.
#[test]
fn pods_on_nodes_that_are_going_are_demand() {
    let pods = "pod web cpu=1 on=n1
        pod logs cpu=1 on=n1 owner=DaemonSet
        pod static cpu=1 on=n1 owner=Node
        pod ended cpu=1 on=n1 done
        pod leaving cpu=1 on=n1 going
        pod returning cpu=1 on=n1 going owner=StatefulSet
        pod protected cpu=1 on=n1 protect=true
        pod hour cpu=1 on=n1 protect=1h
        pod garbled cpu=1 on=n1 protect=maybe
        pod pinned cpu=1 on=n1 select=hostname=n1
        budget one select=app=one max=1
        pod one cpu=1 on=n1 label=app=one
        budget none select=app=none max=0
        pod none cpu=1 on=n1 label=app=none ready
        budget percent select=app=percent max=0%
        pod percent cpu=1 on=n1 label=app=percent ready
        budget sick select=app=sick max=0 spares-unready
        pod sick cpu=1 on=n1 label=app=sick
        pod well cpu=1 on=n1 label=app=sick ready
        budget twice select=tier=front max=1
        pod twice cpu=1 on=n1 label=app=one label=tier=front
        ? pending
        at 3600
        ? pending\n";
    check(&format!("claim c1 provider=i-1\nnode n1 provider=i-1\n{pods}"), expect![["nothing\nnothing\n"]]);
    check(&format!("node n1 provider=i-1 going\n{pods}"), expect![["nothing\nnothing\n"]]);
    check(
        &format!("claim c1 provider=i-1 going\nnode n1 provider=i-1\n{pods}"),
        expect![[r#"
        garbled one returning sick web: asks(cpu=1 pods=1)
        garbled hour one returning sick web: asks(cpu=1 pods=1)
    "#]],
    );
    check(
        &format!("claim c1 provider=i-1\nnode n1 provider=i-1 going\n{pods}"),
        expect![[r#"
        garbled one returning sick web: asks(cpu=1 pods=1)
        garbled hour one returning sick web: asks(cpu=1 pods=1)
    "#]],
    );
}

/// A pod is no longer waiting when anything about it says so.
#[test]
fn waiting_ends() {
    check(
        "pod a cpu=1
         pod b cpu=1
         pod c cpu=1
         pod a cpu=1 on=n1
         gone pod b
         pod c cpu=1 going
         ? pending",
        expect![["nothing\n"]],
    );
}

fn class_of(script: &Script, pod: &str) -> Weak<PodClass> {
    Arc::downgrade(&script.cluster.pod(&PodKey::new("shop", pod)).unwrap().class)
}

/// Equal pods share one class, and it goes with the last of them, even if somebody still looks at an old snapshot.
#[test]
fn classes_live_as_long_as_their_pods() {
    let mut script = Script::run("pod a cpu=1\npod b cpu=1\npod other cpu=2");
    let shared = class_of(&script, "a");
    assert!(shared.ptr_eq(&class_of(&script, "b")) && !shared.ptr_eq(&class_of(&script, "other")));
    let snapshot = script.snapshot();
    script.step("pod a cpu=1 on=n1");
    assert!(shared.ptr_eq(&class_of(&script, "a")), "a pod that changes keeps its class");
    script.step("pod a cpu=4");
    script.step("gone pod b");
    drop(snapshot);
    assert!(shared.upgrade().is_none(), "nobody needs the class any more");
    script.step("pod b cpu=4");
    assert!(class_of(&script, "a").ptr_eq(&class_of(&script, "b")));
}

/// Replicas share their labels too.
#[test]
fn equal_pods_share_their_labels() {
    let mut script = Script::run("pod a label=app=web\npod b label=app=web\npod other label=app=db");
    let labels: Vec<_> = script.snapshot().pending.into_iter().map(|pod| pod.labels).collect();
    assert!(Arc::ptr_eq(&labels[0], &labels[1]) && labels[1] != labels[2]);
}

/// PROV-05. DIFFERS: a pod for which the scheduler makes room needs no place; one that we nominated still does, until it is
/// bound or another pod has its name.
#[test]
fn nominated_pods_need_a_place_if_we_nominated_them() {
    check(
        "pod theirs cpu=1 nominated=n1
         pod ours cpu=1
         keep ours
         pod ours cpu=1 nominated=n1
         ? pending
         gone pod ours
         pod ours cpu=1 nominated=n1
         ? pending",
        expect![[r#"
            ours: asks(cpu=1 pods=1)
            nothing
        "#]],
    );
}

/// A pod whose seat is open is untried until something is heard of it, other than that we nominated it. On another seat it
/// is so again.
#[test]
fn pods_are_untried_until_they_are_heard_of() {
    check(
        "pool default
         claim c1 pool=default provider=i-1
         pod web cpu=1
         seat claim/c1 web
         ? untried web
         node n1 provider=i-1 taint=karpenter.sh/unregistered:NoExecute
         pod web cpu=1
         ? untried web
         node n1 provider=i-1
         ? untried web
         pod web cpu=1 nominated=n1
         ? untried web
         pod web cpu=1 nominated=n1 label=app=web
         keep web
         pod web cpu=1 nominated=n1
         ? untried web
         seat node/n1 web
         ? untried web
         node n2
         seat node/n2 web
         ? untried web",
        expect![[r#"
            false
            false
            true
            true
            false
            false
            true
        "#]],
    );
}
