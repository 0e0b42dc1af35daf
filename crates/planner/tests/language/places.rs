//! Nodes, and claims whose node is still to come.

use std::collections::BTreeSet;

use model::{
    AttachLimits, Attachment, ClaimName, NodeName, Place, PlaceId, PoolName, Requirement, Requirements, ResourceName,
    Resources, Stage, Text, labels,
};

use super::words::{Words, label, number, of_driver, port, requirement, set, taint};

pub(super) fn existing(name: &str, stage: Stage, words: &Words<'_>) -> Place {
    let promised = stage == Stage::Promised;
    let host = Requirements::none().with(labels::HOSTNAME, Requirement::is(name));
    let mut place = Place {
        id: if promised { PlaceId::Claim(ClaimName::new(name)) } else { PlaceId::Node(NodeName::new(name)) },
        pool: None,
        stage,
        requirements: if promised { Requirements::none() } else { host },
        taints: Vec::new(),
        allocatable: Resources::none().with(ResourceName::pods(), 110),
        used: Resources::none(),
        used_by_daemons: Resources::none(),
        host_ports: Vec::new(),
        attached: BTreeSet::new(),
        attach_limits: AttachLimits::new(),
    };
    let hint = "a place has resources, used.*, daemons.*, pool, label, require, taint, port, attach and attached";
    for (key, value) in words.pairs(hint) {
        let (used, daemons) = (key.strip_prefix("used."), key.strip_prefix("daemons."));
        match (key, used, daemons) {
            ("pool", ..) => {
                place.pool = Some(PoolName::new(value));
                place.requirements.add(labels::NODE_POOL, Requirement::is(value));
            }
            ("label" | "require", ..) => {
                let (key, requirement) = if key == "label" { label(value) } else { requirement(value) };
                place.requirements.add(&key, requirement);
            }
            ("taint", ..) => place.taints.push(taint(value)),
            ("port", ..) => place.host_ports.push(port(value)),
            ("attach", ..) => {
                let (driver, limit) = of_driver(value);
                place.attach_limits.insert(driver, number(limit));
            }
            ("attached", ..) => {
                let (driver, handle) = of_driver(value);
                place.attached.insert(Attachment { driver, handle: Text::from(handle) });
            }
            (_, Some(key), _) if set(&mut place.used, key, value) => {}
            (_, _, Some(key)) if set(&mut place.used_by_daemons, key, value) => {}
            _ if set(&mut place.allocatable, key, value) => {}
            _ => words.unknown(key, hint),
        }
    }
    place
}
