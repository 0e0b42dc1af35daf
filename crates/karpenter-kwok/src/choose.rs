//! Which machine a claim gets.

use std::cmp::Ordering;
use std::sync::Arc;

use api::NodeClaim;
use cloud::LaunchError;
use model::{InstanceType, Offering, Operator, Price, Requirements, ResourceName, Resources, labels};

use crate::{claim, hash};

/// What a claim is launched with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The machine.
    pub instance_type: Arc<InstanceType>,
    /// How it is bought.
    pub offering: Offering,
}

/// Why a claim cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The claim does not list instance types; a claim that stands alone must.
    #[error("instance type requirement not found")]
    NoInstanceTypeRequirement,
    /// No listed type has a matching offering for sale and enough room.
    #[error("none of the listed instance types has an offering for sale that fits the claim")]
    NothingFits,
}

impl From<ChoiceError> for LaunchError {
    fn from(error: ChoiceError) -> Self {
        let message = error.to_string();
        match error {
            ChoiceError::NothingFits => Self::InsufficientCapacity { message },
            ChoiceError::NoInstanceTypeRequirement => Self::Failed { message },
        }
    }
}

/// The listed type that can be bought for least, at its lowest price.
///
/// Equal types and claims give equal choices. Types of one price are taken in the order of their names; among the
/// offerings of one price a hash of pool and claim decides, which spreads claims over zones.
pub fn choose(types: &[Arc<InstanceType>], claim: &NodeClaim) -> Result<Choice, ChoiceError> {
    let required = claim::requirements(claim);
    let listed = required.get(labels::INSTANCE_TYPE).ok_or(ChoiceError::NoInstanceTypeRequirement)?;
    if matches!(listed.operator(), Operator::Exists | Operator::NotIn) {
        return Err(ChoiceError::NoInstanceTypeRequirement);
    }
    // A launched claim carries its zone and type as labels: choosing again after a restart ends at the same machine.
    let wanted = required.and(&claim::label_requirements(claim));
    // What no type of ours has, a node gets from elsewhere: an overlay promised it.
    let ours = |name: &ResourceName| types.iter().any(|kind| kind.allocatable.names(name));
    let asked = claim::requests(claim);
    let requests: Resources =
        asked.iter().filter(|(name, _)| ours(name)).map(|(name, all)| (name.clone(), all)).collect();
    let fitting = types.iter().filter(|kind| {
        listed.admits(kind.name.as_str())
            && kind.requirements.intersect(&wanted).is_ok()
            && requests.fit_into(&kind.allocatable).is_ok()
    });
    let priced = fitting.filter_map(|kind| kind.cheapest_price(&wanted).map(|price| (price, kind)));
    let (price, instance_type) = priced.min_by(cheaper).ok_or(ChoiceError::NothingFits)?;
    let offering = offering_at(instance_type, &wanted, price, claim).ok_or(ChoiceError::NothingFits)?;
    Ok(Choice { instance_type: Arc::clone(instance_type), offering: offering.clone() })
}

fn cheaper(left: &(Price, &Arc<InstanceType>), right: &(Price, &Arc<InstanceType>)) -> Ordering {
    (left.0, &left.1.name).cmp(&(right.0, &right.1.name))
}

fn offering_at<'a>(
    instance_type: &'a InstanceType,
    wanted: &'a Requirements,
    price: Price,
    claim: &NodeClaim,
) -> Option<&'a Offering> {
    let mut equal: Vec<&Offering> =
        instance_type.offerings_for(wanted).filter(|offering| offering.price == price).collect();
    equal.sort_by(|left, right| left.requirements.cmp(&right.requirements));
    let position = hash::position(&[claim::pool(claim), claim::name(claim)], equal.len())?;
    equal.get(position).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::instance_types::built_in;

    fn claim(name: &str, requirements: &Value, requests: &Value) -> NodeClaim {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "default"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": requirements,
                "resources": {"requests": requests},
            },
        });
        serde_json::from_value(claim).unwrap()
    }

    fn types_in(names: &[&str]) -> Value {
        json!({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names})
    }

    fn shown(choice: &Result<Choice, ChoiceError>) -> String {
        match choice {
            Ok(Choice { instance_type, offering }) => {
                format!("{} {}", instance_type.name, offering.capacity_type().as_str())
            }
            Err(error) => error.to_string(),
        }
    }

    const ON_DEMAND: &str = "on-demand";

    fn capacity_type(value: &str) -> Value {
        json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": [value]})
    }

    /// KWOK-02, KWOK-03: the cheapest of the listed types, or why there is none.
    #[test]
    fn the_cheapest_listed_type_is_taken() {
        let (small, large, arm) = ("c-2x-amd64-linux", "c-8x-amd64-linux", "c-2x-arm64-linux");
        let arch = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]});
        let nothing = "none of the listed instance types has an offering for sale that fits the claim";
        let unreadable = json!({"key": "kubernetes.io/arch", "operator": "Gt", "values": ["x"]});
        let missing = "instance type requirement not found";
        let table = [
            (json!([types_in(&[large, small])]), json!({}), "c-2x-amd64-linux spot"),
            (json!([types_in(&[large, small]), capacity_type(ON_DEMAND)]), json!({}), "c-2x-amd64-linux on-demand"),
            (json!([types_in(&[small, arm])]), json!({}), "c-2x-amd64-linux spot"),
            (json!([types_in(&[small, arm]), arch]), json!({}), "c-2x-arm64-linux spot"),
            (json!([types_in(&[large, small])]), json!({"cpu": "2"}), "c-8x-amd64-linux spot"),
            (json!([types_in(&[small])]), json!({"cpu": "2"}), nothing),
            (json!([types_in(&["m5.large"])]), json!({}), nothing),
            (json!([types_in(&[small]), capacity_type("reserved")]), json!({}), nothing),
            (json!([]), json!({}), missing),
            (json!([{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}]), json!({}), missing),
            (
                json!([{"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": [large]}]),
                json!({}),
                missing,
            ),
            (json!([capacity_type(ON_DEMAND)]), json!({}), missing),
            (json!([types_in(&[small]), unreadable]), json!({}), nothing),
        ];
        for (requirements, requests, expected) in table {
            let chosen = choose(&built_in(), &claim("default-abc", &requirements, &requests));
            assert_eq!(shown(&chosen), expected, "{requirements} {requests}");
        }
    }

    /// KWOK-02. DIFFERS: the zone comes from a hash of pool and claim, not by chance, so that a repeated launch lands
    /// in the same zone.
    #[test]
    fn zones_of_one_price_are_spread_and_repeat() {
        let requirements = json!([types_in(&["c-2x-amd64-linux"])]);
        let zone = |name: &str| {
            let choice = choose(&built_in(), &claim(name, &requirements, &json!({}))).unwrap();
            assert_eq!(choice.offering.capacity_type().as_str(), "spot", "the cheapest offering, whatever the zone");
            choice.offering.zone().unwrap().to_string()
        };
        let names: Vec<String> = (0..40).map(|number| format!("default-{number}")).collect();
        let zones: BTreeSet<String> = names.iter().map(|name| zone(name)).collect();
        assert_eq!(zones.len(), 4);
        assert!(names.iter().all(|name| zone(name) == zone(name)));
    }

    #[test]
    fn a_launched_claim_is_given_the_same_machine_again() {
        let requirements = json!([types_in(&["c-2x-amd64-linux", "c-8x-amd64-linux"])]);
        let mut launched = claim("default-abc", &requirements, &json!({}));
        let labels = launched.metadata.labels.get_or_insert_default();
        labels.insert("node.kubernetes.io/instance-type".into(), "c-8x-amd64-linux".into());
        labels.insert("topology.kubernetes.io/zone".into(), "test-zone-c".into());
        let choice = choose(&built_in(), &launched).unwrap();
        assert_eq!(choice.instance_type.name.as_str(), "c-8x-amd64-linux");
        assert_eq!(choice.offering.zone().map(|zone| &**zone), Some("test-zone-c"));
    }

    #[test]
    fn only_what_ran_out_is_planned_anew() {
        use cloud::Next;
        assert_eq!(LaunchError::from(ChoiceError::NothingFits).next(), Next::Replan);
        let retried = LaunchError::from(ChoiceError::NoInstanceTypeRequirement);
        assert_eq!(
            (retried.next(), retried.to_string()),
            (Next::Retry { after: None }, "instance type requirement not found".to_owned(),)
        );
    }
}
