//! A provider whose calls go wrong when a fault plan says so.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use api::lower::UnsupportedVolumes;
use api::{DurationText, NodeClaim, NodePool};
use cloud::{
    CloudError, CloudProvider, Instance, InstanceTypes, LaunchError, LaunchRequest, Launched, NodeClassKind,
    RebootError, RegistrationHook, RepairPolicy, Termination,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::{ProviderId, Vocabulary};

use crate::chance::Chance;
use crate::effect::Effect;
use crate::fault::{Call, CallFault};
use crate::process::Processes;
use crate::wire::Caller;

const LATE: RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_secs(40);

/// Stands between the controllers and a provider.
pub struct MeddledProvider {
    inner: Arc<dyn CloudProvider>,
    caller: Caller,
    processes: Processes,
    chance: Chance,
}

/// The call went wrong on the way.
struct Wrong(CallFault);

impl MeddledProvider {
    /// Meddles with the calls of one process.
    pub fn new(inner: Arc<dyn CloudProvider>, caller: Caller, processes: Processes, seed: u64) -> Self {
        let chance = Chance::of(seed, &format!("{} calls the cloud", caller.process));
        Self { inner, caller, processes, chance }
    }

    /// Makes a call, unless it goes wrong before; forgets its answer if it goes wrong after.
    async fn through<T>(&self, name: &str, call: impl Future<Output = T>) -> Result<T, Wrong> {
        let effect = Effect::named(name);
        let announced = Call { process: &self.caller.process, effect: &effect, body: &[] };
        let Some(fault) = self.caller.meddler.as_ref().and_then(|meddler| meddler.meddle(&announced)) else {
            return Ok(call.await);
        };
        match fault {
            CallFault::Late => tokio::time::sleep(self.chance.duration(&LATE)).await,
            CallFault::KillBefore => {
                self.processes.kill(&self.caller.process);
                std::future::pending::<()>().await;
            }
            CallFault::AnswerLost | CallFault::KillAfter => {}
            CallFault::Fails
            | CallFault::Throttled
            | CallFault::Conflicts
            | CallFault::RequestLost
            | CallFault::Breaks
            | CallFault::TooOld => return Err(Wrong(fault)),
        }
        let answer = call.await;
        match fault {
            CallFault::KillAfter => {
                self.processes.kill(&self.caller.process);
                std::future::pending().await
            }
            CallFault::AnswerLost => Err(Wrong(fault)),
            _ => Ok(answer),
        }
    }

    async fn asked<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, CloudError>>,
    ) -> Result<T, CloudError> {
        match self.through(name, call).await {
            Ok(answer) => answer,
            Err(Wrong(fault)) => {
                Err(CloudError { attempt: name, message: format!("the fault plan: {}", fault.name()) })
            }
        }
    }

    async fn launched(&self, request: &LaunchRequest) -> Result<Launched, LaunchError> {
        match self.through("cloud launch", self.inner.launch(request)).await {
            Ok(answer) => answer,
            Err(Wrong(CallFault::Throttled)) => {
                let after = Some(Duration::from_secs(1));
                Err(LaunchError::Throttled { message: "the fault plan: throttled".to_owned(), after })
            }
            Err(Wrong(fault)) => Err(LaunchError::Failed { message: format!("the fault plan: {}", fault.name()) }),
        }
    }
}

impl CloudProvider for MeddledProvider {
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
        self.asked("cloud types", self.inner.instance_types(pool)).boxed()
    }

    fn launch<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        self.launched(request).boxed()
    }

    fn find_launched<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Option<Launched>, CloudError>> {
        self.asked("cloud find", self.inner.find_launched(request)).boxed()
    }

    fn terminate<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Termination, CloudError>> {
        self.asked("cloud terminate", self.inner.terminate(claim)).boxed()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), RebootError>> {
        self.inner.reboot(claim, operation)
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Instance>, CloudError>> {
        self.asked("cloud get", self.inner.get(id)).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, CloudError>> {
        self.asked("cloud list", self.inner.list()).boxed()
    }
}
