//! The folder of one running control plane, removed whatever happens to the process that made it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// Waits until standard input closes, then removes `$1`. Programs that are just ending may still write there, so it
/// tries again, for ten seconds at most.
const JANITOR: &str = r#"
read -r line
tries=0
while [ -e "$1" ] && [ "$tries" -lt 100 ]; do
    rm -rf -- "$1"
    [ -e "$1" ] && sleep 0.1
    tries=$((tries + 1))
done
"#;

/// Where folders go that live in memory, if the system has such a place.
const MEMORY_FOLDER: &str = "/dev/shm";

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A fresh folder with the subfolders `logs` and `home`.
#[derive(Debug)]
pub(crate) struct Workspace {
    folder: PathBuf,
    janitor: Child,
}

impl Workspace {
    pub(crate) fn create() -> Result<Self> {
        let memory = Path::new(MEMORY_FOLDER);
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let folder = fresh_folder(&parent)?;
        // The janitor starts before the folder holds anything, and outlives this process by its own means.
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start a shell that removes the folder of the control plane")?;
        let workspace = Self { folder, janitor };
        for subfolder in [workspace.logs(), workspace.home()] {
            fs::create_dir(&subfolder).with_context(|| format!("create `{}`", subfolder.display()))?;
        }
        Ok(workspace)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// A home folder in which programs find nobody's settings.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file that others on this machine must not read (keys, kubeconfigs) and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content).with_context(|| format!("write `{}`", path.display()))?;
        Ok(path)
    }

    /// Copies the logs to a folder that stays, named like this one with `-logs` behind it, and returns its path.
    pub(crate) fn keep_logs(&self) -> Result<PathBuf> {
        let mut name = self.folder.file_name().unwrap_or_default().to_owned();
        name.push("-logs");
        let kept = std::env::temp_dir().join(name);
        fs::create_dir_all(&kept).with_context(|| format!("create `{}`", kept.display()))?;
        for entry in fs::read_dir(self.logs()).context("list the logs")? {
            let entry = entry.context("list the logs")?;
            fs::copy(entry.path(), kept.join(entry.file_name())).context("copy a log")?;
        }
        Ok(kept)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        if let Err(error) = self.janitor.wait() {
            eprintln!("could not wait for the removal of `{}`: {error}", self.folder.display());
        }
    }
}

/// Creates a folder that only this user may enter, under a name nobody used before.
fn fresh_folder(parent: &Path) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;

    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("karpenter-control-plane-{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            // Left by an earlier process with the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("create `{}`", folder.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Workspace;

    #[test]
    fn a_dropped_workspace_is_gone_and_kept_logs_stay() {
        let workspace = Workspace::create().unwrap();
        let folder = workspace.path("");
        std::fs::write(workspace.logs().join("etcd.log"), "hello").unwrap();
        let kept = workspace.keep_logs().unwrap();
        drop(workspace);
        assert!(!folder.exists());
        assert_eq!(std::fs::read_to_string(kept.join("etcd.log")).unwrap(), "hello");
        std::fs::remove_dir_all(kept).unwrap();
    }
}
