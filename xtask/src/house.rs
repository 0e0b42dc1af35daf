//! The dependency table of `docs/ARCHITECTURE.md`, compared with what cargo says.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo::cargo;
use table::{MayUse, Row};

/// Where the table is.
const ARCHITECTURE: &str = "docs/ARCHITECTURE.md";
/// Crates that decide without input, output or time.
const PURE_CRATES: [&str; 2] = ["model", "planner"];
/// What a pure crate must not reach, however indirectly.
const IMPURE_CRATES: [&str; 5] = ["hyper", "k8s-openapi", "kube", "tokio", "tracing"];

/// Fails if a crate of this workspace uses another that its row does not allow, or has no row.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text = std::fs::read_to_string(root.join(ARCHITECTURE)).with_context(|| format!("read `{ARCHITECTURE}`"))?;
    let rows = table::parse(&text).with_context(|| format!("read the dependency table of `{ARCHITECTURE}`"))?;
    let output = cargo(root)?
        .args(["metadata", "--format-version=1", "--all-features", "--locked"])
        .stderr(Stdio::inherit())
        .output()
        .context("start cargo metadata")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed; if it names the lock file, run `cargo update --workspace` and commit it");
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("understand cargo metadata")?;
    let house = House::from_metadata(&metadata, &root.join("crates")).context("read cargo metadata")?;
    let faults = faults(&rows, &house);
    if !faults.is_empty() {
        bail!("the crates and `{ARCHITECTURE}` disagree:\n- {}", faults.join("\n- "));
    }
    Ok(())
}

/// What cargo knows about the crates under `crates/`.
#[derive(Debug, Default, PartialEq, Eq)]
struct House {
    /// Each crate with the crates of the workspace that it uses itself.
    uses: BTreeMap<String, BTreeSet<String>>,
    /// Each pure crate with everything it reaches, however indirectly.
    reaches: BTreeMap<String, BTreeSet<String>>,
}

impl House {
    /// `None` if the metadata has not the expected shape. Only normal dependencies count: tests and build scripts may
    /// use what they like.
    fn from_metadata(metadata: &Value, crates_folder: &Path) -> Option<Self> {
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        let mut here: BTreeSet<&str> = BTreeSet::new();
        for package in metadata["packages"].as_array()? {
            let id = package["id"].as_str()?;
            names.insert(id, package["name"].as_str()?);
            if Path::new(package["manifest_path"].as_str()?).starts_with(crates_folder) {
                here.insert(id);
            }
        }
        let members: BTreeSet<&str> =
            metadata["workspace_members"].as_array()?.iter().filter_map(Value::as_str).collect();
        let edges: BTreeMap<&str, Vec<&str>> = metadata["resolve"]["nodes"]
            .as_array()?
            .iter()
            .map(|node| Some((node["id"].as_str()?, normal_dependencies(node)?)))
            .collect::<Option<_>>()?;
        let name_of = |id: &&str| names.get(id).map(|name| (*name).to_owned());
        let mut house = Self::default();
        for id in here {
            let name = name_of(&id)?;
            let direct = edges.get(id)?;
            house
                .uses
                .insert(name.clone(), direct.iter().filter(|id| members.contains(*id)).filter_map(name_of).collect());
            if PURE_CRATES.contains(&name.as_str()) {
                house.reaches.insert(name, reachable(id, &edges).iter().filter_map(name_of).collect());
            }
        }
        Some(house)
    }
}

fn normal_dependencies(node: &Value) -> Option<Vec<&str>> {
    node["deps"]
        .as_array()?
        .iter()
        .filter(|dependency| {
            dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        })
        .map(|dependency| dependency["pkg"].as_str())
        .collect()
}

fn reachable<'a>(start: &'a str, edges: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        for next in edges.get(id).into_iter().flatten() {
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    seen
}

/// Everything on which table and crates disagree, each with what to do.
fn faults(rows: &[Row], house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, uses) in &house.uses {
        let Some(row) = rows.iter().find(|row| row.name == *name) else {
            faults.push(format!("`{name}` has no row: add one that says what it may use"));
            continue;
        };
        if let MayUse::Only(allowed) = &row.may_use {
            for used in uses.difference(allowed) {
                faults.push(format!(
                    "`{name}` uses `{used}`, which its row does not allow: drop the dependency from \
                     crates/{name}/Cargo.toml, or decide that the house changes and add it to the row"
                ));
            }
        }
    }
    for row in rows.iter().filter(|row| !row.is_planned && !house.uses.contains_key(&row.name)) {
        faults.push(format!("`{}` has a row but no crate: mark the row `(part N)` or remove it", row.name));
    }
    for (name, reached) in &house.reaches {
        for impure in IMPURE_CRATES.iter().filter(|impure| reached.contains(**impure)) {
            faults.push(format!(
                "`{name}` decides without input, output or time, but reaches `{impure}`: \
                 `cargo tree -p {name} -e normal -i {impure}` shows how"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{House, faults, table};

    const TABLE: &str = "
| crate | what lives there | may use | will never know |
|---|---|---|---|
| `model` | values | – | everything |
| `planner` | plans | `model` | everything else |
| `sim` (part 2) | a simulator | `model` | – |
";

    fn house(uses: &[(&str, &[&str])], reaches: &[(&str, &[&str])]) -> House {
        let sets = |pairs: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
            pairs
                .iter()
                .map(|(name, used)| ((*name).to_owned(), used.iter().map(|used| (*used).to_owned()).collect()))
                .collect()
        };
        House { uses: sets(uses), reaches: sets(reaches) }
    }

    fn check(house: &House) -> Vec<String> {
        faults(&table::parse(TABLE).unwrap(), house)
    }

    #[test]
    fn what_the_table_allows_is_fine_and_planned_crates_may_be_missing() {
        let house = house(&[("model", &[]), ("planner", &["model"])], &[("planner", &["model", "serde"])]);
        assert_eq!(check(&house), Vec::<String>::new());
    }

    #[test]
    fn a_dependency_that_is_not_listed_is_named() {
        let house = house(&[("model", &["planner"]), ("planner", &[])], &[]);
        let faults = check(&house);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("`model` uses `planner`"), "{faults:?}");
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_named() {
        let faults = check(&house(&[("model", &[]), ("stranger", &[])], &[]));
        assert_eq!(faults.len(), 2);
        assert!(faults[0].starts_with("`stranger` has no row"), "{faults:?}");
        assert!(faults[1].starts_with("`planner` has a row but no crate"), "{faults:?}");
    }

    #[test]
    fn a_pure_crate_that_reaches_an_impure_one_is_named() {
        let faults = check(&house(&[("model", &[]), ("planner", &[])], &[("planner", &["tokio", "serde"])]));
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("reaches `tokio`"), "{faults:?}");
    }

    #[test]
    fn metadata_becomes_a_house_of_normal_dependencies() {
        let package =
            |name: &str| json!({"id": name, "name": name, "manifest_path": format!("/a/crates/{name}/Cargo.toml")});
        let outside =
            |name: &str| json!({"id": name, "name": name, "manifest_path": format!("/registry/{name}/Cargo.toml")});
        let edge = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("model"), package("planner"), outside("serde"), outside("tokio")],
            "workspace_members": ["model", "planner"],
            "resolve": {"nodes": [
                {"id": "model", "deps": [edge("serde", Value::Null), edge("tokio", json!("dev"))]},
                {"id": "planner", "deps": [edge("model", Value::Null)]},
                {"id": "serde", "deps": []},
                {"id": "tokio", "deps": []},
            ]},
        });
        assert_eq!(
            House::from_metadata(&metadata, Path::new("/a/crates")),
            Some(house(
                &[("model", &[]), ("planner", &["model"])],
                &[("model", &["serde"]), ("planner", &["model", "serde"])]
            ))
        );
    }
}
