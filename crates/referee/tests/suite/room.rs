//! Filters that look at what is left of a node.

use expect_test::expect;

use crate::check;

#[test]
fn requests_must_fit_what_bound_pods_leave() {
    check(
        "node a cpu=2 memory=2Gi
         node b cpu=2 memory=2Gi
         node c cpu=1 memory=1Gi
         pod one @a cpu=1500m
         pod two @b cpu=500m memory=1Gi
         try p cpu=1500m memory=1Gi",
        expect![[r#"
            a: Insufficient cpu
            b: ok
            c: Insufficient cpu
        "#]],
    );
}

#[test]
fn extended_resources_must_be_there() {
    check(
        "node a use:nvidia.com/gpu=1
         node b use:nvidia.com/gpu=1
         node c
         pod one @a use:nvidia.com/gpu=1
         try p use:nvidia.com/gpu=1",
        expect![[r#"
            a: Insufficient nvidia.com/gpu
            b: ok
            c: Insufficient nvidia.com/gpu
        "#]],
    );
    check(
        "node a
         try p use:nvidia.com/gpu=0",
        expect![[r#"
            a: ok
        "#]],
    );
}

#[test]
fn the_number_of_pods_counts_even_without_requests() {
    check(
        "node a pods=2
         node b pods=1
         pod one @a
         pod two @b
         try p",
        expect![[r#"
            a: ok
            b: Too many pods
        "#]],
    );
}

#[test]
fn a_node_that_is_overdrawn_in_one_resource_may_have_room_in_others() {
    check(
        "node a cpu=1
         pod one @a cpu=2
         try p memory=1Gi",
        expect![[r#"
            a: ok
        "#]],
    );
}

#[test]
fn a_bound_pod_does_not_stand_in_its_own_way() {
    check(
        "node a cpu=1 pods=1
         pod p @a cpu=1 port=80 label:app=web without=host/app=web
         try p cpu=1 port=80 label:app=web without=host/app=web",
        expect![[r#"
            a: ok
        "#]],
    );
}

#[test]
fn host_ports_collide_by_port_protocol_and_address() {
    let cluster = "
        node a
        node b
        node c
        node d
        pod any @a port=80
        pod one @b port=TCP/10.0.0.1/80
        pod udp @c port=UDP/0.0.0.0/80
        pod other @d port=81";
    check(
        &format!("{cluster}\ntry p port=80"),
        expect![[r#"
        a: node(s) didn't have free ports for the requested pod ports
        b: node(s) didn't have free ports for the requested pod ports
        c: ok
        d: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p port=TCP/10.0.0.2/80"),
        expect![[r#"
        a: node(s) didn't have free ports for the requested pod ports
        b: ok
        c: ok
        d: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p port=UDP//80"),
        expect![[r#"
        a: ok
        b: ok
        c: node(s) didn't have free ports for the requested pod ports
        d: ok
    "#]],
    );
}

#[test]
fn volumes_are_attached_once_per_node_and_counted_by_driver() {
    let cluster = "
        node full attach:ebs=1
        node room attach:ebs=2
        node free
        pod one @full volume=ebs/x
        pod two @room volume=ebs/x
        pod three @free volume=ebs/x";
    check(
        &format!("{cluster}\ntry p volume=ebs/y"),
        expect![[r#"
        free: ok
        full: node(s) exceed max volume count
        room: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p volume=ebs/x volume=efs/z"),
        expect![[r#"
        free: ok
        full: ok
        room: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p volume=ebs/y volume=ebs/z"),
        expect![[r#"
        free: ok
        full: node(s) exceed max volume count
        room: node(s) exceed max volume count
    "#]],
    );
}

#[test]
fn volumes_bind_pods_to_where_they_are() {
    let cluster = "
        node a zone=a
        node b zone=b
        node bare";
    check(
        &format!("{cluster}\ntry p bound-in=ebs/x/a"),
        expect![[r#"
        a: ok
        b: node(s) didn't match PersistentVolume's node affinity
        bare: node(s) didn't match PersistentVolume's node affinity
    "#]],
    );
    check(
        &format!("{cluster}\ntry p made-in=ebs/x/a"),
        expect![[r#"
        a: ok
        b: node(s) didn't find available persistent volumes to bind
        bare: node(s) didn't find available persistent volumes to bind
    "#]],
    );
    check(
        &format!("{cluster}\ntry p zoned=ebs/x/a"),
        expect![[r#"
        a: ok
        b: node(s) had no available volume zone
        bare: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p bound-in=ebs/x/a made-in=ebs/y/b"),
        expect![[r#"
        a: node(s) didn't find available persistent volumes to bind
        b: node(s) didn't match PersistentVolume's node affinity
        bare: node(s) didn't match PersistentVolume's node affinity, node(s) didn't find available persistent volumes to bind
    "#]],
    );
}

#[test]
fn a_volume_for_one_pod_has_one_user_in_the_whole_cluster() {
    check(
        "node a
         node b
         pod one @a alone=ebs/x
         try p alone=ebs/x",
        expect![[r#"
            a: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod
            b: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod
        "#]],
    );
}
