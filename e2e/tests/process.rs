//! The controller as a process, which only a real one can show: probes, logs and flags.

use anyhow::{Context, Result};
use e2e::{Bed, Controller, ControllerProcess, ControllerSettings, RealBed, wait_until};

async fn until_ready(controller: &ControllerProcess) -> Result<()> {
    let ready = async || controller.readyz().await.ok().filter(|(status, _)| *status == 200);
    wait_until("a controller to be ready", ready).await?;
    Ok(())
}

fn log_of(controller: &ControllerProcess) -> Result<String> {
    controller.log().context("a process has a log")
}

/// OBS-08: who leads is ready, and so is who stands by and does nothing.
#[test]
fn a_standby_is_ready_too() -> Result<()> {
    RealBed::run(async |bed| {
        let first = bed.start_controller("first", &ControllerSettings::default()).await?;
        wait_until("a leader", async || log_of(&first).ok()?.contains("became leader").then_some(())).await?;
        until_ready(&first).await?;
        assert_eq!(first.healthz().await?.0, 200);

        let second = bed.start_controller("second", &ControllerSettings::default()).await?;
        until_ready(&second).await?;
        wait_until("the standby to wait", async || log_of(&second).ok()?.contains("waiting for lease").then_some(()))
            .await?;
        assert!(!log_of(&second)?.contains("became leader"));
        first.stop().await?;
        second.stop().await
    })
}

/// OBS-08, OBS-12: without the custom resources the controller is alive but not ready, and says why; its log is JSON.
#[test]
fn probes_and_logs() -> Result<()> {
    RealBed::run(missing_resource)
}

async fn missing_resource(bed: &RealBed) -> Result<()> {
    bed.kubectl(&["delete", "crd", "nodepools.karpenter.sh"])?;
    let controller = bed.start_controller("controller", &ControllerSettings::default()).await?;
    let (status, reason) = wait_until("an answer that names the missing resource", async || {
        controller.readyz().await.ok().filter(|(_, body)| body.to_lowercase().contains("nodepool"))
    })
    .await?;
    assert_eq!(status, 500, "{reason}");
    assert_eq!(controller.healthz().await?.0, 200);
    assert!(controller.metrics().await?.contains("process_resident_memory_bytes"));
    let log = log_of(&controller)?;
    assert!(!log.is_empty());
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).with_context(|| format!("`{line}` is JSON"))?;
        for key in ["level", "time", "logger", "message", "commit"] {
            assert!(line[key].is_string(), "{key} in {line}");
        }
    }
    Ok(())
}

/// CFG-01: help names the flags and their environment; an unknown flag is an error with a hint.
#[test]
fn flags_explain_themselves() -> Result<()> {
    let run = |argument: &str| {
        std::process::Command::new(e2e::controller_program()?).arg(argument).output().context("start the controller")
    };
    let help = run("--help")?;
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success());
    for word in ["--batch-idle-duration", "BATCH_IDLE_DURATION", "--feature-gates", "INSTANCE_TYPES_FILE_PATH"] {
        assert!(text.contains(word), "`{word}` in\n{text}");
    }
    let unknown = run("--batch-idle-duratoin=1s")?;
    let complaint = String::from_utf8_lossy(&unknown.stderr);
    assert!(!unknown.status.success());
    assert!(complaint.contains("batch-idle-duratoin") && complaint.contains("batch-idle-duration"), "{complaint}");
    Ok(())
}
