//! How many pods nodes take, as the VPC network plugin counts them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};

/// Reads lines of a type and a number.
pub(crate) fn read(file: &Path) -> Result<BTreeMap<String, u32>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read `{}`", file.display()))?;
    let entry = |line: &str| {
        let (name, pods) = line.split_once(' ').with_context(|| format!("`{line}` is not a type and a number"))?;
        Ok((name.to_owned(), pods.trim().parse().with_context(|| format!("`{line}` ends in no number"))?))
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pods: BTreeMap<String, u32> = lines.map(entry).collect::<Result<_>>()?;
    ensure!(!pods.is_empty(), "`{}` names no types", file.display());
    Ok(pods)
}

/// The same lines without comments, compressed to bytes that depend on nothing else.
pub(crate) fn compress(pods: &BTreeMap<String, u32>) -> Result<Vec<u8>> {
    let text: String = pods.iter().map(|(name, pods)| format!("{name} {pods}\n")).collect();
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}
