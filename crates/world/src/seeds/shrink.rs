//! Making a failing plan small: what is not needed for the failure is left out.

use anyhow::Result;

use super::run::{Report, RunSettings, run};
use crate::fault::FaultPlan;

/// The smallest plan found that still breaks a rule, by leaving out one fault after the other.
pub fn shrink(report: &Report, settings: &RunSettings) -> Result<Report> {
    let mut smallest = report.clone();
    let mut index = 0;
    while index < smallest.plan.faults.len() {
        let mut faults = smallest.plan.faults.clone();
        faults.remove(index);
        let tried = run(report.seed, &RunSettings { plan: Some(FaultPlan { faults }), ..settings.clone() })?;
        if tried.violations.is_empty() {
            index += 1;
        } else {
            smallest = tried;
        }
    }
    Ok(smallest)
}
