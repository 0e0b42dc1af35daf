//! What nodes are labelled with.

use std::collections::BTreeSet;

use crate::common::{class, label, named, of_family, one, types};
use expect_test::{Expect, expect};
use model::{Requirement, Requirements, Undefined};

fn check(name: &str, expected: Expect) {
    let kind = one(&of_family("AL2023", ""), name);
    let text: String = kind.requirements.iter().map(|(key, _)| format!("{key}: {}\n", label(&kind, key))).collect();
    expected.assert_eq(&text);
}

/// AWS-IT-17, AWS-IT-19: tenancy among them.
#[test]
fn a_plain_machine() {
    check(
        "m5.large",
        expect![[r#"
        karpenter.k8s.aws/capacity-reservation-id: absent
        karpenter.k8s.aws/capacity-reservation-interruptible: absent
        karpenter.k8s.aws/capacity-reservation-type: absent
        karpenter.k8s.aws/instance-accelerator-count: absent
        karpenter.k8s.aws/instance-accelerator-manufacturer: absent
        karpenter.k8s.aws/instance-accelerator-name: absent
        karpenter.k8s.aws/instance-capability-flex: false
        karpenter.k8s.aws/instance-category: m
        karpenter.k8s.aws/instance-cpu: 2
        karpenter.k8s.aws/instance-cpu-manufacturer: intel
        karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz: 3100
        karpenter.k8s.aws/instance-ebs-bandwidth: 4750
        karpenter.k8s.aws/instance-encryption-in-transit-supported: false
        karpenter.k8s.aws/instance-family: m5
        karpenter.k8s.aws/instance-generation: 5
        karpenter.k8s.aws/instance-gpu-count: absent
        karpenter.k8s.aws/instance-gpu-manufacturer: absent
        karpenter.k8s.aws/instance-gpu-memory: absent
        karpenter.k8s.aws/instance-gpu-name: absent
        karpenter.k8s.aws/instance-hypervisor: nitro
        karpenter.k8s.aws/instance-local-nvme: absent
        karpenter.k8s.aws/instance-memory: 8192
        karpenter.k8s.aws/instance-network-bandwidth: 750
        karpenter.k8s.aws/instance-size: large
        karpenter.k8s.aws/instance-tenancy: dedicated|default
        karpenter.k8s.aws/nitro-sandbox: absent
        karpenter.sh/capacity-type: on-demand|spot
        kubernetes.io/arch: amd64
        kubernetes.io/os: linux
        node.kubernetes.io/instance-type: m5.large
        node.kubernetes.io/windows-build: absent
        topology.k8s.aws/zone-id: usw2-az1|usw2-az2|usw2-az3|usw2-az4
        topology.kubernetes.io/region: us-west-2
        topology.kubernetes.io/zone: us-west-2a|us-west-2b|us-west-2c|us-west-2d
    "#]],
    );
}

/// AWS-IT-17, AWS-IT-19, AWS-IT-20
#[test]
fn machines_with_something_special() {
    let keys = [
        "category",
        "generation",
        "capability-flex",
        "cpu-manufacturer",
        "ebs-bandwidth",
        "network-bandwidth",
        "hypervisor",
        "encryption-in-transit-supported",
        "local-nvme",
        "gpu-name",
        "gpu-manufacturer",
        "gpu-count",
        "gpu-memory",
        "accelerator-name",
        "accelerator-manufacturer",
        "accelerator-count",
    ];
    let types = types(&of_family("AL2023", ""));
    let line = |name: &&str| {
        let kind = named(&types, name);
        let shown = keys.iter().filter_map(|key| {
            let value = label(&kind, &format!("karpenter.k8s.aws/instance-{key}"));
            (value != "absent").then(|| format!("{key}={value}"))
        });
        let sandbox = label(&kind, "karpenter.k8s.aws/nitro-sandbox");
        format!("{name}: {} sandbox={sandbox}\n", shown.collect::<Vec<_>>().join(" "))
    };
    let names = [
        "m7g.large",
        "c7i-flex.large",
        "m5.metal",
        "m5d.large",
        "t2.micro",
        "r3.large",
        "g4dn.xlarge",
        "p4d.24xlarge",
        "inf1.xlarge",
        "trn1.32xlarge",
        "dl2q.24xlarge",
        "m6a.large",
    ];
    expect![[r#"
        m7g.large: category=m generation=7 capability-flex=false cpu-manufacturer=aws ebs-bandwidth=10000 network-bandwidth=937 hypervisor=nitro encryption-in-transit-supported=true sandbox=true
        c7i-flex.large: category=c generation=7 capability-flex=true cpu-manufacturer=intel ebs-bandwidth=10000 network-bandwidth=390 hypervisor=nitro encryption-in-transit-supported=true sandbox=absent
        m5.metal: category=m generation=5 capability-flex=false cpu-manufacturer=intel ebs-bandwidth=19000 network-bandwidth=25000 hypervisor= encryption-in-transit-supported=false sandbox=absent
        m5d.large: category=m generation=5 capability-flex=false cpu-manufacturer=intel ebs-bandwidth=4750 network-bandwidth=750 hypervisor=nitro encryption-in-transit-supported=false local-nvme=75 sandbox=absent
        t2.micro: category=t generation=2 capability-flex=false cpu-manufacturer=intel hypervisor=xen encryption-in-transit-supported=false sandbox=absent
        r3.large: category=r generation=3 capability-flex=false cpu-manufacturer=intel hypervisor=xen encryption-in-transit-supported=false sandbox=absent
        g4dn.xlarge: category=g generation=4 capability-flex=false cpu-manufacturer=intel ebs-bandwidth=3500 network-bandwidth=5000 hypervisor=nitro encryption-in-transit-supported=true local-nvme=125 gpu-name=t4 gpu-manufacturer=nvidia gpu-count=1 gpu-memory=16384 sandbox=true
        p4d.24xlarge: category=p generation=4 capability-flex=false cpu-manufacturer=intel ebs-bandwidth=19000 network-bandwidth=400000 hypervisor=nitro encryption-in-transit-supported=true local-nvme=8000 gpu-name=a100 gpu-manufacturer=nvidia gpu-count=8 gpu-memory=40960 sandbox=true
        inf1.xlarge: category=inf generation=1 capability-flex=false cpu-manufacturer=intel ebs-bandwidth=4750 network-bandwidth=5000 hypervisor=nitro encryption-in-transit-supported=true accelerator-name=inferentia accelerator-manufacturer=aws accelerator-count=1 sandbox=true
        trn1.32xlarge: category=trn generation=1 capability-flex=false cpu-manufacturer=intel ebs-bandwidth=80000 network-bandwidth=800000 hypervisor=nitro encryption-in-transit-supported=true local-nvme=7600 accelerator-name=trainium accelerator-manufacturer=aws accelerator-count=16 sandbox=absent
        dl2q.24xlarge: category=dl generation=2 capability-flex=false cpu-manufacturer=intel ebs-bandwidth=19000 network-bandwidth=100000 hypervisor=nitro encryption-in-transit-supported=true accelerator-name=qualcomm-ai100 accelerator-manufacturer=qualcomm accelerator-count=8 sandbox=true
        m6a.large: category=m generation=6 capability-flex=false cpu-manufacturer=amd ebs-bandwidth=10000 network-bandwidth=781 hypervisor=nitro encryption-in-transit-supported=true sandbox=absent
    "#]].assert_eq(&names.iter().map(line).collect::<String>());
}

/// AWS-IT-17: operating systems and builds of the families.
#[test]
fn families_differ_in_operating_system() {
    let table = [
        ("AL2023", "m5.large", "linux", "absent"),
        ("Bottlerocket", "m7g.large", "linux", "absent"),
        ("Windows2019", "m5.large", "windows", "10.0.17763"),
        ("Windows2022", "m5.large", "windows", "10.0.20348"),
        ("Windows2025", "m5.large", "windows", "10.0.26100"),
        ("Windows2022", "m7g.large", "absent", "10.0.20348"),
    ];
    for (family, name, system, build) in table {
        let kind = one(&of_family(family, ""), name);
        let found = (label(&kind, "kubernetes.io/os"), label(&kind, "node.kubernetes.io/windows-build"));
        assert_eq!(found, (system.to_owned(), build.to_owned()), "{family} {name}");
    }
}

#[test]
fn the_family_is_the_one_named_or_the_one_of_the_alias() {
    let table = [
        ("amiSelectorTerms: [{alias: al2@latest}]", "AL2"),
        ("amiSelectorTerms: [{alias: al2023@v20240807}]", "AL2023"),
        ("amiSelectorTerms: [{alias: bottlerocket@1.20.4}]", "Bottlerocket"),
        ("amiSelectorTerms: [{alias: windows2019@latest}]", "Windows2019"),
        ("amiSelectorTerms: [{alias: windows2022@latest}]", "Windows2022"),
        ("amiSelectorTerms: [{alias: windows2025@latest}]", "Windows2025"),
        ("amiFamily: Custom\namiSelectorTerms: [{alias: al2023@latest}]", "Custom"),
        ("amiFamily: AL2\namiSelectorTerms: [{id: ami-1}]", "AL2"),
    ];
    for (spec, family) in table {
        assert_eq!(format!("{:?}", class(spec, "").family), family, "{spec}");
    }
}

/// AWS-IT-17: zones are those that the class has subnets in and that offer the type.
#[test]
fn zones_are_those_of_the_subnets() {
    let spec = "amiSelectorTerms: [{alias: al2023@latest}]";
    let table = [
        ("", "us-west-2a|us-west-2b|us-west-2c|us-west-2d", "usw2-az1|usw2-az2|usw2-az3|usw2-az4"),
        ("subnets: [{id: subnet-1, zone: us-west-2b, zoneID: usw2-az1}]", "us-west-2b", "usw2-az1"),
        (
            "subnets: [{id: subnet-1, zone: us-west-2b}, {id: subnet-2, zone: us-west-2b, zoneID: usw2-az1}, \
             {id: subnet-3, zone: us-west-2c}]",
            "us-west-2b|us-west-2c",
            "usw2-az1",
        ),
        ("subnets: [{id: subnet-1, zone: us-west-2a}]", "us-west-2a", "undefined"),
        ("subnets: [{id: subnet-1, zone: elsewhere-1a, zoneID: else-az1}]", "absent", "undefined"),
        ("subnets: []", "absent", "undefined"),
    ];
    for (status, zones, ids) in table {
        let kind = one(&class(spec, status), "m5.large");
        let found = (label(&kind, "topology.kubernetes.io/zone"), label(&kind, "topology.k8s.aws/zone-id"));
        assert_eq!(found, (zones.to_owned(), ids.to_owned()), "{status}");
    }
}

/// Every label of our domain that a type carries may be asked for, and every one that may be asked for is carried or
/// belongs to one launch.
#[test]
fn labels_and_vocabulary_agree() {
    let vocabulary = ec2::vocabulary();
    let mut carried = BTreeSet::new();
    for kind in types(&of_family("AL2023", "")) {
        carried.extend(kind.requirements.iter().map(|(key, _)| key.to_string()));
    }
    assert_eq!(carried.iter().filter(|key| !vocabulary.is_well_known(key)).collect::<Vec<_>>(), Vec::<&String>::new());
    let missing: Vec<&str> = vocabulary.well_known().map(|key| &**key).filter(|key| !carried.contains(*key)).collect();
    assert_eq!(
        missing,
        [
            "karpenter.k8s.aws/placement-group-id",
            "karpenter.k8s.aws/placement-group-partition",
            "karpenter.sh/nodepool"
        ]
    );
}

/// A pool that asks for what the guide's first example asks for gets what it should.
#[test]
fn requirements_select_types() {
    let vocabulary = ec2::vocabulary();
    let wanted = Requirements::none()
        .with("karpenter.k8s.aws/instance-category", Requirement::any_of(["c", "m", "r"]))
        .with("karpenter.k8s.aws/instance-generation", Requirement::new(model::Operator::Gt, ["2"]).unwrap())
        .with("kubernetes.io/arch", Requirement::is("amd64"))
        .with("kubernetes.io/os", Requirement::is("linux"));
    let types = types(&of_family("AL2023", ""));
    let fits = |kind: &&std::sync::Arc<model::InstanceType>| {
        kind.requirements.satisfy(&wanted, Undefined::MayBeGiven(&vocabulary)).is_ok()
    };
    let chosen: Vec<&str> = types.iter().filter(fits).map(|kind| kind.name.as_str()).collect();
    assert!(chosen.contains(&"m5.large") && chosen.contains(&"c7i-flex.large"));
    assert!(!chosen.contains(&"m7g.large") && !chosen.contains(&"t3.large") && !chosen.contains(&"m2.xlarge"));
    assert!(chosen.len() > 500, "{} types", chosen.len());
}
