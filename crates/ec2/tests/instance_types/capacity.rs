//! What nodes have, and what of it pods may use.

use std::collections::BTreeMap;
use std::io::Read;

use crate::common::{amount, class, label, named, of_family, one, one_with, types};
use ec2::Settings;
use expect_test::{Expect, expect};
use model::InstanceType;

const NAMES: [&str; 4] = ["cpu", "memory", "pods", "ephemeral-storage"];

fn check(kind: &InstanceType, expected: Expect) {
    let line = |what: &str, resources| format!("{what}: {resources}\n");
    let text =
        [line("capacity", &kind.capacity), line("overhead", &kind.overhead), line("allocatable", &kind.allocatable)];
    expected.assert_eq(&text.concat());
}

/// AWS-IT-14: the machine whose numbers the documentation works out.
#[test]
fn an_m5_xlarge_is_as_documented() {
    check(
        &one(&of_family("AL2023", ""), "m5.xlarge"),
        expect![[r#"
        capacity: cpu=4 ephemeral-storage=20Gi memory=15155Mi pods=58 vpc.amazonaws.com/pod-eni=18
        overhead: cpu=80m ephemeral-storage=3Gi memory=993Mi
        allocatable: cpu=3920m ephemeral-storage=17Gi memory=14162Mi pods=58 vpc.amazonaws.com/pod-eni=18
    "#]],
    );
}

/// AWS-IT-03
#[test]
fn memory_is_less_what_the_machine_takes() {
    let table = [
        ("m5.xlarge", 0.075, "15155Mi"),
        ("m5.xlarge", 0.0, "16Gi"),
        ("m5.xlarge", 0.2, "13107Mi"),
        // 64 MiB less to begin with on arm64.
        ("m7g.xlarge", 0.075, "15096Mi"),
        ("m7g.xlarge", 0.0, "16320Mi"),
        ("t3.nano", 0.075, "473Mi"),
    ];
    for (name, share, memory) in table {
        let settings = Settings { vm_memory_overhead_percent: share, ..Settings::default() };
        let kind = one_with(&of_family("AL2023", ""), &settings, name);
        assert_eq!(amount(&kind.capacity, "memory"), memory, "{name} less {share}");
    }
}

#[test]
fn memory_that_nodes_reported_goes_before_what_is_computed() {
    let reported = BTreeMap::from([("m5.large".to_owned(), 7_900_i64 << 20)]);
    let types = types(
        &of_family("AL2023", "kubelet: {evictionHard: {memory.available: 10%}}").with_discovered_memory(reported),
    );
    assert_eq!(amount(&named(&types, "m5.large").capacity, "memory"), "7900Mi");
    assert_eq!(amount(&named(&types, "m5.xlarge").capacity, "memory"), "15155Mi");
    // Shares are taken of what is computed: kept for the kubelet 574 MiB, for eviction 757.7 MiB of 7577.
    let kept = named(&types, "m5.large").overhead.get(&model::ResourceName::memory());
    assert_eq!(kept, (574 << 20) + ((7577_i64 << 20) as f64 / 10.0).ceil() as i64);
}

/// AWS-IT-05: the table of the network plugin says the same of every type that both know.
#[test]
fn the_number_of_pods_follows_the_number_of_addresses() {
    let mut text = String::new();
    let compressed = &include_bytes!("../max-pods.txt.gz")[..];
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
    let oracle: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let types = types(&of_family("AL2023", ""));
    let (mut same, mut differences) = (0, Vec::new());
    for kind in &types {
        let Some(expected) = oracle.get(kind.name.as_str()) else { continue };
        match amount(&kind.capacity, "pods") == **expected {
            true => same += 1,
            false => differences.push(format!("{}: {} not {expected}", kind.name, amount(&kind.capacity, "pods"))),
        }
    }
    expect![[r#"
        1319 types agree
    "#]]
    .assert_eq(&format!("{same} types agree\n{}", differences.join("\n")));
}

/// AWS-IT-05, AWS-IT-06, AWS-IT-07
#[test]
fn the_number_of_pods_can_be_set() {
    let efa = "networkInterfaces:\n- {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}\n\
               - {networkCardIndex: 0, deviceIndex: 1, interfaceType: efa-only}\n\
               - {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}\n";
    let table = [
        ("AL2023", "", 0, "58"),
        ("AL2", "", 0, "58"),
        ("Custom", "", 0, "58"),
        ("Bottlerocket", "", 0, "58"),
        ("Windows2022", "", 0, "110"),
        // Interfaces that are not for pods.
        ("AL2023", "", 1, "44"),
        ("AL2023", "", 4, "0"),
        ("AL2023", "", 9, "0"),
        ("AL2023", efa, 0, "44"),
        ("AL2023", efa, 1, "30"),
        ("AL2023", "kubelet: {maxPods: 20}", 1, "20"),
        ("AL2023", "kubelet: {maxPods: 0}", 0, "0"),
        ("Windows2022", "kubelet: {maxPods: 20}", 0, "20"),
        // An expression is not for us to evaluate.
        ("AL2023", "kubelet: {maxPods: \"max_pods - 1\"}", 0, "58"),
        // Four processors.
        ("AL2023", "kubelet: {podsPerCore: 2}", 0, "8"),
        ("AL2023", "kubelet: {podsPerCore: 100}", 0, "58"),
        ("AL2023", "kubelet: {podsPerCore: 0}", 0, "58"),
        ("AL2023", "kubelet: {podsPerCore: 2, maxPods: 5}", 0, "5"),
        ("AL2023", "kubelet: {podsPerCore: 2, maxPods: 100}", 0, "8"),
        ("Windows2022", "kubelet: {podsPerCore: 2}", 0, "8"),
        ("Bottlerocket", "kubelet: {podsPerCore: 2}", 0, "58"),
    ];
    for (family, spec, reserved_enis, pods) in table {
        let settings = Settings { reserved_enis, ..Settings::default() };
        let kind = one_with(&of_family(family, spec), &settings, "m5.xlarge");
        assert_eq!(amount(&kind.capacity, "pods"), pods, "{family} {spec} less {reserved_enis}");
    }
}

/// AWS-IT-08
#[test]
fn pods_have_the_space_of_the_volume_they_are_on() {
    let volume = |device: &str, size: &str| format!("- {{deviceName: {device}, ebs: {{volumeSize: {size}}}}}\n");
    let list = |volumes: &[String]| format!("blockDeviceMappings:\n{}", volumes.concat());
    let both = list(&[volume("/dev/xvda", "30Gi"), volume("/dev/xvdb", "40Gi")]);
    let root = list(&[
        volume("/dev/xvda", "30Gi"),
        "- {deviceName: /dev/xvdz, rootVolume: true, ebs: {volumeSize: 50Gi}}\n".to_owned(),
    ]);
    let snapshot = list(&["- {deviceName: /dev/xvda, ebs: {snapshotID: snap-1}}\n".to_owned()]);
    let other = list(&[volume("/dev/sdq", "100Gi")]);
    let raid = "instanceStorePolicy: RAID0\n".to_owned();
    let table = [
        ("AL2023", String::new(), "m5.large", "20Gi"),
        ("Bottlerocket", String::new(), "m5.large", "20Gi"),
        ("Custom", String::new(), "m5.large", "20Gi"),
        ("Windows2022", String::new(), "m5.large", "50Gi"),
        ("AL2023", both.clone(), "m5.large", "30Gi"),
        ("Bottlerocket", both.clone(), "m5.large", "40Gi"),
        ("Custom", both.clone(), "m5.large", "40Gi"),
        ("Windows2022", both, "m5.large", "50Gi"),
        ("AL2023", root.clone(), "m5.large", "50Gi"),
        ("Bottlerocket", root.clone(), "m5.large", "50Gi"),
        ("AL2023", snapshot.clone(), "m5.large", "20Gi"),
        ("Custom", snapshot, "m5.large", "20Gi"),
        ("AL2023", other, "m5.large", "20Gi"),
        ("AL2023", list(&[volume("/dev/xvda", "100G")]), "m5.large", "100G"),
        // Local disks: 75 GB.
        ("AL2023", String::new(), "m5d.large", "20Gi"),
        ("AL2023", raid.clone(), "m5d.large", "75G"),
        ("AL2023", format!("{raid}{root}"), "m5d.large", "75G"),
        ("AL2023", format!("{raid}{root}"), "m5.large", "50Gi"),
    ];
    let resource = model::ResourceName::new("ephemeral-storage");
    for (family, spec, name, storage) in table {
        let found = one(&of_family(family, &spec), name).capacity.get(&resource);
        assert_eq!(found, model::parse_quantity(&resource, storage).unwrap(), "{family} {name} {spec}");
    }
}

/// AWS-IT-10, AWS-IT-12: accelerators and branch interfaces.
#[test]
fn accelerators_are_counted() {
    let resources =
        ["nvidia.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "vpc.amazonaws.com/pod-eni"];
    let types = types(&of_family("AL2023", ""));
    let line = |name: &&str| {
        let kind = named(&types, name);
        let amounts = resources.map(|resource| amount(&kind.capacity, resource));
        format!("{name}: {}\n", amounts.join(" "))
    };
    let names = ["m5.large", "t3.nano", "g5.xlarge", "p4d.24xlarge", "inf1.6xlarge", "inf2.48xlarge", "trn1.32xlarge"];
    expect![[r#"
        m5.large: - - - 9
        t3.nano: - - - -
        g5.xlarge: 1 - - 4
        p4d.24xlarge: 8 - - 62
        inf1.6xlarge: - 4 16 54
        inf2.48xlarge: - 12 24 107
        trn1.32xlarge: - 16 32 82
    "#]]
    .assert_eq(&names.iter().map(line).collect::<String>());
}

/// AWS-IT-11
#[test]
fn fabric_interfaces_can_be_chosen() {
    let chosen = "networkInterfaces:\n- {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}\n\
                  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}\n";
    let table = [
        ("", "p4d.24xlarge", "4"),
        ("", "m5.large", "-"),
        (chosen, "p4d.24xlarge", "1"),
        ("networkInterfaces: []", "p4d.24xlarge", "-"),
    ];
    for (spec, name, interfaces) in table {
        let kind = one(&of_family("AL2023", spec), name);
        assert_eq!(amount(&kind.capacity, "vpc.amazonaws.com/efa"), interfaces, "{name} {spec}");
    }
}

/// AWS-IT-13
#[test]
fn windows_nodes_have_addresses_for_pods() {
    let resource = "vpc.amazonaws.com/PrivateIPv4Address";
    let table = [
        ("Windows2022", "m5.large", "9"),
        ("Windows2022", "m5.xlarge", "14"),
        // Windows does not run there.
        ("Windows2022", "m7g.large", "-"),
        ("AL2023", "m5.large", "-"),
    ];
    for (family, name, addresses) in table {
        let kind = one(&of_family(family, ""), name);
        assert_eq!(amount(&kind.capacity, resource), addresses, "{family} {name}");
    }
}

/// AWS-IT-15: kept for the kubelet, 11 MiB per pod that could have an address, or per pod.
#[test]
fn memory_for_the_kubelet_follows_addresses_or_pods() {
    let table = [
        ("AL2023", "", 0, 11 * 58 + 255),
        ("AL2023", "kubelet: {maxPods: 10}", 0, 11 * 58 + 255),
        ("AL2023", "", 1, 11 * 58 + 255),
        ("AL2", "kubelet: {maxPods: 10}", 0, 11 * 58 + 255),
        ("Custom", "kubelet: {maxPods: 10}", 0, 11 * 58 + 255),
        ("Bottlerocket", "", 0, 11 * 58 + 255),
        ("Bottlerocket", "kubelet: {maxPods: 10}", 0, 11 * 10 + 255),
        ("Bottlerocket", "", 1, 11 * 44 + 255),
        ("Windows2022", "", 0, 11 * 110 + 255),
        ("AL2023", "kubelet: {kubeReserved: {memory: 300Mi}}", 0, 300),
    ];
    for (family, spec, reserved_enis, mebibytes) in table {
        let settings = Settings { reserved_enis, ..Settings::default() };
        let kind = one_with(&of_family(family, spec), &settings, "m5.xlarge");
        let eviction = 100;
        let kept = kind.overhead.get(&model::ResourceName::memory());
        assert_eq!(kept, (mebibytes + eviction) << 20, "{family} {spec} {reserved_enis}");
    }
}

/// AWS-IT-14, AWS-IT-16
#[test]
fn what_nodes_keep_can_be_set() {
    let line = |spec: &str| {
        let kind = one(&of_family("AL2023", spec), "m5.xlarge");
        format!("{}\n  keeps {}\n", if spec.is_empty() { "nothing set" } else { spec }, kind.overhead)
    };
    let table = [
        "",
        "kubelet: {kubeReserved: {cpu: 1, memory: 1Gi, ephemeral-storage: 2Gi, pid: 100}}",
        "kubelet: {systemReserved: {cpu: 100m, memory: 100Mi, ephemeral-storage: 1Gi}}",
        "kubelet: {evictionHard: {memory.available: 200Mi, nodefs.available: 1Gi}}",
        "kubelet: {evictionHard: {memory.available: 5%, nodefs.available: 20%}}",
        "kubelet: {evictionHard: {memory.available: 100%, nodefs.available: 100%}}",
        "kubelet: {evictionSoft: {memory.available: 50%}, evictionSoftGracePeriod: {memory.available: 1m}}",
        "kubelet: {kubeReserved: {cpu: vcpus * 10}}",
    ];
    expect![[r#"
        nothing set
          keeps cpu=80m ephemeral-storage=3Gi memory=993Mi
        kubelet: {kubeReserved: {cpu: 1, memory: 1Gi, ephemeral-storage: 2Gi, pid: 100}}
          keeps cpu=1 ephemeral-storage=4Gi memory=1124Mi
        kubelet: {systemReserved: {cpu: 100m, memory: 100Mi, ephemeral-storage: 1Gi}}
          keeps cpu=180m ephemeral-storage=4Gi memory=1093Mi
        kubelet: {evictionHard: {memory.available: 200Mi, nodefs.available: 1Gi}}
          keeps cpu=80m ephemeral-storage=2Gi memory=1093Mi
        kubelet: {evictionHard: {memory.available: 5%, nodefs.available: 20%}}
          keeps cpu=80m ephemeral-storage=5Gi memory=1690368Ki
        kubelet: {evictionHard: {memory.available: 100%, nodefs.available: 100%}}
          keeps cpu=80m ephemeral-storage=1Gi memory=893Mi
        kubelet: {evictionSoft: {memory.available: 50%}, evictionSoftGracePeriod: {memory.available: 1m}}
          keeps cpu=80m ephemeral-storage=3Gi memory=993Mi
        kubelet: {kubeReserved: {cpu: vcpus * 10}}
          keeps cpu=80m ephemeral-storage=3Gi memory=993Mi
    "#]]
    .assert_eq(&table.map(line).concat());
}

/// A machine too small for what it keeps has nothing to give, rather than less than nothing.
#[test]
fn nothing_is_negative() {
    let class = of_family("AL2023", "kubelet: {systemReserved: {memory: 100Gi}}");
    for kind in types(&class) {
        assert!(kind.allocatable.iter().all(|(_, amount)| amount >= 0), "{}: {}", kind.name, kind.allocatable);
    }
}

#[test]
fn every_machine_has_the_usual_resources() {
    for kind in types(&class("amiSelectorTerms: [{alias: bottlerocket@latest}]", "")) {
        for name in NAMES {
            assert!(kind.capacity.iter().any(|(resource, _)| resource.as_str() == name), "{} has no {name}", kind.name);
        }
        assert_ne!(label(&kind, "kubernetes.io/arch"), "absent", "{}", kind.name);
    }
}
