//! Tables in generated Go files, read line by line: they are written one entry, or one field, to a place.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use catalogue::VpcLimits;

/// Every `"name": number` of a file, comments left out.
pub(crate) fn numbers(file: &Path) -> Result<BTreeMap<String, f64>> {
    let found = numbers_in(&read(file)?);
    ensure!(!found.is_empty(), "`{}` holds no numbers", file.display());
    Ok(found)
}

fn numbers_in(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let entry = |part: &str| {
        let (key, value) = part.split_once(':')?;
        let name = key.trim().strip_prefix('"')?.strip_suffix('"')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    lines.flat_map(|line| line.split(',')).filter_map(entry).collect()
}

/// The limits of each type that the VPC resource controller knows.
pub(crate) fn vpc_limits(file: &Path) -> Result<BTreeMap<String, VpcLimits>> {
    let limits = vpc_limits_in(&read(file)?).with_context(|| format!("read `{}`", file.display()))?;
    ensure!(!limits.is_empty(), "`{}` holds no limits", file.display());
    Ok(limits)
}

fn vpc_limits_in(text: &str) -> Result<BTreeMap<String, VpcLimits>> {
    let mut limits: BTreeMap<String, VpcLimits> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('"').and_then(|rest| rest.strip_suffix("\": {")) {
            limits.insert(name.to_owned(), VpcLimits::default());
            current = Some(name.to_owned());
            continue;
        }
        let Some(entry) = current.as_ref().and_then(|name| limits.get_mut(name)) else { continue };
        let Some((field, value)) = line.split_once(':') else { continue };
        let value = value.trim().trim_end_matches(',');
        let number = || value.parse::<u32>().with_context(|| format!("`{line}` is no whole number"));
        match field {
            "IPv4PerInterface" => entry.ipv4_per_interface = number()?,
            "BranchInterface" => entry.branch_interfaces = number()?,
            "IsTrunkingCompatible" => entry.trunking = value == "true",
            _ => {}
        }
    }
    Ok(limits)
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("read `{}`", file.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn several_prices_share_a_line() {
        let found = numbers_in(
            "// a1 family\n\t\"a1.large\": 0.051, \"a1.metal\": 0.408,\n\t\"us-east-1\": {\n// \"c1.large\": 7,\n",
        );
        assert_eq!(found, BTreeMap::from([("a1.large".to_owned(), 0.051), ("a1.metal".to_owned(), 0.408)]));
    }

    #[test]
    fn limits_span_lines() {
        let text = "\"a1.large\": {\n\tInterface: 3,\n\tIPv4PerInterface:  10,\n\tIsTrunkingCompatible: true,\n\t\
                    BranchInterface: 9,\n\tNetworkCards: []NetworkCard{\n\t{\n\t\tMaximumNetworkInterfaces: 3,\n";
        let limits = vpc_limits_in(text).unwrap();
        let expected = VpcLimits { ipv4_per_interface: 10, trunking: true, branch_interfaces: 9 };
        assert_eq!(limits, BTreeMap::from([("a1.large".to_owned(), expected)]));
    }
}
