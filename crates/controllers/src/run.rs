//! A whole process: endpoints, leadership, watches, hub, and an orderly end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cloud::{CloudProvider, RepairError, check_repair_policies};
use futures::future::{BoxFuture, FutureExt, pending};
use kube::Client;
use planner::{PlaceConfig, ReservationPolicy};
use tokio::sync::oneshot;

use crate::census::Observability;
use crate::clock::{Clock, SystemClock};
use crate::context::{Context, ContextParts};
use crate::metrics::{Build, Metrics, Naming};
use crate::planted::Planted;
use crate::process::{
    Calls, Lost, Options, ProcessMetrics, Readiness, ServeError, SoftLimit, bind_all_interfaces, metrics_router,
    missing_resources, probe_router, profile_router, scaled, shutdown_signal,
};
use crate::reign::{Contender, Reign};
use crate::solver::{Solver, ThreadSolver};
use crate::{hub, watches};

/// What a binary wires together.
pub struct Wiring {
    /// Configuration.
    pub options: Options,
    /// The API server, through [`Calls::client`].
    pub client: Client,
    /// What its calls share.
    pub calls: Arc<Calls>,
    /// The cloud.
    pub provider: Arc<dyn CloudProvider>,
    /// What this program is.
    pub build: Build,
    /// The first half of the lease holder's name.
    pub host_name: String,
    /// A word that no other process uses.
    pub process_id: String,
    /// What the provider does once this process leads and before anything else happens.
    pub on_leading: BoxFuture<'static, ()>,
}

/// Why a process ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A port could not be had.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Signals cannot be heard.
    #[error("listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    /// Another process leads now; two must not act at once.
    #[error("leadership lost: {0:?}")]
    LeadershipLost(Lost),
    /// Nodes are to be repaired, and the provider does not say how.
    #[error(transparent)]
    Repair(#[from] RepairError),
    /// A watch came to an end, which is a bug; a new process starts with new ones.
    #[error("a watch ended")]
    WatchEnded,
}

/// Runs until SIGTERM or SIGINT, or until another process leads.
pub async fn run(wiring: Wiring) -> Result<(), RunError> {
    let Wiring { options, client, calls, provider, build, host_name, process_id, on_leading } = wiring;
    let metrics = registry(&options, &build, Naming::of(provider.as_ref()), calls);
    let readiness = Readiness::default();
    serve(&options, &metrics, &readiness).await?;
    tokio::spawn(look_up_resources(client.clone(), readiness.clone()));
    let shutdown = shutdown_signal()?;
    let operation = Operation {
        options,
        client,
        provider,
        clock: Arc::new(SystemClock),
        solver: Arc::new(ThreadSolver),
        metrics,
        readiness,
        host_name,
        process_id,
        on_leading,
        planted: Planted::default(),
    };
    operate(operation, async {
        shutdown.await;
    })
    .await
}

/// Metrics, with those of the process itself and of its calls.
fn registry(options: &Options, build: &Build, naming: Naming, calls: Arc<Calls>) -> Arc<Metrics> {
    let metrics = Arc::new(Metrics::new(build, naming));
    metrics.collect_from(Arc::new(ProcessMetrics::new(options.memory_limit_bytes)));
    metrics.collect_from(calls);
    metrics
}

/// The controllers of one process, with everything that is chance or time handed in.
pub struct Operation {
    /// Configuration.
    pub options: Options,
    /// The API server.
    pub client: Client,
    /// The cloud.
    pub provider: Arc<dyn CloudProvider>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Where the planner runs.
    pub solver: Arc<dyn Solver>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Told how far the process is.
    pub readiness: Readiness,
    /// The first half of the lease holder's name.
    pub host_name: String,
    /// A word that no other process uses.
    pub process_id: String,
    /// What the provider does once this process leads and before anything else happens.
    pub on_leading: BoxFuture<'static, ()>,
    /// The mistake to make, in tests.
    pub planted: Planted,
}

/// Waits to lead, then runs the controllers until `shutdown` completes or another process leads.
///
/// Dropping the future stops everything at its current await, as a killed process would stop: no task outlives it.
pub async fn operate(operation: Operation, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    let Operation {
        options,
        client,
        provider,
        clock,
        solver,
        metrics,
        readiness,
        host_name,
        process_id,
        on_leading,
        planted,
    } = operation;
    check_repair(&options, provider.as_ref())?;
    let mut shutdown = Box::pin(shutdown);
    let mut reign = Reign::new(Contender {
        options: &options,
        client: &client,
        clock: &clock,
        metrics: &metrics,
        host_name: &host_name,
        process_id: &process_id,
        on_leading,
    });
    if reign.is_contested() {
        readiness.standby();
        reign.announce();
    }
    if !reign.is_warm() {
        let is_over = tokio::select! {
            () = reign.begin() => false,
            () = &mut shutdown => true,
        };
        if is_over {
            return finish(None, reign).await;
        }
    }

    let place_config = place_config(&options);
    let observability = observability(&options);
    let (context, signals) = Context::new(ContextParts {
        client: client.clone(),
        provider: Arc::clone(&provider),
        clock,
        solver,
        metrics,
        readiness,
        place_config,
        default_spread: options.scheduler_config,
        gates: options.feature_gates,
        observability,
        batch_idle: options.batch_idle_duration,
        batch_max: options.batch_max_duration,
        process_id,
        planted,
        mode: options.mode,
        soft_limit: SoftLimit::of(options.memory_limit_bytes),
        running_max: scaled(hub::RUNNING_LEAST, hub::RUNNING_MOST, options.cpu_requests_millicores),
    });
    let (mut watching, news) = watches::start(&client, provider.as_ref(), &context.wanted_kinds());
    let (leads, leading) = oneshot::channel();
    let mut failure = None;
    let end = async {
        tokio::select! {
            biased;
            () = &mut shutdown => {}
            reason = reign.hold(&context, leads) => failure = Some(RunError::LeadershipLost(reason)),
            _ = watching.join_next() => failure = Some(RunError::WatchEnded),
        }
    };
    hub::run(Arc::clone(&context), news, signals, leading.map(drop), end).await;
    finish(failure, reign).await
}

/// The old way of repairing asks for nothing.
fn check_repair(options: &Options, provider: &dyn CloudProvider) -> Result<(), RepairError> {
    let is_wanted = options.feature_gates.node_repair && !options.legacy_node_repair;
    if is_wanted { check_repair_policies(&provider.repair_policies()) } else { Ok(()) }
}

fn observability(options: &Options) -> Observability {
    if options.disable_cluster_state_observability { Observability::Reduced } else { Observability::Full }
}

/// What the options say about placements.
fn place_config(options: &Options) -> PlaceConfig {
    let reservations = match options.feature_gates.reserved_capacity {
        true => ReservationPolicy::Strict,
        false => ReservationPolicy::Ignored,
    };
    PlaceConfig {
        preferences: options.preference_policy,
        min_values: options.min_values_policy,
        reservations,
        ..PlaceConfig::default()
    }
}

async fn finish(failure: Option<RunError>, reign: Reign) -> Result<(), RunError> {
    if let Some(failure) = failure {
        tracing::error!(%failure, "ending");
        return Err(failure);
    }
    reign.end().await;
    tracing::info!("shut down");
    Ok(())
}

async fn serve(options: &Options, metrics: &Arc<Metrics>, readiness: &Readiness) -> Result<(), ServeError> {
    let probes = bind_all_interfaces(options.health_probe_port, probe_router(readiness.clone())).await?;
    let metrics = bind_all_interfaces(options.metrics_port, metrics_endpoint(options, metrics)).await?;
    tracing::info!(probes = %probes.address(), metrics = %metrics.address(), "serving probes and metrics");
    for server in [probes, metrics] {
        tokio::spawn(async move {
            if let Err(error) = server.run(pending()).await {
                tracing::error!(%error, "endpoint ended");
            }
        });
    }
    Ok(())
}

/// What is served on the metrics port.
fn metrics_endpoint(options: &Options, metrics: &Arc<Metrics>) -> Router {
    let router = metrics_router(Arc::clone(metrics));
    if options.enable_profiling { router.merge(profile_router()) } else { router }
}

/// Asks until the custom resources are there; without them nothing can work, and `/readyz` says so.
async fn look_up_resources(client: Client, readiness: Readiness) {
    const ASK_AGAIN: Duration = Duration::from_secs(1);
    loop {
        match missing_resources(&client).await {
            Ok(missing) => {
                let is_complete = missing.is_empty();
                readiness.resources_looked_up(missing);
                if is_complete {
                    return;
                }
            }
            Err(error) => tracing::error!(%error, "could not look up custom resources"),
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
