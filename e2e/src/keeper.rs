//! Keeping a controller running, as a Deployment would.

use std::time::Duration;

use anyhow::Result;

use crate::bed::{Bed, Controller, ControllerSettings};

/// How long whoever ended is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts a controller whenever there is none; ends only when one cannot be started.
///
/// A leader that cannot renew its lease ends itself, since another may lead by then. That is no fault, and in a cluster
/// there would be a successor at once.
pub async fn keep_running(bed: &impl Bed, name: &str, settings: &ControllerSettings) -> Result<()> {
    for run in 0.. {
        let mut controller = bed.start_controller(&format!("{name}-{run}"), settings).await?;
        controller.ended().await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
