use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use model::{CapacityType, Price};

use super::*;
use crate::story::{Barren, Moved, Nodes, Objects, PodsOf, Refused, Scaled, Warned, Welcomed};
use crate::summary::{PodWaitSeconds, Totals};

fn check(news: Vec<News>, expected: &Expect) {
    let lines = news.into_iter().enumerate().map(|(index, news)| {
        let at = Duration::from_secs(59 + 61 * index as u64);
        let text = line(&Line { at, news }, Paint::Never);
        assert!(text.lines().all(|line| columns(line) <= WIDTH), "{text}");
        text
    });
    expected.assert_eq(&(lines.collect::<Vec<_>>().join("\n") + "\n"));
}

fn offer(name: &str, zone: &str, capacity_type: CapacityType, dollars: f64) -> Offer {
    Offer {
        instance_type: name.to_owned(),
        zone: zone.to_owned(),
        capacity_type,
        price: Some(Price::from_dollars(dollars)),
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{prefix}-{index}")).collect()
}

fn machines(count: usize) -> Vec<Machine> {
    let machine =
        |index| Machine { claim: format!("default-{index}"), node: Some(format!("ip-10-0-0-{index}.ec2.internal")) };
    (0..count).map(machine).collect()
}

fn some_object(kind: &str, namespace: Option<&str>, name: &str) -> ObjectName {
    ObjectName { kind: kind.to_owned(), namespace: namespace.map(str::to_owned), name: name.to_owned() }
}

#[test]
fn what_people_do() {
    let objects = vec![
        some_object("NodePool", None, "default"),
        some_object("Deployment", Some("default"), "web"),
        some_object("Deployment", Some("shop"), "web"),
    ];
    let many = (0..12).map(|index| some_object("Deployment", Some("default"), &format!("workload-{index}"))).collect();
    check(
        vec![
            News::Applied(Objects { objects }),
            News::Applied(Objects { objects: many }),
            News::Scaled(Scaled { object: some_object("Deployment", Some("default"), "web"), from: 0, to: 10 }),
        ],
        &expect![[r#"
            00:00:59  applied       NodePool default, Deployment web, Deployment shop/web
            00:02:00  applied       Deployment workload-0, Deployment workload-1, Deployment workload-2 and 9 more
            00:03:01  scaled        Deployment web from 0 to 10
        "#]],
    );
}

#[test]
fn decisions_say_why() {
    let decided = |nodes: u64, second: bool| Decided {
        pool: "default".to_owned(),
        nodes,
        pods: BTreeMap::from([("web".to_owned(), 7 * nodes)]),
        requests: BTreeMap::from([("cpu".to_owned(), "7".to_owned()), ("pods".to_owned(), "7".to_owned())]),
        types: if second { 60 } else { 1 },
        chosen: offer("c7a.2xlarge", "us-east-1b", CapacityType::Spot, 0.1342),
        runner_up: second.then(|| offer("c6a.2xlarge", "us-east-1a", CapacityType::Spot, 0.1351)),
        other_capacity_types: vec![offer("c6a.2xlarge", "us-east-1a", CapacityType::OnDemand, 0.306)],
    };
    let mixed = Decided {
        pods: BTreeMap::from([("index".to_owned(), 1), ("web".to_owned(), 2)]),
        other_capacity_types: Vec::new(),
        ..decided(1, false)
    };
    let place = "ip-10-0-0-1.ec2.internal".to_owned();
    let reasons = vec![
        "nodepool \"default\": did not tolerate taint team=search:NoSchedule; add a toleration to the pod or use another NodePool"
            .to_owned(),
        "nodepool \"search\": no instance type has enough resources, cpu: 900 wanted, 192 there".to_owned(),
    ];
    check(
        vec![
            News::Pending(PodsOf { workload: "web".to_owned(), pods: names("web", 14) }),
            News::Pending(PodsOf { workload: "lone".to_owned(), pods: names("lone", 1) }),
            News::Decided(Box::new(decided(2, true))),
            News::Decided(Box::new(decided(1, false))),
            News::Decided(Box::new(mixed)),
            News::Nominated(Moved { workload: "web".to_owned(), pods: names("web", 2), place }),
            News::Refused(Refused { workload: "web".to_owned(), pods: names("web", 2), reasons }),
            News::Refused(Refused { workload: "web".to_owned(), pods: names("web", 1), reasons: Vec::new() }),
            News::Barren(Barren { pool: "default".to_owned(), reason: "no instance type is there".to_owned() }),
        ],
        &expect![[r#"
            00:00:59  pending       14 pods (web) fit no node
            00:02:00  pending       1 pod (lone) fits no node
            00:03:01  decided       2 nodes of nodepool default for 14 pods (web): 7 cpu each
                                    c7a.2xlarge spot in us-east-1b at $0.1342/h, the cheapest of 60 listed types
                                    runner-up c6a.2xlarge spot in us-east-1a at $0.1351/h; on-demand from $0.3060/h (c6a.2xlarge)
            00:04:02  decided       1 node of nodepool default for 7 pods (web): 7 cpu
                                    c7a.2xlarge spot in us-east-1b at $0.1342/h, the only type listed
                                    on-demand from $0.3060/h (c6a.2xlarge)
            00:05:03  decided       1 node of nodepool default for 3 pods (1 index, 2 web): 7 cpu
                                    c7a.2xlarge spot in us-east-1b at $0.1342/h, the only type listed
            00:06:04  nominated     2 pods (web) will go to ip-10-0-0-1.ec2.internal
            00:07:05  refused       2 pods (web) get no node
                                    nodepool "default": did not tolerate taint team=search:NoSchedule; add a toleration to the pod
                                    or use another NodePool
                                    nodepool "search": no instance type has enough resources, cpu: 900 wanted, 192 there
            00:08:06  refused       1 pod (web) gets no node
                                    there is no nodepool
            00:09:07  barren        nodepool "default" can make no node at all: no instance type is there
        "#]],
    );
}

#[test]
fn nodes_come_and_go() {
    let launched = |count: usize, as_decided: bool| Launched {
        pool: "default".to_owned(),
        claims: names("default", count),
        bought: offer("c7a.2xlarge", "us-east-1b", CapacityType::Spot, 0.1342),
        as_decided: Some(as_decided),
    };
    let joined = |count: usize| Joined {
        pool: "default".to_owned(),
        machines: machines(count),
        after: Duration::from_millis(41_700),
    };
    let bound = |count: usize, nodes: usize| Welcomed {
        workload: "web".to_owned(),
        pods: names("web", count),
        nodes: machines(nodes).iter().map(|machine| machine.name().to_owned()).collect::<BTreeSet<String>>(),
        waited: Duration::from_millis(4_260),
    };
    let emptied = |count: usize| Nodes { pool: "default".to_owned(), nodes: names("ip-10-0-0", count) };
    let removing = |count: usize, reason: Option<&str>| Removing {
        pool: "default".to_owned(),
        machines: machines(count),
        pods: count - 1,
        reason: reason.map(str::to_owned),
    };
    let removed = |count: usize| Removed {
        pool: "default".to_owned(),
        machines: machines(count),
        used: Duration::from_secs(2352),
        cost_usd: 0.087_7,
    };
    check(
        vec![
            News::Launched(launched(1, true)),
            News::Launched(launched(3, false)),
            News::Registered(joined(1)),
            News::Registered(joined(2)),
            News::Initialized(joined(1)),
            News::Initialized(joined(2)),
            News::Bound(bound(10, 2)),
            News::Bound(bound(1, 1)),
            News::Emptied(emptied(1)),
            News::Emptied(emptied(2)),
            News::Removing(removing(1, Some("empty"))),
            News::Removing(removing(9, None)),
            News::Removed(removed(1)),
            News::Removed(removed(2)),
        ],
        &expect![[r#"
            00:00:59  launched      default-0 as c7a.2xlarge spot in us-east-1b at $0.1342/h
            00:02:00  launched      3 nodeclaims as c7a.2xlarge spot in us-east-1b at $0.1342/h each
                                    default-0, default-1, default-2
                                    the cloud's choice among the listed types
            00:03:01  registered    default-0 as ip-10-0-0-0.ec2.internal, 41s after launch
            00:04:02  registered    2 nodes, 41s after launch at most
                                    default-0 as ip-10-0-0-0.ec2.internal, default-1 as ip-10-0-0-1.ec2.internal
            00:05:03  initialized   ip-10-0-0-0.ec2.internal, 41s after launch
            00:06:04  initialized   2 nodes, 41s after launch at most
            00:07:05  bound         10 pods (web) to 2 nodes after waiting 4.2s at most
            00:08:06  bound         1 pod (web) to ip-10-0-0-0.ec2.internal after waiting 4.2s at most
            00:09:07  emptied       ip-10-0-0-0 has no pods left
            00:10:08  emptied       2 nodes have no pods left
                                    ip-10-0-0-0, ip-10-0-0-1
            00:11:09  removing      ip-10-0-0-0.ec2.internal because it is empty
            00:12:10  removing      9 nodes with 8 pods
                                    ip-10-0-0-0.ec2.internal, ip-10-0-0-1.ec2.internal, ip-10-0-0-2.ec2.internal and 6 more
            00:13:11  removed       ip-10-0-0-0.ec2.internal after 39m12s for $0.0877
            00:14:12  removed       2 nodes after 39m12s in all for $0.0877
                                    ip-10-0-0-0.ec2.internal, ip-10-0-0-1.ec2.internal
        "#]],
    );
}

#[test]
fn bad_news_are_wrapped() {
    let warned = Warned {
        reason: "InsufficientCapacityError".to_owned(),
        message: "NodeClaim default-0 event: ".to_owned()
            + &"creating instance, insufficient capacity, ".repeat(4)
            + "no more",
        about: vec![some_object("NodeClaim", None, "default-0")],
    };
    check(
        vec![News::Warned(warned)],
        &expect![[r#"
            00:00:59  warning       InsufficientCapacityError: NodeClaim default-0 event: creating instance, insufficient capacity,
                                    creating instance, insufficient capacity, creating instance, insufficient capacity, creating
                                    instance, insufficient capacity, no more
                                    NodeClaim default-0
        "#]],
    );
}

#[test]
fn the_beginning_and_the_end() {
    let started = Started { scenario: "inflate".to_owned(), seed: 7, cloud: "AWS".to_owned() };
    let text = line(&Line { at: Duration::ZERO, news: News::Started(started) }, Paint::Never);
    let end = Summary {
        pending_pods: 0,
        nodes: 1,
        node_hours: 1.31,
        cost_usd: 0.2213,
        pod_wait_seconds: PodWaitSeconds { p50: 48.2, p99: 51.0 },
        totals: Totals { bound: 10, launched: 2, elapsed: Duration::from_secs(3600) },
    };
    expect![[r#"
        Story inflate, seed 7: an embedded Kubernetes and an embedded AWS in this process, in virtual time.
        Types, zones and on-demand prices are EC2's; spot prices are plausible, not current.

        Summary after 01:00:00 of virtual time
          pods    10 got a node, 0 pending
          waited  p50 48.2s, p99 51.0s from creation to binding
          nodes   2 launched, 1 left, 1.31 node-hours
          cost    $0.2213"#]]
    .assert_eq(&(text + &summary(&end, Paint::Never)));
}

#[test]
fn durations_are_short() {
    for (millis, expected) in [
        (0, "0.0s"),
        (4_260, "4.2s"),
        (10_000, "10s"),
        (119_999, "119s"),
        (120_000, "2m00s"),
        (2_352_000, "39m12s"),
        (7_200_000, "2h00m"),
    ] {
        assert_eq!(span(Duration::from_millis(millis)), expected);
    }
}
