//! What processes used, from the process table.

use std::fs;

use anyhow::{Context, Result, ensure};

/// Processor time and memory of all processes of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// User and system time.
    pub(crate) cpu_seconds: f64,
    /// The largest resident set that one of them ever had.
    pub(crate) peak_mebibytes: f64,
}

/// Clock ticks per second in `/proc`: fixed by the kernel's interface, whatever its timer.
const TICKS_PER_SECOND: f64 = 100.0;

/// What the processes of a group used since they began.
pub(crate) fn usage(group: u32) -> Result<Usage> {
    let mut sum = Usage::default();
    let mut found = false;
    for entry in fs::read_dir("/proc").context("read the process table")? {
        let path = entry?.path();
        // A process may end while it is looked at.
        let Ok(stat) = fs::read_to_string(path.join("stat")) else { continue };
        let Some(seconds) = seconds_of(&stat, group) else { continue };
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        found = true;
        sum.cpu_seconds += seconds;
        sum.peak_mebibytes = sum.peak_mebibytes.max(peak_of(&status).unwrap_or(0.0));
    }
    ensure!(found, "there is no process of group {group}");
    Ok(sum)
}

/// The processor time that this program itself has used: it takes part in what it measures.
pub(crate) fn own_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("read the process table")?;
    let (_, seconds) = group_and_seconds(&stat).context("understand the process table")?;
    Ok(seconds)
}

/// The processor time of a process if it belongs to the group.
fn seconds_of(stat: &str, group: u32) -> Option<f64> {
    let (own, seconds) = group_and_seconds(stat)?;
    (own == group).then_some(seconds)
}

fn group_and_seconds(stat: &str) -> Option<(u32, f64)> {
    // The second field is a name in parentheses, which may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some((fields.get(2)?.parse().ok()?, (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND))
}

fn peak_of(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_do_not_shift_fields() {
        let stat = "12 (a (b) c) S 1 77 77 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 4 0 100 1 1";
        assert_eq!(seconds_of(stat, 77), Some(3.0));
        assert_eq!(seconds_of(stat, 78), None);
    }

    #[test]
    fn the_peak_is_read_in_mebibytes() {
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t  2048 kB\n"), Some(2.0));
    }

    #[test]
    fn this_process_has_used_something() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let (group, _) = group_and_seconds(&stat).unwrap();
        assert!(usage(group).unwrap().peak_mebibytes > 0.5);
    }
}
