//! What the cluster's scheduler is configured with, as far as it changes where pods may go.

use std::fmt;

use model::{Inclusion, Selector, SpreadConstraint, Text};
use serde::Deserialize;
use serde_json::Value;

use crate::label_syntax::check_qualified_name;
use crate::lower::inclusion;

/// Spread constraints for pods that state none of their own. Their selector is deduced for each pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultSpread {
    /// Those that must hold.
    pub hard: Vec<SpreadConstraint>,
    /// Those that should.
    pub soft: Vec<SpreadConstraint>,
}

impl DefaultSpread {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hard.is_empty() && self.soft.is_empty()
    }

    /// Reads YAML or JSON; nothing at all means no constraints. The rules are those of the scheduler itself: what is
    /// accepted here, it accepts too. Fields that nobody knows are refused.
    pub fn parse(text: &str) -> Result<Self, SchedulerConfigError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let document: Document = serde_yaml_ng::from_str(text)
            .map_err(|error| SchedulerConfigError::Unreadable { error: error.to_string() })?;
        let constraints = document.pod_topology_spread.unwrap_or_default().default_constraints;
        let mut spread = Self::default();
        for (index, written) in constraints.iter().enumerate() {
            written.check().map_err(|fault| SchedulerConfigError::Invalid { index, fault })?;
            let same = |other: &Constraint| {
                other.topology_key == written.topology_key && other.when_unsatisfiable == written.when_unsatisfiable
            };
            if let Some(first) = constraints.iter().take(index).position(same) {
                return Err(SchedulerConfigError::Invalid { index, fault: ConstraintFault::Repeats { first } });
            }
            let list = if written.when_unsatisfiable == "ScheduleAnyway" { &mut spread.soft } else { &mut spread.hard };
            list.push(written.lower());
        }
        Ok(spread)
    }
}

/// Why a scheduler configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerConfigError {
    /// No such document.
    #[error("decoding scheduler config, {error}")]
    Unreadable {
        /// What the reader said.
        error: String,
    },
    /// A constraint that the scheduler would refuse.
    #[error("validating scheduler config, podTopologySpread.defaultConstraints[{index}]{fault}")]
    Invalid {
        /// Which one.
        index: usize,
        /// What is wrong with it.
        fault: ConstraintFault,
    },
}

/// What is wrong with a default constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstraintFault {
    /// A skew that allows no pod at all.
    MaxSkew,
    /// No label.
    NoTopologyKey,
    /// No label's name.
    TopologyKey(String),
    /// Neither of the two answers.
    WhenUnsatisfiable(String),
    /// A selector, which would count the pods of all workloads alike.
    LabelSelector,
    /// Keys that would be ignored.
    MatchLabelKeys,
    /// The same as one before.
    Repeats {
        /// The one before.
        first: usize,
    },
}

impl fmt::Display for ConstraintFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxSkew => formatter.write_str(".maxSkew must be greater than 0"),
            Self::NoTopologyKey => formatter.write_str(".topologyKey must be set"),
            Self::TopologyKey(key) => write!(formatter, ".topologyKey \"{key}\" is not a valid label name"),
            Self::WhenUnsatisfiable(answer) => write!(
                formatter,
                ".whenUnsatisfiable \"{answer}\" must be one of \"DoNotSchedule\" or \"ScheduleAnyway\""
            ),
            Self::LabelSelector => {
                formatter.write_str(".labelSelector must not be set, as selectors are deduced for each pod")
            }
            Self::MatchLabelKeys => {
                formatter.write_str(".matchLabelKeys must not be set, as it has no effect on default constraints")
            }
            Self::Repeats { first } => write!(formatter, " is a duplicate of [{first}]"),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    pod_topology_spread: Option<PodTopologySpread>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PodTopologySpread {
    #[serde(default)]
    default_constraints: Vec<Constraint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Constraint {
    #[serde(default)]
    max_skew: i32,
    #[serde(default)]
    topology_key: String,
    #[serde(default)]
    when_unsatisfiable: String,
    min_domains: Option<i32>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
    label_selector: Option<Value>,
    #[serde(default)]
    match_label_keys: Vec<String>,
}

impl Constraint {
    fn check(&self) -> Result<(), ConstraintFault> {
        let known = ["DoNotSchedule", "ScheduleAnyway"].contains(&self.when_unsatisfiable.as_str());
        let faults = [
            (self.max_skew <= 0, ConstraintFault::MaxSkew),
            (self.topology_key.is_empty(), ConstraintFault::NoTopologyKey),
            (
                check_qualified_name(&self.topology_key).is_err(),
                ConstraintFault::TopologyKey(self.topology_key.clone()),
            ),
            (!known, ConstraintFault::WhenUnsatisfiable(self.when_unsatisfiable.clone())),
            (self.label_selector.is_some(), ConstraintFault::LabelSelector),
            (!self.match_label_keys.is_empty(), ConstraintFault::MatchLabelKeys),
        ];
        faults.into_iter().find_map(|(found, fault)| found.then_some(fault)).map_or(Ok(()), Err)
    }

    fn lower(&self) -> SpreadConstraint {
        SpreadConstraint {
            topology_key: Text::from(model::labels::current_spelling(&self.topology_key)),
            max_skew: self.max_skew.unsigned_abs(),
            min_domains: self.min_domains.map_or(1, |count| count.max(1).unsigned_abs()),
            selector: Selector::Nothing,
            node_affinity_policy: inclusion(self.node_affinity_policy.as_deref(), Inclusion::Honor),
            node_taints_policy: inclusion(self.node_taints_policy.as_deref(), Inclusion::Ignore),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CFG-05: what is wrong, in the words in which the start is refused.
    #[test]
    fn mistakes_are_told_in_words() {
        let zone = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}";
        let table = [
            ("{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}", "[0].maxSkew must be greater than 0"),
            (
                "{maxSkew: -1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}",
                "[0].maxSkew must be greater than 0",
            ),
            ("{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}", "[0].topologyKey must be set"),
            // A wish has to make sense as much as a rule, and each constraint as much as the first.
            (
                &format!("{zone}, {{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}}"),
                "[1].maxSkew must be greater than 0",
            ),
            (
                "{maxSkew: 1, topologyKey: zone}",
                "[0].whenUnsatisfiable \"\" must be one of \"DoNotSchedule\" or \"ScheduleAnyway\"",
            ),
            (
                "{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: DoNotSchedule}",
                "[0].topologyKey \"a b\" is not a valid label name",
            ),
            (
                "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never}",
                "[0].whenUnsatisfiable \"Never\" must be one of \"DoNotSchedule\" or \"ScheduleAnyway\"",
            ),
            (
                "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}",
                "[0].labelSelector must not be set, as selectors are deduced for each pod",
            ),
            (
                "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}",
                "[0].matchLabelKeys must not be set, as it has no effect on default constraints",
            ),
            (&format!("{zone}, {zone}"), "[1] is a duplicate of [0]"),
        ];
        for (constraints, expected) in table {
            let text = format!("podTopologySpread: {{defaultConstraints: [{constraints}]}}");
            let error = DefaultSpread::parse(&text).unwrap_err().to_string();
            assert_eq!(error, format!("validating scheduler config, podTopologySpread.defaultConstraints{expected}"));
        }
        // The same key once as a rule and once as a wish is two constraints.
        let both = format!("{zone}, {}", zone.replace("DoNotSchedule", "ScheduleAnyway"));
        let both = DefaultSpread::parse(&format!("podTopologySpread: {{defaultConstraints: [{both}]}}")).unwrap();
        assert_eq!((both.hard.len(), both.soft.len()), (1, 1));
        let misspelt = format!("podTopologySpread: {{defaultConstraints: [{}]}}", zone.replace('}', ", skew: 2}"));
        for unknown in ["{podSpread: {}}", "podTopologySpread: {defaultingType: List}", &misspelt, "[", "3"] {
            let error = DefaultSpread::parse(unknown).unwrap_err().to_string();
            assert!(error.starts_with("decoding scheduler config, "), "{error}");
        }
    }

    #[test]
    fn constraints_are_read() {
        assert!(DefaultSpread::parse("").unwrap().is_empty() && DefaultSpread::parse("{}").unwrap().is_empty());
        let text = "
            podTopologySpread:
              defaultConstraints:
              - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}
              - {maxSkew: 3, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor}";
        let spread = DefaultSpread::parse(text).unwrap();
        let shown = |list: &[SpreadConstraint]| {
            let one = |one: &SpreadConstraint| {
                format!("{} {} {} {:?}", one.topology_key, one.max_skew, one.min_domains, one.node_taints_policy)
            };
            list.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(shown(&spread.soft), "topology.kubernetes.io/zone 1 2 Ignore");
        assert_eq!(shown(&spread.hard), "kubernetes.io/hostname 3 1 Honor");
    }
}
