//! The leadership of one process: waited for, begun, and held until it is lost.

use std::sync::Arc;
use std::time::Duration;

use api::NodeClaim;
use futures::future::{BoxFuture, pending};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
use model::ClaimName;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::context::Context;
use crate::metrics::Metrics;
use crate::process::{LeaderConfig, LeaderElector, Lost, Mode, Options};

/// Who competes for leadership.
pub(crate) struct Contender<'a> {
    pub(crate) options: &'a Options,
    pub(crate) client: &'a Client,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) metrics: &'a Arc<Metrics>,
    /// The two halves of the lease holder's name.
    pub(crate) host_name: &'a str,
    pub(crate) process_id: &'a str,
    /// What the provider does once this process leads and before anything else happens.
    pub(crate) on_leading: BoxFuture<'static, ()>,
}

/// The leadership of one process.
pub(crate) struct Reign {
    /// Nobody else can lead where there is none.
    elector: Option<LeaderElector>,
    is_warm: bool,
    lease: String,
    mode: Mode,
    client: Client,
    metrics: Arc<Metrics>,
    on_leading: Option<BoxFuture<'static, ()>>,
}

impl Reign {
    pub(crate) fn new(contender: Contender<'_>) -> Self {
        let Contender { options, client, clock, metrics, host_name, process_id, on_leading } = contender;
        let is_electing = options.mode == Mode::Act && !options.disable_leader_election;
        let elector = is_electing.then(|| {
            let leases: Api<Lease> = Api::namespaced(client.clone(), &options.leader_election_namespace);
            let config = LeaderConfig::new(&options.leader_election_name, host_name, process_id);
            let clock = Arc::clone(clock);
            LeaderElector::new(leases, config, Arc::new(move || clock.now()))
        });
        Self {
            elector,
            is_warm: is_electing && !options.disable_controller_warmup,
            lease: options.leader_election_name.clone(),
            mode: options.mode,
            client: client.clone(),
            metrics: Arc::clone(metrics),
            on_leading: Some(on_leading),
        }
    }

    /// Whether others may lead now, so that this process has to wait.
    pub(crate) fn is_contested(&self) -> bool {
        self.elector.is_some()
    }

    /// Whether the caches are filled while another process leads.
    pub(crate) fn is_warm(&self) -> bool {
        self.is_warm
    }

    /// Says that this process waits.
    pub(crate) fn announce(&self) {
        self.metrics.runtime.is_leader.set([&self.lease], 0.0);
        tracing::info!("waiting to become leader");
    }

    /// Waits for the Lease, if there is one, and lets the provider take up what the last leader left.
    pub(crate) async fn begin(&mut self) {
        if let Some(elector) = &mut self.elector {
            elector.acquire().await;
            self.metrics.runtime.is_leader.set([&self.lease], 1.0);
            tracing::info!("became leader");
        }
        if self.mode == Mode::Observe {
            tracing::info!("observing: nothing is written");
        } else if let Some(on_leading) = self.on_leading.take() {
            on_leading.await;
        }
    }

    /// Says so once the controllers may act, and ends when they may no longer.
    pub(crate) async fn hold(&mut self, context: &Context, leads: oneshot::Sender<()>) -> Lost {
        if self.is_warm {
            self.begin().await;
        }
        let (is_warm, client) = (self.is_warm, &self.client);
        let acting = async {
            if is_warm {
                catch_up(client, context).await;
            }
            // Nobody listens only if everything is over.
            let _ = leads.send(());
            pending().await
        };
        let lost = async {
            match &mut self.elector {
                Some(elector) => elector.hold().await,
                None => pending().await,
            }
        };
        tokio::select! {
            reason = acting => reason,
            reason = lost => reason,
        }
    }

    /// Gives the lease back, so that a standby need not wait for it to run out.
    pub(crate) async fn end(self) {
        if let Some(mut elector) = self.elector
            && let Err(error) = elector.release().await
        {
            tracing::error!(%error, "could not release the lease");
        }
    }
}

/// Waits until the state of a process that watched before it led knows every claim that there is. A watch may be behind,
/// and what the last leader made would be made again.
async fn catch_up(client: &Client, context: &Context) {
    const LOOK_AGAIN: Duration = Duration::from_millis(200);
    let claims: Api<NodeClaim> = Api::all(client.clone());
    loop {
        match claims.list_metadata(&ListParams::default()).await {
            Ok(made) => {
                let cluster = context.cluster();
                let is_known = |name: String| cluster.claim(&ClaimName::new(name.as_str())).is_some();
                if made.items.into_iter().filter_map(|claim| claim.metadata.name).all(is_known) {
                    return;
                }
            }
            Err(error) => tracing::error!(%error, "could not look up what the last leader made"),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
