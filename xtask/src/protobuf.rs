//! `cargo xtask protobuf`: takes the field numbers of built-in kinds from the published Go modules of Kubernetes.
//!
//! Clients written in Go, kubectl among them, send some of their requests in protobuf. The embedded API needs the
//! numbers to read those; everything else it knows from the OpenAPI documents.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Where the table goes.
const TABLE: &str = "crates/sim/src/protobuf/messages.txt";
/// The Go module that pins the version.
const PINNED: &str = "e2e/control-plane/go/kubernetes";
/// The files, by Go module: the kinds that the embedded API serves, and what those are made of.
const SOURCES: [(&str, &[&str]); 2] = [
    (
        "k8s.io/api",
        &[
            "apps/v1",
            "autoscaling/v1",
            "batch/v1",
            "coordination/v1",
            "core/v1",
            "discovery/v1",
            "events/v1",
            "node/v1",
            "policy/v1",
            "rbac/v1",
            "scheduling/v1",
            "storage/v1",
        ],
    ),
    ("k8s.io/apimachinery", &["pkg/apis/meta/v1"]),
];
/// Fields that are a message in protobuf and part of their owner in JSON.
const INLINE: [&str; 5] =
    ["ephemeralContainerCommon", "handler", "localObjectReference", "persistentVolumeSource", "volumeSource"];

/// Writes the table.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut messages = BTreeMap::new();
    for (module, folders) in SOURCES {
        let module = module_folder(root, module)?;
        for folder in folders {
            let path = module.join(folder).join("generated.proto");
            let text = fs::read_to_string(&path).with_context(|| format!("read `{}`", path.display()))?;
            read_messages(&text, &mut messages)?;
        }
    }
    let mut table =
        String::from("# The fields of messages by number; `[]` are lists, `{}` maps, `+` parts of the owner.\n");
    for (name, fields) in &messages {
        writeln!(table, "{name} {}", fields.join(" "))?;
    }
    fs::write(root.join(TABLE), table).with_context(|| format!("write `{TABLE}`"))?;
    println!("{} messages in `{TABLE}`", messages.len());
    Ok(())
}

fn module_folder(root: &Path, module: &str) -> Result<PathBuf> {
    let mut command = Command::new("go");
    command.args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(root.join(PINNED));
    let output = command.output().context("start go")?;
    ensure!(output.status.success(), "go list: {}", String::from_utf8_lossy(&output.stderr));
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Reads the messages of one file: name, then `number=field:type` for each field.
fn read_messages(text: &str, messages: &mut BTreeMap<String, Vec<String>>) -> Result<()> {
    let mut package = String::new();
    let mut current = None;
    for line in text.lines().filter(|line| !line.trim().starts_with("//")) {
        let words: Vec<&str> = line.trim().trim_end_matches(';').split_whitespace().collect();
        match words.as_slice() {
            ["package", name] => package = short(name),
            ["message", name, "{"] => current = Some((format!("{package}.{name}"), Vec::new())),
            ["}"] => messages.extend(current.take()),
            [before @ .., field, "=", number] if !before.is_empty() && number.parse::<u32>().is_ok() => {
                let (_, fields) = current.as_mut().with_context(|| format!("`{line}` stands in a message"))?;
                fields.push(format!("{number}={field}:{}", kind(before, field, &package)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The last two parts of a package: `k8s.io.api.core.v1` is `core.v1`.
fn short(package: &str) -> String {
    let parts: Vec<&str> = package.split('.').collect();
    parts[parts.len().saturating_sub(2)..].join(".")
}

fn kind(before: &[&str], field: &str, package: &str) -> String {
    match before {
        [map @ .., value] if map.first().is_some_and(|first| first.starts_with("map<")) => {
            format!("{{}}{}", type_name(value.trim_end_matches('>'), package))
        }
        ["repeated", item] => format!("[]{}", type_name(item, package)),
        [.., plain] if INLINE.contains(&field) => format!("+{}", type_name(plain, package)),
        [.., plain] => type_name(plain, package),
        [] => String::new(),
    }
}

fn type_name(name: &str, package: &str) -> String {
    match name.strip_prefix('.') {
        Some(full) => {
            let parts: Vec<&str> = full.split('.').collect();
            parts[parts.len().saturating_sub(3)..].join(".")
        }
        None if name.chars().next().is_some_and(char::is_uppercase) => format!("{package}.{name}"),
        None => name.to_owned(),
    }
}
