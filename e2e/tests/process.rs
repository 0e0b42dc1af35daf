//! The controller as a process, which only a real one can show: probes, logs and flags.

use anyhow::{Context, Result};
use api::{NodeClaim, NodePool};
use e2e::kill::KillEverywhere;
use e2e::{
    Bed, Controller, ControllerProcess, ControllerSettings, RealBed, inflate, kwok_node_class, node_pool, wait_until,
};
use kube::Api;
use kube::api::ListParams;

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

/// OBS-09: profiles are served only where they were asked for, and Go's own tool reads them.
#[test]
fn profiles_are_served_on_demand() -> Result<()> {
    RealBed::run(async |bed| {
        let table = [("false", 404), ("true", 200)];
        for (enabled, served) in table {
            let settings = ControllerSettings::default().with("ENABLE_PROFILING", enabled);
            let controller = bed.start_controller(enabled, &settings).await?;
            wait_until("an answer", async || controller.page("/metrics").await.ok()).await?;
            assert_eq!(controller.page("/debug/pprof/").await?.0, served, "{enabled}");
            let (status, profile) = controller.download("/debug/pprof/profile?seconds=1").await?;
            assert_eq!(status, served, "{enabled}");
            if status == 200 {
                assert!(read_by_go(&profile)?.contains("Type: cpu"));
            }
            assert_eq!(controller.page("/debug/pprof/heap").await?.1.contains("VmRSS"), enabled == "true");
            controller.stop().await?;
        }
        Ok(())
    })
}

/// What `go tool pprof` says of a profile.
fn read_by_go(profile: &[u8]) -> Result<String> {
    let file = std::env::temp_dir().join(format!("karpenter-profile-{}", std::process::id()));
    std::fs::write(&file, profile)?;
    let output = std::process::Command::new("go").args(["tool", "pprof", "-top"]).arg(&file).output()?;
    std::fs::remove_file(&file)?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// CFG-07: a memory limit becomes a soft limit of nine tenths, told beside the memory in use.
#[test]
fn a_memory_limit_is_told() -> Result<()> {
    RealBed::run(async |bed| {
        let settings = ControllerSettings::default().with("MEMORY_LIMIT", "1000000000");
        let controller = bed.start_controller("limited", &settings).await?;
        let text = wait_until("an answer", async || controller.metrics().await.ok()).await?;
        assert!(text.contains("go_gc_gomemlimit_bytes 9e+08\n"), "{text}");
        assert!(!text.contains("go_gc_heap_live_bytes 0\n") && text.contains("go_gc_heap_live_bytes "), "{text}");
        controller.stop().await
    })
}

/// A process that observes tells what it would do and sends not one write, which a proxy in its way would have seen.
#[test]
fn an_observer_writes_nothing() -> Result<()> {
    RealBed::run(async |bed| {
        let acting = bed.start_controller("acting", &ControllerSettings::default()).await?;
        bed.apply(&kwok_node_class("default")).await?;
        bed.apply(&node_pool("default", "")).await?;
        let pools: Api<NodePool> = Api::all(bed.client());
        let is_ready = |pool: NodePool| {
            let conditions = pool.status.and_then(|status| status.conditions).unwrap_or_default();
            conditions.iter().any(|one| one.type_ == "Ready" && one.status == api::ConditionStatus::True).then_some(())
        };
        wait_until("a ready pool", async || is_ready(pools.get("default").await.ok()?)).await?;
        acting.stop().await?;

        let (writes, _asked) = KillEverywhere::new();
        bed.observe_writes(&writes).await?;
        let observer = bed.start_controller("observer", &ControllerSettings::default().with("OBSERVE", "true")).await?;
        bed.apply(&inflate(3)).await?;
        let decided = "karpenter_observe_decisions_total{decision=\"create\",nodepool=\"default\"}";
        wait_until("a decision", async || observer.metrics().await.ok().filter(|text| text.contains(decided))).await?;
        let log = log_of(&observer)?;
        assert!(log.contains("would have created nodeclaim"), "{log}");
        until_ready(&observer).await?;
        observer.stop().await?;
        assert_eq!(writes.visited().len(), 0, "{:?}", writes.visited());
        let claims: Api<NodeClaim> = Api::all(bed.client());
        assert_eq!(claims.list(&ListParams::default()).await?.items.len(), 0);
        Ok(())
    })
}
