//! Steps that are numbered, timed and stop at the first failure, and the count of tests they ran.

use std::time::Instant;

use anyhow::{Context, Result};

/// Tests counted over several test programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Reads the line with which a test program ends; other lines are `None`.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count =
            |what: &str| counts.split(';').find_map(|part| part.trim().strip_suffix(what)?.trim().parse::<u64>().ok());
        Some(Self { passed: count("passed")?, failed: count("failed")? })
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The course of one run.
#[derive(Debug)]
pub(crate) struct Tiers {
    total: usize,
    done: Vec<&'static str>,
    pub(crate) tally: Tally,
}

impl Tiers {
    /// A run of `total` steps.
    pub(crate) fn new(total: usize) -> Self {
        Self { total, done: Vec::new(), tally: Tally::default() }
    }

    /// Runs one step under its number and prints its time; a failure names the step.
    pub(crate) fn step<T>(&mut self, name: &'static str, action: impl FnOnce(&mut Tally) -> Result<T>) -> Result<T> {
        let place = format!("[{}/{}] {name}", self.done.len() + 1, self.total);
        println!("{place}");
        let started = Instant::now();
        let outcome = action(&mut self.tally);
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(value) => {
                println!("{place}: ok, {seconds:.1} s");
                self.done.push(name);
                Ok(value)
            }
            Err(error) => {
                println!("{place}: failed after {seconds:.1} s");
                Err(error).with_context(|| format!("FAILED in step {place}"))
            }
        }
    }

    /// The names of all steps, if every one of them ran.
    pub(crate) fn completed(&self) -> Option<String> {
        (self.done.len() == self.total).then(|| self.done.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::{Tally, Tiers};

    #[test]
    fn a_tally_is_read_from_the_last_line_of_a_test_program() {
        let line = "test result: FAILED. 20 passed; 1 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.33s";
        assert_eq!(Tally::from_line(line), Some(Tally { passed: 20, failed: 1 }));
        assert_eq!(Tally::from_line("test result_is_kept ... ok"), None);
        assert_eq!(Tally::from_line("running 3 tests"), None);
    }

    #[test]
    fn a_run_is_complete_only_when_every_step_ran() {
        let mut tiers = Tiers::new(2);
        tiers.step("one", |_| Ok(())).unwrap();
        assert_eq!(tiers.completed(), None);
        tiers.step("two", |_| Ok(())).unwrap();
        assert_eq!(tiers.completed().as_deref(), Some("one, two"));
    }

    #[test]
    fn a_failure_names_its_step() {
        let mut tiers = Tiers::new(3);
        tiers.step("one", |_| Ok(())).unwrap();
        let error = tiers.step::<()>("two", |_| bail!("because")).unwrap_err();
        assert_eq!(format!("{error:#}"), "FAILED in step [2/3] two: because");
        assert_eq!(tiers.completed(), None);
    }
}
