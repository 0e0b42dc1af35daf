//! `bench`: measures the planner on scenario files.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use measure::{HeapMeter, Line, Report, Scenario, ScenarioError, Table, Way, max_resident_bytes};

use crate::arguments::BenchArguments;
use crate::failure::Failure;

/// Where Linux tells a process about itself.
const STATUS: &str = "/proc/self/status";

/// Plans and tells one scenario after the other. The exit code says whether the referee agrees with every plan.
///
/// A file that cannot be used ends the run; what was measured before it has been told by then.
pub fn run(arguments: &BenchArguments, heap: HeapMeter) -> Result<ExitCode, Failure> {
    let BenchArguments { files, runs, json, no_audit, no_detail } = arguments;
    let way = Way { runs: usize::from(*runs), detail: *json && !no_detail, audit: !no_audit, heap };
    let table = (!json).then(|| Table::of_files(files.iter().map(PathBuf::as_path)));
    if let Some(table) = &table {
        write(&table.header())?;
    }
    let mut is_well = true;
    for file in files {
        let report = measured(file, way).map_err(|error| unusable(file, &error))?;
        is_well &= report.violations.is_empty();
        write(&match &table {
            Some(table) => table.row(&report),
            None => {
                let status = std::fs::read_to_string(STATUS).unwrap_or_default();
                Line { max_resident_bytes: max_resident_bytes(&status), report: &report }.json()
            }
        })?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measured(file: &Path, way: Way) -> Result<Report, ScenarioError> {
    let scenario = Scenario::read(file)?;
    Ok(measure::measure(&scenario, way)?.report)
}

fn unusable(file: &Path, error: &ScenarioError) -> Failure {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let place = match error {
        ScenarioError::Meaningless { .. } => format!("`{}`: ", file.display()),
        ScenarioError::Unreadable { .. } | ScenarioError::Malformed { .. } | ScenarioError::Version { .. } => {
            String::new()
        }
    };
    let hint = "give the path of a scenario of the comparison; bench/README.md shows what belongs in it";
    Failure::misuse(format!("{place}{error}{cause}"), Some(hint))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{text}").and_then(|()| output.flush());
    written.map_err(|error| Failure::trouble(format!("cannot write the report: {error}")))
}
