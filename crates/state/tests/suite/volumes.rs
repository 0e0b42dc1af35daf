//! Volumes: where they let a pod go, why they let it go nowhere, and what nodes have attached.

use expect_test::expect;

use crate::script::check;

/// VOL-01, VOL-02, VOL-03, VOL-04, VOL-05, VOL-06, VOL-18: pods that no node would help.
#[test]
fn pods_with_unusable_volumes_are_told_why() {
    check(
        "storageclass slow immediate
         storageclass racked key=rack
         storageclass strange driver=odd
         pv going zone=a going
         pv v1 zone=a
         pvc going class=slow going
         pvc lost volume=v1 bound lost
         pvc nowhere volume=v9 bound
         pvc leaving volume=going bound
         pvc loose volume=v1
         pvc plain
         pvc homeless class=unknown
         pvc eager class=slow
         pvc racked class=racked
         pvc strange class=strange
         pod missing volume=missing
         pod going volume=going
         pod lost volume=lost
         pod nowhere volume=nowhere
         pod leaving volume=leaving
         pod loose volume=loose
         pod plain volume=plain
         pod homeless volume=homeless
         pod eager volume=eager
         pod racked volume=racked
         pod strange volume=strange
         ? faults
         ? pending",
        expect![[r#"
            eager: failed to validate pvc, pvc with immediate volume binding mode must be bound (StorageClass=slow) (PersistentVolumeClaim=eager)
            going: persistentvolumeclaim is being deleted (PersistentVolumeClaim=going)
            homeless: failed to validate pvc, failed to get storage class, "unknown" not found (PersistentVolumeClaim=homeless)
            leaving: failed to validate pvc, persistentvolume is being deleted (PersistentVolume=going) (PersistentVolumeClaim=leaving)
            loose: pvc is considered unbound because it does not contain annotation (annotation=pv.kubernetes.io/bind-completed, PersistentVolume=v1) (PersistentVolumeClaim=loose)
            lost: persistentvolumeclaim bound to non-existent persistentvolume (PersistentVolumeClaim=lost)
            missing: getting persistent volume claim, not found (PersistentVolumeClaim=missing)
            nowhere: failed to validate pvc, persistentvolume "v9" not found (PersistentVolumeClaim=nowhere)
            plain: unbound pvc must define a storage class (PersistentVolumeClaim=plain)
            racked: failed to validate pvc, storage class uses unsupported topology key (StorageClass=racked, TopologyKey=rack) (PersistentVolumeClaim=racked)
            strange: failed to validate pvc, provisioner is not supported (Provisioner=odd) (PersistentVolumeClaim=strange)
            nothing
        "#]],
    );
}

/// VOL-14: where the volume is, the pod must go.
#[test]
fn volumes_say_where_a_pod_may_go() {
    check(
        "storageclass fast driver=kubernetes.io/aws-ebs zone=a zone=b
         storageclass anywhere driver=ebs.csi.aws.com
         pv v1 zone=a driver=ebs.csi.aws.com
         pv v2 zone=a zone=b driver=ebs.csi.aws.com
         pv nfs
         pvc bound volume=v1 bound
         pvc either volume=v2 bound
         pvc new class=fast
         pvc free class=anywhere
         pvc shared volume=nfs bound
         pvc job-scratch class=fast
         pod bound volume=bound
         pod either volume=either
         pod new volume=new
         pod free volume=free
         pod shared volume=shared
         pod job ephemeral=scratch
         ? faults
         ? pending",
        expect![[r#"
            nothing
            shared: asks(pods=1)
            free: asks(pods=1) attaches(ebs.csi.aws.com shop/free)
            bound: asks(pods=1) volumes(topology.kubernetes.io/zone In [a]) attaches(ebs.csi.aws.com shop/bound)
            either: asks(pods=1) volumes(topology.kubernetes.io/zone In [a] | topology.kubernetes.io/zone In [b]) attaches(ebs.csi.aws.com shop/either)
            job: asks(pods=1) volumes(topology.kubernetes.io/zone In [a] | topology.kubernetes.io/zone In [b]) attaches(ebs.csi.aws.com shop/job-scratch)
            new: asks(pods=1) volumes(topology.kubernetes.io/zone In [a] | topology.kubernetes.io/zone In [b]) attaches(ebs.csi.aws.com shop/new)
        "#]],
    );
}

/// VOL-10: several volumes must be reached together; what cannot be, is no way. If nothing can be, all is kept, so that
/// the refusal can say what parts them.
#[test]
fn volumes_are_reached_together() {
    check(
        "pv ab zone=a zone=b
         pv bc zone=b zone=c
         pv c zone=c
         pvc ab volume=ab bound
         pvc bc volume=bc bound
         pvc c volume=c bound
         pod fits volume=ab volume=bc
         pod parts volume=ab volume=c
         ? pending",
        expect![[r#"
            parts: asks(pods=1) volumes(topology.kubernetes.io/zone DoesNotExist | topology.kubernetes.io/zone DoesNotExist)
            fits: asks(pods=1) volumes(topology.kubernetes.io/zone In [b])
        "#]],
    );
}

/// VOL-11, VOL-12: a disk of a node stays behind; any other volume that names a node holds its pod there.
#[test]
fn only_local_volumes_are_left_behind() {
    check(
        "pv disk host=n1 local
         pv pinned host=n1
         pvc disk volume=disk bound
         pvc pinned volume=pinned bound
         pod disk volume=disk
         pod pinned volume=pinned
         ? pending",
        expect![[r#"
            disk: asks(pods=1)
            pinned: asks(pods=1) volumes(kubernetes.io/hostname In [n1])
        "#]],
    );
}

/// VOL-17: nodes have attached what their pods use, a shared claim once.
#[test]
fn nodes_know_what_is_attached() {
    check(
        "storageclass fast driver=ebs
         pv nfs
         pvc data class=fast
         pvc nfs volume=nfs bound
         node n1 cpu=8
         csinode n1 limit=ebs:2 limit=efs
         pod a cpu=1 on=n1 volume=data
         pod b cpu=1 on=n1 volume=data volume=nfs volume=missing
         pod done cpu=1 on=n1 volume=done done
         pvc done class=fast
         ? places
         pvc missing class=fast
         ? places
         storageclass fast driver=efs
         ? places
         gone pod a
         gone pod b
         gone csinode n1
         ? places",
        expect![[r#"
            node/n1 Ready has(cpu=8) used(cpu=2 pods=2) attached(ebs shop/data) attaches(ebs:2)
            node/n1 Ready has(cpu=8) used(cpu=2 pods=2) attached(ebs shop/data, ebs shop/missing) attaches(ebs:2)
            node/n1 Ready has(cpu=8) used(cpu=2 pods=2) attached(efs shop/data, efs shop/missing) attaches(ebs:2)
            node/n1 Ready has(cpu=8)
        "#]],
    );
}

/// VLIM-03: what a node's drivers say wins over its type; a driver that says no number has no limit, and one that has
/// said nothing yet has its type's.
#[test]
fn drivers_know_better_than_types() {
    check(
        "type m cpu=4 attach=ebs:25 attach=efs:8
         type l cpu=8 attach=ebs:10
         pool default
         claim c1 pool=default provider=i-1 label=type=m
         claim c2 pool=default request.cpu=1 require=type:In:m|l
         node foreign cpu=4 label=type=m
         csinode foreign limit=ebs:3
         ? places
         node n1 provider=i-1 label=type=m label=registered=true
         ? places
         csinode n1 limit=ebs:20
         ? places
         csinode n1 limit=ebs limit=new:1
         ? places",
        expect![[r#"
            nodeclaim/c1 Joining of default labels(karpenter.sh/nodepool In [default], node.kubernetes.io/instance-type In [m]) attaches(ebs:25 efs:8)
            nodeclaim/c2 Promised of default labels(node.kubernetes.io/instance-type In [l m]) has(cpu=1) attaches(ebs:10 efs:8)
            node/foreign Ready labels(node.kubernetes.io/instance-type In [m]) has(cpu=4) attaches(ebs:3)
            node/n1 Joining of default labels(karpenter.sh/registered In [true], node.kubernetes.io/instance-type In [m]) attaches(ebs:25 efs:8)
            nodeclaim/c2 Promised of default labels(node.kubernetes.io/instance-type In [l m]) has(cpu=1) attaches(ebs:10 efs:8)
            node/foreign Ready labels(node.kubernetes.io/instance-type In [m]) has(cpu=4) attaches(ebs:3)
            node/n1 Joining of default labels(karpenter.sh/registered In [true], node.kubernetes.io/instance-type In [m]) attaches(ebs:20 efs:8)
            nodeclaim/c2 Promised of default labels(node.kubernetes.io/instance-type In [l m]) has(cpu=1) attaches(ebs:10 efs:8)
            node/foreign Ready labels(node.kubernetes.io/instance-type In [m]) has(cpu=4) attaches(ebs:3)
            node/n1 Joining of default labels(karpenter.sh/registered In [true], node.kubernetes.io/instance-type In [m]) attaches(efs:8 new:1)
            nodeclaim/c2 Promised of default labels(node.kubernetes.io/instance-type In [l m]) has(cpu=1) attaches(ebs:10 efs:8)
            node/foreign Ready labels(node.kubernetes.io/instance-type In [m]) has(cpu=4) attaches(ebs:3)
        "#]],
    );
}

/// Pods that wait for a volume are looked at again when something about it changes.
#[test]
fn volumes_wake_the_pods_that_wait_for_them() {
    check(
        "pod web volume=data
         pod other
         pvc data volume=v1 bound
         ? wakes
         pv v1
         ? wakes
         storageclass fast
         ? wakes
         gone pv v1
         ? wakes
         gone pvc data
         ? wakes",
        expect![[r#"
            waiting web
            waiting web
            waiting web
            waiting web
            waiting web
        "#]],
    );
}

/// Attachments are known by their node, which is woken when one comes, moves or goes.
#[test]
fn attachments_belong_to_nodes() {
    check(
        "attachment a1 on=n1 volume=v1
         ? wakes
         attachment a2 on=n1
         ? attached n1
         attachment a1 on=n2 volume=v1
         ? wakes
         ? attached n1
         ? attached n2
         gone attachment a1
         ? wakes
         ? attached n2",
        expect![[r"
            node n1
            a1 volume(v1)
            a2
            node n1, node n2
            a2
            a1 volume(v1)
            node n2
            nothing
        "]],
    );
}
