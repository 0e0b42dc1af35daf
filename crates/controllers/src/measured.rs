//! The provider, with every call measured; for a process that only observes, without hands.

use std::sync::Arc;

use api::lower::UnsupportedVolumes;
use api::{DurationText, NodeClaim, NodePool, labels};
use cloud::{
    CloudError, CloudProvider, Instance, InstanceTypes, LaunchError, LaunchRequest, Launched, NodeClassKind,
    RebootError, RegistrationHook, RepairPolicy, Termination,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::{ProviderId, Vocabulary};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::process::Mode;
use crate::work;

/// The error of a call whose instance is gone, in the metric.
const NOT_FOUND: &str = "NodeClaimNotFoundError";
/// The error of a call that failed in a way that has no name.
const UNKNOWN: &str = "unknown";

/// A provider whose calls are measured.
pub(crate) struct MeasuredProvider {
    inner: Arc<dyn CloudProvider>,
    metrics: Arc<Metrics>,
    mode: Mode,
}

/// A call under way.
struct Call<'a> {
    provider: &'a MeasuredProvider,
    method: &'static str,
    began: Instant,
    pool: &'a str,
}

impl MeasuredProvider {
    pub(crate) fn new(inner: Arc<dyn CloudProvider>, metrics: Arc<Metrics>, mode: Mode) -> Self {
        Self { inner, metrics, mode }
    }

    fn call<'a>(&'a self, method: &'static str, pool: &'a str) -> Call<'a> {
        Call { provider: self, method, began: Instant::now(), pool }
    }
}

impl Call<'_> {
    fn ended(&self, error: Option<&'static str>) {
        let Self { provider, method, began, pool } = self;
        let (controller, name) = (work::current_controller(), provider.inner.name());
        provider.metrics.provider.seconds.observe([controller, method, name], began.elapsed().as_secs_f64());
        if let Some(error) = error {
            provider.metrics.provider.errors.inc([controller, method, name, error, pool]);
        }
    }
}

/// The name of a launch's failure in the metric.
fn launch_error(error: &LaunchError) -> &'static str {
    match error {
        LaunchError::InsufficientCapacity { .. } => "InsufficientCapacityError",
        LaunchError::NodeClassNotReady { .. } => "NodeClassNotReadyError",
        _ => UNKNOWN,
    }
}

fn pool_of(claim: &NodeClaim) -> &str {
    let own = claim.metadata.labels.as_ref();
    own.and_then(|own| own.get(labels::NODE_POOL)).map_or("", String::as_str)
}

impl CloudProvider for MeasuredProvider {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        self.inner.vocabulary()
    }

    fn node_class_kind(&self) -> NodeClassKind {
        self.inner.node_class_kind()
    }

    fn unsupported_volumes(&self) -> UnsupportedVolumes {
        self.inner.unsupported_volumes()
    }

    fn default_termination_grace_period(&self) -> Option<DurationText> {
        self.inner.default_termination_grace_period()
    }

    fn registration_hooks(&self) -> Vec<Arc<dyn RegistrationHook>> {
        self.inner.registration_hooks()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<InstanceTypes, CloudError>> {
        async move {
            let call = self.call("GetInstanceTypes", pool.metadata.name.as_deref().unwrap_or_default());
            let answer = self.inner.instance_types(pool).await;
            call.ended(answer.is_err().then_some(UNKNOWN));
            answer
        }
        .boxed()
    }

    fn launch<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        async move {
            if self.mode == Mode::Observe {
                return Err(LaunchError::Failed { message: only_observing() });
            }
            let call = self.call("Create", pool_of(&request.claim));
            let answer = self.inner.launch(request).await;
            call.ended(answer.as_ref().err().map(launch_error));
            answer
        }
        .boxed()
    }

    fn find_launched<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Option<Launched>, CloudError>> {
        async move {
            let call = self.call("FindLaunched", pool_of(&request.claim));
            let answer = self.inner.find_launched(request).await;
            call.ended(answer.is_err().then_some(UNKNOWN));
            answer
        }
        .boxed()
    }

    fn terminate<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Termination, CloudError>> {
        async move {
            if self.mode == Mode::Observe {
                return Err(CloudError { attempt: "end instance", message: only_observing() });
            }
            let call = self.call("Delete", pool_of(claim));
            let answer = self.inner.terminate(claim).await;
            call.ended(match &answer {
                Ok(Termination::Requested) => None,
                Ok(Termination::Gone) => Some(NOT_FOUND),
                Err(_) => Some(UNKNOWN),
            });
            answer
        }
        .boxed()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), RebootError>> {
        async move {
            if self.mode == Mode::Observe {
                return Err(RebootError::Unanswered { message: only_observing() });
            }
            let call = self.call("Reboot", pool_of(claim));
            let answer = self.inner.reboot(claim, operation).await;
            call.ended(answer.as_ref().err().map(|error| match error {
                RebootError::NotFound { .. } => NOT_FOUND,
                _ => UNKNOWN,
            }));
            answer
        }
        .boxed()
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Instance>, CloudError>> {
        async move {
            let call = self.call("Get", "");
            let answer = self.inner.get(id).await;
            call.ended(match &answer {
                Ok(Some(_)) => None,
                Ok(None) => Some(NOT_FOUND),
                Err(_) => Some(UNKNOWN),
            });
            answer
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, CloudError>> {
        async move {
            let call = self.call("List", "");
            let answer = self.inner.list().await;
            call.ended(answer.is_err().then_some(UNKNOWN));
            answer
        }
        .boxed()
    }
}

fn only_observing() -> String {
    "this process only observes".to_owned()
}
