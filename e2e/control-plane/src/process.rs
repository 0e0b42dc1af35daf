//! One program that never outlives whoever started it.
//!
//! The program runs under a few lines of shell that hold the reading end of a pipe. When the pipe closes, because the
//! owner was dropped or because the owning process died in whatever way, the shell ends the program. No code runs in
//! the dying process, so a kill that cannot be caught is handled too.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Starts `$2…`, ends it when standard input closes: SIGTERM, then SIGKILL after `$1` tenths of a second. A line on
/// standard input names another first signal. Exits with the status of the program.
///
/// The watcher's own SIGTERM is harmless once it has begun to end the program: it then finishes its short sleep and
/// exits, so that no orphan is left and no process id is signalled after it was collected.
const SUPERVISOR: &str = r#"
exec 3<&0 </dev/null
grace=$1
shift
"$@" 3<&- &
program=$!
(
    read -r order <&3
    trap 'exit 0' TERM
    kill -s "${order:-TERM}" "$program"
    while [ "$grace" -gt 0 ]; do
        sleep 0.1
        grace=$((grace - 1))
    done
    kill -s KILL "$program"
) 2>/dev/null &
watcher=$!
exec 3<&-
wait "$program"
status=$?
kill -s TERM "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit "$status"
"#;

/// How long past a program's own grace its supervisor may take before the whole process group is killed.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(5);
/// How often an ending program is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How many lines of a log an error shows.
const LOG_TAIL_LINES: usize = 25;

/// What to start, and where its output goes.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Names the program in messages.
    pub name: String,
    /// The program to run.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables set over those of this process.
    pub environment: Vec<(String, OsString)>,
    /// Takes standard output and standard error, after what is there already.
    pub log: PathBuf,
    /// How long the program may take to end after SIGTERM before it is killed.
    pub grace: Duration,
}

impl Launch {
    /// A launch without arguments, with five seconds of grace.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            log: log.into(),
            grace: Duration::from_secs(5),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn environment(mut self, name: impl Into<String>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }
}

/// A running program. Dropping it ends the program and waits for that.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    grace: Duration,
    supervisor: Child,
    /// Closing this ends the program.
    lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts the program in a process group of its own.
    pub fn start(launch: &Launch) -> Result<Self> {
        let Launch { name, program, arguments, environment, log, grace } = launch;
        let output = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("open the log `{}`", log.display()))?;
        let errors = output.try_clone().context("share the log file")?;
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "supervisor"])
            .arg((grace.as_millis() / 100).to_string())
            .arg(program)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C in a terminal reaches its foreground group only: this process decides when the program ends.
            .process_group(0)
            .spawn()
            .with_context(|| format!("start `{name}`"))?;
        let lifeline = supervisor.stdin.take();
        Ok(Self { name: name.clone(), log: log.clone(), grace: *grace, supervisor, lifeline })
    }

    /// The name given at launch.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The process group in which the program and its supervisor run, and nothing else.
    pub fn group(&self) -> u32 {
        self.supervisor.id()
    }

    /// The exit status, if the program has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.supervisor.try_wait().with_context(|| format!("ask whether `{}` has ended", self.name))
    }

    /// The last lines of the log, for messages.
    pub fn log_tail(&self) -> String {
        tail(&fs::read_to_string(&self.log).unwrap_or_default(), LOG_TAIL_LINES)
    }

    /// Ends the program: SIGTERM, then SIGKILL after its grace. Returns once it is gone.
    pub fn stop(mut self) -> Result<()> {
        self.begin_stop();
        self.await_end()
    }

    /// Ends the program by SIGKILL, as a machine that loses its power would. Returns once it is gone.
    pub fn kill(mut self) -> Result<()> {
        if let Some(lifeline) = &mut self.lifeline {
            // Fails only if the program has just ended by itself, which is what was asked for.
            let _already_gone = lifeline.write_all(b"KILL\n");
        }
        self.begin_stop();
        self.await_end()
    }

    /// Tells the program to end, and does not wait.
    pub(crate) fn begin_stop(&mut self) {
        self.lifeline = None;
    }

    /// Waits for a program that was told to end.
    pub(crate) fn await_end(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.grace + SUPERVISOR_PATIENCE;
        while Instant::now() < deadline {
            if self.ended()?.is_some() {
                return Ok(());
            }
            sleep(POLL_INTERVAL);
        }
        // The supervisor itself is stuck or stopped: nothing gentle is left.
        let killed = signal_group(self.group(), "KILL")?;
        self.supervisor.wait().with_context(|| format!("wait for `{}`", self.name))?;
        if !killed {
            bail!("`{}` did not end within {:?} and could not be killed", self.name, self.grace + SUPERVISOR_PATIENCE);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.begin_stop();
        if let Err(error) = self.await_end() {
            eprintln!("could not end `{}`: {error:#}", self.name);
        }
    }
}

/// Sends a signal to a process group; false if there is none such. Signal `0` only asks.
fn signal_group(group: u32, signal: &str) -> Result<bool> {
    let status = Command::new("sh")
        .args(["-c", r#"kill -s "$1" -- "-$2""#, "signal", signal, &group.to_string()])
        .stderr(Stdio::null())
        .status()
        .context("start a shell to send a signal")?;
    Ok(status.success())
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests;
