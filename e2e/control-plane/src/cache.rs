//! The folder outside the clone in which slow builds are kept.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

/// The folder in which builds outlive a clone: `$KARPENTER_BUILD_CACHE`, else `$XDG_CACHE_HOME/karpenter-build`, else
/// `~/.cache/karpenter-build`. Created when missing.
pub fn cache_root() -> Result<PathBuf> {
    let root = choose_root(|name| std::env::var_os(name))?;
    fs::create_dir_all(&root).with_context(|| format!("create the build cache `{}`", root.display()))?;
    Ok(root)
}

fn choose_root(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = set("KARPENTER_BUILD_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|home| home.join("karpenter-build")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/karpenter-build")))
        .ok_or_else(|| anyhow!("no place for built programs: set KARPENTER_BUILD_CACHE or HOME"))?;
    // A relative folder would mean another place to every program started elsewhere.
    std::path::absolute(&root).with_context(|| format!("find the build cache `{}`", root.display()))
}

/// Held while something is built, so that two processes never build the same thing at once. Released on drop, and by
/// the system when the process dies.
#[derive(Debug)]
pub(crate) struct BuildLock {
    _file: File,
}

impl BuildLock {
    pub(crate) fn acquire(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("open the lock `{}`", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another build that holds `{}`", path.display());
                file.lock().with_context(|| format!("lock `{}`", path.display()))?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("lock `{}`", path.display()));
            }
        }
        Ok(Self { _file: file })
    }
}

/// FNV-1a over all parts: names cache entries. Not for anything an adversary could touch.
pub(crate) fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = OFFSET;
    for part in parts {
        // The zero byte keeps ("ab", "c") and ("a", "bc") apart.
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use super::{choose_root, fingerprint};

    fn root(variables: &[(&str, &str)]) -> Option<PathBuf> {
        choose_root(|name| {
            variables.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| OsString::from(value))
        })
        .ok()
    }

    #[test]
    fn the_own_variable_wins_then_the_cache_home_then_home() {
        let all = [("KARPENTER_BUILD_CACHE", "/own"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home")];
        assert_eq!(root(&all).as_deref(), Some(Path::new("/own")));
        assert_eq!(root(&all[1..]).as_deref(), Some(Path::new("/xdg/karpenter-build")));
        assert_eq!(root(&all[2..]).as_deref(), Some(Path::new("/home/.cache/karpenter-build")));
        assert_eq!(root(&[]), None);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(
            root(&[("KARPENTER_BUILD_CACHE", ""), ("HOME", "/home")]).as_deref(),
            Some(Path::new("/home/.cache/karpenter-build"))
        );
    }

    #[test]
    fn fingerprints_see_where_a_part_ends() {
        assert_eq!(fingerprint(["ab", "c"]), fingerprint(["ab", "c"]));
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
    }
}
