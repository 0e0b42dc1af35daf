//! A file of one's own machines instead of the built-in ones.
//!
//! The file is a JSON list:
//!
//! ```json
//! [{
//!   "name": "m5.large",
//!   "architecture": "amd64",
//!   "operatingSystems": ["linux"],
//!   "resources": {"cpu": "2", "memory": "8Gi", "pods": "29"},
//!   "offerings": [{
//!     "Price": 0.096,
//!     "Requirements": [
//!       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
//!       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]}
//!     ]
//!   }]
//! }]
//! ```
//!
//! `pods` is 110 unless given. A reserved offering may say how many instances are left in `ReservationCapacity`. An
//! offering may come with other resources, `"CapacityOverride": {"memory": "7Gi"}`, or keep more or less for the machine
//! itself, `"OverheadOverride": {"KubeReserved": {"memory": "1Gi"}}` (`SystemReserved` and `EvictionThreshold` likewise).
//! Everything in the file is for sale: `Available` is read by nobody. The case of a field's name does not matter, and
//! fields that mean nothing to us are left alone, so that files written for others can be used as they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    CapacityType, InstanceType, Offering, Operator, Price, Requirement, Requirements, ResourceName, Resources,
    format_quantity, labels, parse_quantity,
};
use serde_json::{Map, Value};

use crate::machine::{Machine, Terms};

/// What a node takes when the file does not say.
const PODS: i64 = 110;

/// What is wrong with an instance-types file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstanceTypesFileError {
    /// It is no list, or no JSON at all.
    #[error("the instance types file is not a JSON list: {message}")]
    NotAList {
        /// What was found, and where.
        message: String,
    },
    /// An entry cannot be used.
    #[error("instance type {entry}: `{field}` {problem}")]
    Entry {
        /// The entry's number, counted from one, and its name if it has one.
        entry: String,
        /// The field as a path, for example `offerings[2].Price`.
        field: String,
        /// What was wanted and what was found.
        problem: String,
    },
}

/// Reads a file's text; the types come in the file's order, a type that is sold on several terms once for each.
pub fn parse(text: &str) -> Result<Vec<Arc<InstanceType>>, InstanceTypesFileError> {
    let not_a_list = |error: serde_json::Error| InstanceTypesFileError::NotAList { message: error.to_string() };
    let entries: Vec<Value> = serde_json::from_str(text).map_err(not_a_list)?;
    let mut names = BTreeSet::new();
    let mut types = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let named =
            |Fault { field, problem }| InstanceTypesFileError::Entry { entry: title(index, entry), field, problem };
        let machine = machine(entry).map_err(named)?;
        if !names.insert(machine.name.clone()) {
            return Err(named(Fault::new("name", "is taken by an earlier entry")));
        }
        types.extend(machine.instance_types());
    }
    Ok(types)
}

fn title(index: usize, entry: &Value) -> String {
    let number = index + 1;
    match entry.get("name").and_then(Value::as_str) {
        Some(name) => format!("{number} (`{name}`)"),
        None => number.to_string(),
    }
}

/// A field that cannot be used; the entry is added by the caller.
struct Fault {
    field: String,
    problem: String,
}

impl Fault {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    fn wanted(field: &str, wanted: &str, found: Option<&Value>) -> Self {
        match found {
            None | Some(Value::Null) => Self::new(field, format!("is missing; want {wanted}")),
            Some(found) => Self::new(field, format!("is {found}; want {wanted}")),
        }
    }
}

/// A JSON object and where it stands.
struct Object<'a> {
    path: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    fn read(path: &str, value: &'a Value) -> Result<Self, Fault> {
        let fields = value.as_object().ok_or_else(|| Fault::wanted(path, "an object", Some(value)))?;
        Ok(Self { path: path.to_owned(), fields })
    }

    fn path_of(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        let same = |(name, _): &(&String, &Value)| name.eq_ignore_ascii_case(field);
        self.fields.get(field).or_else(|| self.fields.iter().find(same).map(|(_, value)| value))
    }

    fn text(&self, field: &str) -> Result<&'a str, Fault> {
        let found = self.get(field);
        let text = found.and_then(Value::as_str).filter(|text| !text.is_empty());
        text.ok_or_else(|| Fault::wanted(&self.path_of(field), "a text", found))
    }

    fn list(&self, field: &str) -> Result<&'a [Value], Fault> {
        let found = self.get(field);
        let list = found.and_then(Value::as_array).filter(|list| !list.is_empty());
        list.map(Vec::as_slice).ok_or_else(|| Fault::wanted(&self.path_of(field), "a list with something in it", found))
    }

    fn texts(&self, field: &str) -> Result<Vec<String>, Fault> {
        let text = |value: &Value| match value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(Fault::wanted(&self.path_of(field), "a list of texts", Some(value))),
        };
        self.list(field)?.iter().map(text).collect()
    }

    /// An object that may be left out.
    fn object(&self, field: &str) -> Result<Option<Object<'a>>, Fault> {
        let found = self.get(field).filter(|value| !value.is_null());
        found.map(|value| Object::read(&self.path_of(field), value)).transpose()
    }

    fn objects(&self, field: &str) -> Result<Vec<Object<'a>>, Fault> {
        let path = self.path_of(field);
        let object = |(index, value)| Object::read(&format!("{path}[{index}]"), value);
        self.list(field)?.iter().enumerate().map(object).collect()
    }
}

fn machine(entry: &Value) -> Result<Machine, Fault> {
    let entry = Object::read("", entry)?;
    let name = entry.text("name")?.to_owned();
    let found = entry.get("resources");
    let written = found.ok_or_else(|| Fault::wanted("resources", "an object with `cpu` and `memory`", found))?;
    let resources = Object::read("resources", written)?;
    let capacity = capacity(&resources)?;
    Ok(Machine {
        name,
        architecture: entry.text("architecture")?.to_owned(),
        operating_systems: entry.texts("operatingSystems")?,
        memory_label: memory_label(&resources, &capacity),
        capacity,
        offerings: entry
            .objects("offerings")?
            .iter()
            .map(|own| Ok((offering(own)?, terms(own)?)))
            .collect::<Result<_, _>>()?,
    })
}

fn capacity(resources: &Object<'_>) -> Result<Resources, Fault> {
    let mut capacity = Resources::none().with(ResourceName::pods(), PODS);
    amounts(resources)?.iter().for_each(|(name, amount)| capacity.set(name.clone(), amount));
    for needed in [ResourceName::cpu(), ResourceName::memory()] {
        if capacity.get(&needed) == 0 {
            let field = resources.path_of(needed.as_str());
            return Err(Fault::wanted(&field, "more than nothing", resources.fields.get(needed.as_str())));
        }
    }
    Ok(capacity)
}

fn amounts(resources: &Object<'_>) -> Result<Resources, Fault> {
    let mut amounts = Resources::none();
    for (name, value) in resources.fields {
        let resource = ResourceName::new(name.as_str());
        let quantity = || Fault::wanted(&resources.path_of(name), "a quantity such as \"4\" or \"10Gi\"", Some(value));
        let text = quantity_text(value).ok_or_else(quantity)?;
        let amount = parse_quantity(&resource, &text).ok().filter(|amount| *amount >= 0).ok_or_else(quantity)?;
        amounts.set(resource, amount);
    }
    Ok(amounts)
}

/// What comes with an offering instead of what its machine has and keeps.
fn terms(offering: &Object<'_>) -> Result<Terms, Fault> {
    let mut terms = Terms::default();
    if let Some(capacity) = offering.object("CapacityOverride")? {
        terms.capacity = amounts(&capacity)?;
    }
    if let Some(overhead) = offering.object("OverheadOverride")? {
        for part in ["KubeReserved", "SystemReserved", "EvictionThreshold"] {
            if let Some(part) = overhead.object(part)? {
                terms.overhead.add(&amounts(&part)?);
            }
        }
    }
    Ok(terms)
}

/// Quantities may be written as bare numbers.
fn quantity_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The memory as written, so that `8G` stays `8G`; a fraction is written out, as Kubernetes does.
fn memory_label(resources: &Object<'_>, capacity: &Resources) -> String {
    let memory = ResourceName::memory();
    let written = resources.fields.get(memory.as_str()).and_then(Value::as_str).filter(|text| !text.contains('.'));
    written.map_or_else(|| format_quantity(&memory, capacity.get(&memory)), str::to_owned)
}

fn offering(written: &Object<'_>) -> Result<Offering, Fault> {
    let found = written.get("Price");
    let price = found.and_then(Value::as_f64).filter(|dollars| *dollars >= 0.0);
    let price = price.ok_or_else(|| Fault::wanted(&written.path_of("Price"), "dollars per hour", found))?;
    let mut requirements = Requirements::none();
    for requirement in written.objects("Requirements")? {
        requirements.add(requirement.text("key")?, self::requirement(&requirement)?);
    }
    let one = |key: &str| requirements.get(key).and_then(Requirement::single_value);
    let lacking = |wanted: String| Fault::new(written.path_of("Requirements"), wanted);
    if one(labels::ZONE).is_none() {
        return Err(lacking(format!("must name exactly one `{}`", labels::ZONE)));
    }
    if one(labels::CAPACITY_TYPE).is_none_or(|value| CapacityType::parse(value).is_none()) {
        let key = labels::CAPACITY_TYPE;
        return Err(lacking(format!("must name exactly one `{key}`: on-demand, spot or reserved")));
    }
    let reservation_capacity = reservation_capacity(written)?;
    Ok(Offering { requirements, price: Price::from_dollars(price), available: true, reservation_capacity })
}

fn reservation_capacity(offering: &Object<'_>) -> Result<Option<u32>, Fault> {
    let field = "ReservationCapacity";
    match offering.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
            let wanted = || Fault::wanted(&offering.path_of(field), "a number of instances", Some(value));
            count.map(Some).ok_or_else(wanted)
        }
    }
}

fn requirement(written: &Object<'_>) -> Result<Requirement, Fault> {
    let operator = written.text("operator")?;
    let unknown = || Fault::wanted(&written.path_of("operator"), "an operator such as In", written.get("operator"));
    let operator = Operator::parse(operator).ok_or_else(unknown)?;
    let values = match operator {
        Operator::Exists | Operator::DoesNotExist => Vec::new(),
        _ => written.texts("values")?,
    };
    let no_number = || Fault::wanted(&written.path_of("values"), "one whole number", written.get("values"));
    Requirement::new(operator, values).ok_or_else(no_number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sound() -> Value {
        json!({
            "name": "m5.large",
            "architecture": "amd64",
            "operatingSystems": ["linux", "windows"],
            "resources": {"cpu": "2", "memory": "8G", "nvidia.com/gpu": 1},
            "offerings": [
                {
                    "Price": 0.096,
                    "Available": false,
                    "Requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]},
                    ],
                },
                {
                    "price": 0.001,
                    "reservationCapacity": 3,
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
                        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2b"]},
                        {"key": "example.com/reservation", "operator": "In", "values": ["r-1"]},
                    ],
                },
            ],
        })
    }

    fn parse_one(entry: Value) -> Result<Arc<InstanceType>, InstanceTypesFileError> {
        parse(&json!([entry]).to_string()).map(|types| Arc::clone(&types[0]))
    }

    /// KWOK-09: a custom file with pods by default, everything for sale, labels from the name.
    #[test]
    fn a_file_becomes_instance_types() {
        let kind = parse_one(sound()).unwrap();
        assert_eq!(kind.name.as_str(), "m5.large");
        assert_eq!(kind.capacity.to_string(), "cpu=2 memory=7812500Ki nvidia.com/gpu=1 pods=110");
        let labels: Vec<String> =
            kind.requirements.iter().map(|(key, requirement)| format!("{key} {requirement}")).collect();
        assert_eq!(
            labels,
            [
                "karpenter.kwok.sh/instance-cpu In [2]",
                "karpenter.kwok.sh/instance-family In [m5]",
                "karpenter.kwok.sh/instance-memory In [8G]",
                "karpenter.kwok.sh/instance-size In [large]",
                "karpenter.sh/capacity-type In [on-demand reserved]",
                "kubernetes.io/arch In [amd64]",
                "kubernetes.io/os In [linux windows]",
                "node.kubernetes.io/instance-type In [m5.large]",
                "topology.kubernetes.io/zone In [us-west-2a us-west-2b]",
            ]
        );
        assert!(kind.offerings.iter().all(|offering| offering.available));
        assert_eq!(kind.offerings[1].reservation_capacity, Some(3));
        assert_eq!(kind.offerings[1].price, Price::from_dollars(0.001));
    }

    /// KWOK-09: a file that cannot be used says which entry, which field, and what was wanted.
    #[test]
    fn faults_name_entry_and_field() {
        let table = [
            ("/name", json!(null), "instance type 1: `name` is missing; want a text"),
            ("/architecture", json!(7), "instance type 1 (`m5.large`): `architecture` is 7; want a text"),
            (
                "/operatingSystems",
                json!([]),
                "instance type 1 (`m5.large`): `operatingSystems` is []; want a list with something in it",
            ),
            (
                "/resources/cpu",
                json!("two"),
                "instance type 1 (`m5.large`): `resources.cpu` is \"two\"; want a quantity such as \"4\" or \"10Gi\"",
            ),
            (
                "/resources",
                json!({"cpu": 1}),
                "instance type 1 (`m5.large`): `resources.memory` is missing; want more than nothing",
            ),
            (
                "/offerings/0/Price",
                json!("x"),
                "instance type 1 (`m5.large`): `offerings[0].Price` is \"x\"; want dollars per hour",
            ),
            (
                "/offerings/0/Requirements/1/operator",
                json!("Is"),
                "instance type 1 (`m5.large`): `offerings[0].Requirements[1].operator` is \"Is\"; \
                 want an operator such as In",
            ),
            (
                "/offerings/0/Requirements/0/values",
                json!(["cheap"]),
                "instance type 1 (`m5.large`): `offerings[0].Requirements` must name exactly one \
                 `karpenter.sh/capacity-type`: on-demand, spot or reserved",
            ),
            (
                "/offerings/0/Requirements/1/key",
                json!("topology.kubernetes.io/region"),
                "instance type 1 (`m5.large`): `offerings[0].Requirements` must name exactly one \
                 `topology.kubernetes.io/zone`",
            ),
            (
                "/offerings/1/reservationCapacity",
                json!(-1),
                "instance type 1 (`m5.large`): `offerings[1].ReservationCapacity` is -1; want a number of instances",
            ),
        ];
        for (pointer, value, message) in table {
            let mut entry = sound();
            *entry.pointer_mut(pointer).unwrap() = value;
            assert_eq!(parse_one(entry).unwrap_err().to_string(), message, "{pointer}");
        }
    }

    /// KWOK-09
    #[test]
    fn a_file_must_be_a_list_without_repetitions() {
        assert!(matches!(parse("{}"), Err(InstanceTypesFileError::NotAList { .. })));
        assert!(matches!(parse("[{]"), Err(InstanceTypesFileError::NotAList { .. })));
        assert_eq!(parse("[]"), Ok(Vec::new()));
        let twice = parse(&json!([sound(), sound()]).to_string()).unwrap_err();
        assert_eq!(twice.to_string(), "instance type 2 (`m5.large`): `name` is taken by an earlier entry");
    }

    /// CP-03: offerings that keep different amounts for the machine make different types, be what they come with the same.
    #[test]
    fn offerings_that_keep_other_amounts_make_another_type() {
        let mut entry = sound();
        entry["offerings"][1]["OverheadOverride"] = json!({"KubeReserved": {"cpu": "200m"}});
        let allocatable = |entry: &serde_json::Value| {
            let types = parse(&json!([entry]).to_string()).unwrap();
            types.iter().map(|kind| kind.allocatable.get(&model::ResourceName::cpu())).collect::<Vec<_>>()
        };
        assert_eq!(allocatable(&entry), [1900, 1800]);
        assert_eq!(allocatable(&sound()), [1900]);
    }

    /// CP-03, CP-04, KWOK-09: an offering may come with other resources, or keep others for the machine.
    #[test]
    fn offerings_on_terms_of_their_own_make_another_type_of_the_same_name() {
        let mut entry = sound();
        entry["offerings"][1]["CapacityOverride"] = json!({"memory": "7G", "example.com/nic": 2});
        entry["offerings"][1]["OverheadOverride"] = json!({
            "KubeReserved": {"cpu": "200m"}, "SystemReserved": {"cpu": "50m"}, "EvictionThreshold": {"cpu": "7m"},
        });
        let types = parse(&json!([entry]).to_string()).unwrap();
        let told = |kind: &Arc<InstanceType>| {
            let zones = kind.requirements.get(labels::ZONE).unwrap();
            format!("{} {zones}: {} of {}", kind.name, kind.allocatable, kind.capacity)
        };
        assert_eq!(
            types.iter().map(told).collect::<Vec<_>>(),
            [
                "m5.large In [us-west-2a]: cpu=1900m memory=7802260Ki nvidia.com/gpu=1 pods=110 of \
                 cpu=2 memory=7812500Ki nvidia.com/gpu=1 pods=110",
                "m5.large In [us-west-2b]: cpu=1743m example.com/nic=2 memory=6989514240 nvidia.com/gpu=1 pods=110 of \
                 cpu=2 example.com/nic=2 memory=7000000000 nvidia.com/gpu=1 pods=110",
            ]
        );
        entry["offerings"][1]["OverheadOverride"] = json!({"KubeReserved": {"cpu": "much"}});
        assert_eq!(
            parse(&json!([entry]).to_string()).unwrap_err().to_string(),
            "instance type 1 (`m5.large`): `offerings[1].OverheadOverride.KubeReserved.cpu` is \"much\"; want a quantity such as \"4\" or \"10Gi\""
        );
    }
}
