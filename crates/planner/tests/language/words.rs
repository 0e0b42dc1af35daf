//! The smallest parts of the language.

use model::{
    Effect, HostPort, LabelRequirement, Operator, Requirement, ResourceName, Resources, Selector, Taint, Text, labels,
    parse_quantity,
};

/// The words of a line after the first two.
pub(super) struct Words<'a> {
    pub(super) line: &'a str,
    pub(super) words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub(super) fn unknown(&self, word: &str, hint: &str) -> ! {
        panic!("unknown word `{word}` in `{}`: {hint}", self.line)
    }

    /// Splits `key=value` words.
    pub(super) fn pairs(&self, hint: &str) -> Vec<(&'a str, &'a str)> {
        let pair = |word: &&'a str| word.split_once('=').unwrap_or_else(|| self.unknown(word, hint));
        self.words.iter().map(pair).collect()
    }
}

/// `name*3`
pub(super) fn counted(text: &str) -> (&str, Option<u32>) {
    text.split_once('*').map_or((text, None), |(name, count)| (name, Some(number(count))))
}

pub(super) fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().unwrap_or_else(|_| panic!("`{text}`: a number was expected"))
}

/// The label that a short key stands for.
pub(super) fn long_key(key: &str) -> &str {
    match key {
        "zone" => labels::ZONE,
        "arch" => labels::ARCH,
        "os" => labels::OS,
        "type" => labels::INSTANCE_TYPE,
        "capacity" => labels::CAPACITY_TYPE,
        "pool" => labels::NODE_POOL,
        "host" => labels::HOSTNAME,
        "reservation" => super::RESERVATION,
        _ => key,
    }
}

fn resource(key: &str) -> Option<ResourceName> {
    match key {
        "cpu" | "pods" | "nodes" => Some(ResourceName::new(key)),
        "mem" => Some(ResourceName::memory()),
        "gpu" => Some(ResourceName::new("nvidia.com/gpu")),
        _ => None,
    }
}

/// Sets a resource if the key names one.
pub(super) fn set(resources: &mut Resources, key: &str, value: &str) -> bool {
    let Some(name) = resource(key) else { return false };
    let amount = parse_quantity(&name, value).unwrap_or_else(|error| panic!("{key}={value}: {error}"));
    resources.set(name, amount);
    true
}

/// `key:Operator:value|value`, and perhaps `min=2` among the values.
pub(super) fn requirement(text: &str) -> (String, Requirement) {
    let mut parts = text.splitn(3, ':');
    let key = long_key(parts.next().unwrap_or("")).to_owned();
    let operator = parts.next().and_then(Operator::parse);
    let operator = operator.unwrap_or_else(|| panic!("`{text}`: write a requirement as key:Operator:value|value"));
    let words = parts.next().map_or_else(Vec::new, |values| values.split('|').collect());
    let (least, values): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| word.starts_with("min="));
    let least = least.first().map(|least| number(least.trim_start_matches("min=")));
    let requirement = Requirement::new(operator, values);
    let requirement = requirement.unwrap_or_else(|| panic!("`{text}`: {} wants one integer", operator.as_str()));
    (key, requirement.with_min_values(least))
}

/// `key=value` as a requirement.
pub(super) fn label(text: &str) -> (String, Requirement) {
    let (key, value) = text.split_once('=').unwrap_or_else(|| panic!("`{text}`: write a label as key=value"));
    (long_key(key).to_owned(), Requirement::is(value))
}

/// `key=value:Effect`
pub(super) fn taint(text: &str) -> Taint {
    let parts = text.rsplit_once(':').and_then(|(rest, effect)| Some((rest, Effect::parse(effect)?)));
    let (rest, effect) = parts.unwrap_or_else(|| panic!("`{text}`: write a taint as key=value:Effect"));
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Taint::new(key, value, effect)
}

/// `80` or `UDP/10.0.0.1/80`
pub(super) fn port(text: &str) -> HostPort {
    let parts: Vec<&str> = text.split('/').collect();
    let (protocol, address, port) = match parts[..] {
        [port] => ("", "", port),
        [protocol, address, port] => (protocol, address, port),
        _ => panic!("`{text}`: write a port as 80 or UDP/10.0.0.1/80"),
    };
    HostPort { address: Text::from(address), protocol: Text::from(protocol), port: number(port) }
}

/// `driver:rest`
pub(super) fn of_driver(text: &str) -> (Text, &str) {
    let parts = text.split_once(':').unwrap_or_else(|| panic!("`{text}`: write driver:volume or driver:limit"));
    (Text::from(parts.0), parts.1)
}

/// `app=web,tier=front`, `*` for everything, `-` for no selector at all.
pub(super) fn selector(text: &str) -> Selector {
    let exact = |part: &str| {
        let (key, value) = part.split_once('=').unwrap_or_else(|| panic!("`{text}`: select as key=value,key=value"));
        LabelRequirement::is(key, value)
    };
    match text {
        "-" => Selector::Nothing,
        "*" => Selector::All(Vec::new()),
        _ => Selector::All(text.split(',').map(exact).collect()),
    }
}
