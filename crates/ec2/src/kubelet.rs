//! The kubelet settings of a class that decide how much of a node pods may use.

use model::{ResourceName, Resources, parse_quantity};
use serde_json::{Map, Value};

use crate::resources::EPHEMERAL_STORAGE;

/// The settings that count here. Whatever cannot be read is as if it were not there: telling the user is the business of
/// the class's own validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kubelet {
    /// `maxPods`, unless it is an expression.
    pub max_pods: Option<i64>,
    /// `podsPerCore`, if above zero.
    pub pods_per_core: Option<i64>,
    /// `kubeReserved`
    pub kube_reserved: Resources,
    /// `systemReserved`
    pub system_reserved: Resources,
    /// `evictionHard` for memory.
    pub evict_below_memory: Option<Threshold>,
    /// `evictionHard` for the disk of the node.
    pub evict_below_storage: Option<Threshold>,
}

/// When the kubelet evicts pods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Below that share of what there is; the whole share switches the threshold off.
    Percent(f64),
    /// Below that amount.
    Amount(i64),
}

impl Threshold {
    fn read(resource: &ResourceName, text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().map(Self::Percent),
            None => parse_quantity(resource, text).ok().map(Self::Amount),
        }
    }

    /// The amount below which pods are evicted where there is that much in all.
    pub fn of(self, capacity: i64) -> i64 {
        match self {
            Self::Percent(percent) if percent >= 100.0 => 0,
            Self::Percent(percent) => (capacity as f64 / 100.0 * percent).ceil() as i64,
            Self::Amount(amount) => amount,
        }
    }
}

impl Kubelet {
    /// Reads the settings as a class holds them.
    pub fn read(settings: &Map<String, Value>) -> Self {
        let number = |key: &str| settings.get(key).and_then(Value::as_i64);
        let threshold = |signal: &str, resource: ResourceName| {
            Threshold::read(&resource, settings.get("evictionHard")?.get(signal)?.as_str()?)
        };
        Self {
            max_pods: number("maxPods"),
            pods_per_core: number("podsPerCore").filter(|pods| *pods > 0),
            kube_reserved: reserved(settings.get("kubeReserved")),
            system_reserved: reserved(settings.get("systemReserved")),
            evict_below_memory: threshold("memory.available", ResourceName::memory()),
            evict_below_storage: threshold("nodefs.available", ResourceName::new(EPHEMERAL_STORAGE)),
        }
    }
}

/// What is kept of the resources that pods ask for; process numbers are reserved too, but nobody requests them.
fn reserved(settings: Option<&Value>) -> Resources {
    let amount = |resource: &ResourceName| {
        let text = match settings?.get(resource.as_str())? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        parse_quantity(resource, &text).ok()
    };
    let resources = [ResourceName::cpu(), ResourceName::memory(), ResourceName::new(EPHEMERAL_STORAGE)];
    resources.into_iter().filter_map(|resource| amount(&resource).map(|amount| (resource, amount))).collect()
}
