//! `cargo xtask bench`: the planner and the Go scheduler on the same scenarios, in turns.

mod demand;
mod outcome;
mod programs;
mod table;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use control_plane::cache_root;

use demand::{Compared, Growth};
use outcome::Outcome;
use programs::{Check, Memory, Programs};

/// What is compared unless somebody asks for something else.
const PATTERNS: [&str; 3] = ["diverse-5000", "ec2-*", "existing-*"];
/// What takes the Go scheduler from half a minute to several.
const PATTERNS_SLOW: [&str; 2] = ["diverse-10000", "diverse-20000"];
/// The two ends between which the time of the planner must grow with the number of pods, and no faster.
const GROWTH_FROM: (&str, u32) = ("diverse-5000", 5_000);
const GROWTH_TO: (&str, u32) = ("diverse-100000", 100_000);
/// How often a program solves a scenario each time it is started: the first times its caches are cold.
const SOLVES_PER_START: u16 = 3;
/// How often, if the Go scheduler needs no longer than this: controllers live long, and solve more than once.
const SOLVES_PER_START_IF_FAST: u16 = 7;
const FAST_MILLISECONDS: f64 = 3_000.0;
/// A scenario on which the Go scheduler needs longer than this is solved by it only once.
const PEER_ONCE_MILLISECONDS: f64 = 20_000.0;
/// Plans for more pods are not checked: the referee compares pods with pods, which takes minutes from here on.
const CHECKED_PODS_MAX: u32 = 10_000;

/// Compares the planner with the Go scheduler in speed, memory and money, in turns on this machine (needs go).
///
/// Prints a table in Markdown, and whether each demand is met. Fails if one is missed.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// How many turns each program gets on each scenario; the median counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Scenarios by name or shell pattern instead of the usual ones (bench/README.md lists them).
    #[arg(long, value_name = "PATTERN", num_args = 1.., conflicts_with = "quick")]
    scenarios: Vec<String>,
    /// Another seed gives other scenarios of the same kinds.
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Leaves out what takes the Go scheduler minutes.
    #[arg(long)]
    quick: bool,
    /// Keeps the scenarios and everything that was printed in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl BenchArgs {
    /// Patterns of the scenarios to make, those for the growth among them.
    fn patterns(&self) -> Vec<&str> {
        if !self.scenarios.is_empty() {
            return self.scenarios.iter().map(String::as_str).collect();
        }
        let slow = if self.quick { &[][..] } else { &PATTERNS_SLOW };
        PATTERNS.iter().chain(slow).copied().chain([GROWTH_TO.0]).collect()
    }
}

/// Builds both programs, makes the scenarios, runs, prints, judges.
pub(crate) fn run(root: &Path, args: &BenchArgs) -> Result<()> {
    let programs = Programs::build(root)?;
    let folder = Folder::open(args.keep.as_deref())?;
    let files = programs.make_scenarios(&folder.path, args.seed, &args.patterns())?;
    ensure!(!files.is_empty(), "no scenario has such a name");
    let course = Course { programs: &programs, folder: &folder, turns: args.runs };
    let mut compared = Vec::new();
    for file in files.iter().filter(|file| name_of(file) != GROWTH_TO.0) {
        compared.push(course.compare(file)?);
    }
    let ends = [GROWTH_FROM.0, GROWTH_TO.0].map(|end| files.iter().find(|file| name_of(file) == end));
    let growth = match ends {
        [Some(from), Some(to)] => Some(course.growth(from, to)?),
        _ => None,
    };
    let page = table::page(&compared, growth.as_ref());
    println!("{page}");
    folder.keep("table.md", &page)?;
    let missed = demand::missed(&compared, growth.as_ref());
    if !missed.is_empty() {
        bail!("{} demands are missed: {}", missed.len(), missed.join("; "));
    }
    Ok(())
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// One run of this command.
struct Course<'a> {
    programs: &'a Programs,
    folder: &'a Folder,
    turns: u16,
}

impl Course<'_> {
    /// Both on one scenario. The first turn weighs memory and checks the plan; unless the Go scheduler is too slow for
    /// more, the times are those of the turns after it.
    fn compare(&self, file: &Path) -> Result<Compared> {
        let name = name_of(file);
        let mut peer = self.peer(file, 1, Memory::Weighed)?;
        let check = if peer.pods <= CHECKED_PODS_MAX { Check::EveryRule } else { Check::Nothing };
        let mut ours = self.ours(file, SOLVES_PER_START, check)?;
        let is_fast = peer.median_milliseconds() <= FAST_MILLISECONDS;
        let solves = if is_fast { SOLVES_PER_START_IF_FAST } else { SOLVES_PER_START };
        let peer_may_repeat = peer.median_milliseconds() <= PEER_ONCE_MILLISECONDS;
        if peer_may_repeat {
            peer.forget_times();
        }
        ours.forget_times();
        for _ in 0..self.turns {
            if peer_may_repeat {
                peer.merge(self.peer(file, solves, Memory::Ignored)?);
            }
            ours.merge(self.ours(file, solves, Check::Nothing)?);
        }
        let (theirs, own) = (peer.median_milliseconds(), ours.median_milliseconds());
        eprintln!("{name}: Go {theirs:.1} ms, ours {own:.2} ms");
        Ok(Compared { name, peer, ours })
    }

    /// The planner alone on a small and a large scenario of one kind, in turns.
    fn growth(&self, from: &Path, to: &Path) -> Result<Growth> {
        let (mut small, mut large) = (self.alone(from)?, self.alone(to)?);
        for _ in 1..self.turns {
            small.merge(self.alone(from)?);
            large.merge(self.alone(to)?);
        }
        Ok(Growth {
            pods: [GROWTH_FROM.1, GROWTH_TO.1],
            milliseconds: [small.median_milliseconds(), large.median_milliseconds()],
        })
    }

    fn peer(&self, file: &Path, solves: u16, memory: Memory) -> Result<Outcome> {
        let printed = self.programs.run_peer(file, solves, memory)?;
        self.folder.keep(&format!("{}.peer.jsonl", name_of(file)), &printed)?;
        Outcome::parse(&printed).with_context(|| format!("understand what the Go scheduler says of {}", name_of(file)))
    }

    fn alone(&self, file: &Path) -> Result<Outcome> {
        self.ours(file, SOLVES_PER_START, Check::Nothing)
    }

    fn ours(&self, file: &Path, solves: u16, check: Check) -> Result<Outcome> {
        let printed = self.programs.run_ours(file, solves, check)?;
        self.folder.keep(&format!("{}.ours.jsonl", name_of(file)), &printed)?;
        Outcome::parse(&printed).with_context(|| format!("understand what the planner says of {}", name_of(file)))
    }
}

/// Where scenarios are written; removed at the end unless it shall be kept.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn open(kept: Option<&Path>) -> Result<Self> {
        let path = match kept {
            Some(folder) => std::path::absolute(folder)?,
            None => cache_root()?.join(format!("bench/scenarios-{}", std::process::id())),
        };
        fs::create_dir_all(&path).with_context(|| format!("create `{}`", path.display()))?;
        Ok(Self { path, is_kept: kept.is_some() })
    }

    /// Adds text to a file, if anybody wants to see it.
    fn keep(&self, name: &str, text: &str) -> Result<()> {
        if !self.is_kept {
            return Ok(());
        }
        let path = self.path.join(name);
        let file = fs::OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{}", text.trim_end()));
        written.with_context(|| format!("write `{}`", path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed is found in the build cache by whoever cleans it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::BenchArgs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchArgs,
    }

    #[test]
    fn the_usual_scenarios_may_be_fewer_or_others() {
        for (line, expected) in [
            ("bench", "diverse-5000 ec2-* existing-* diverse-10000 diverse-20000 diverse-100000"),
            ("bench --quick", "diverse-5000 ec2-* existing-* diverse-100000"),
            ("bench --scenarios ec2-gpu-* diverse-50 --seed 3", "ec2-gpu-* diverse-50"),
        ] {
            let parsed =
                Line::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(parsed.args.patterns().join(" "), expected, "{line}");
        }
        assert!(Line::try_parse_from(["bench", "--runs", "0"]).is_err());
    }
}
