//! The controller as a process: leadership, probes, logs, flags and an orderly end.

use anyhow::{Context, Result};
use e2e::{Bed, Controller, ControllerSettings, wait_for, wait_until};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt};

fn holder(lease: Option<&Lease>) -> Option<String> {
    lease?.spec.as_ref()?.holder_identity.clone().filter(|name| !name.is_empty())
}

/// OBS-08, OBS-15: one leads, the other stands by and is ready; on SIGTERM the lease is given back at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over() -> Result<()> {
    let bed = Bed::start().await?;
    let leases = || Api::<Lease>::namespaced(bed.client.clone(), "kube-system");
    let leads = |lease: &e2e::Seen<Lease>| holder(lease.get("karpenter-leader-election"));
    let named = ControllerSettings::default().with("HOSTNAME", "first");
    let first = Controller::start(&bed, "first", &named)?;
    wait_for(leases(), "the first leader", |seen| leads(seen).is_some_and(|name| name.starts_with("first_"))).await?;
    wait_until("the first to be ready", async || first.readyz().await.ok().filter(|(status, _)| *status == 200))
        .await?;
    assert_eq!(first.healthz().await?.0, 200);

    let second = Controller::start(&bed, "second", &ControllerSettings::default().with("HOSTNAME", "second"))?;
    wait_until("the standby to be ready", async || second.readyz().await.ok().filter(|(status, _)| *status == 200))
        .await?;
    wait_until("the standby to wait", async || second.log().contains("waiting for lease").then_some(())).await?;
    assert!(!second.log().contains("became leader"));
    first.stop()?;
    let seen =
        wait_for(leases(), "the second leader", |seen| leads(seen).is_some_and(|name| name.starts_with("second_")))
            .await?;
    let identity =
        holder(seen.values().find(|lease| lease.name_any() == "karpenter-leader-election")).context("a holder")?;
    let (_, id) = identity.split_once('_').context("host and id")?;
    assert!(!id.is_empty());
    second.stop()
}

/// OBS-08, OBS-12: without the custom resources the controller is alive but not ready, and says why; its log is JSON.
#[tokio::test(flavor = "multi_thread")]
async fn probes_and_logs() -> Result<()> {
    let bed = Bed::start().await?;
    bed.kubectl(&["delete", "crd", "nodepools.karpenter.sh"])?;
    let controller = Controller::start(&bed, "controller", &ControllerSettings::default())?;
    let (status, reason) = wait_until("an answer that names the missing resource", async || {
        controller.readyz().await.ok().filter(|(_, body)| body.to_lowercase().contains("nodepool"))
    })
    .await?;
    assert_eq!(status, 500, "{reason}");
    assert_eq!(controller.healthz().await?.0, 200);
    assert!(controller.metrics().await?.contains("process_resident_memory_bytes"));
    let log = controller.log();
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
