//! Metrics, under the names that dashboards and alerts already know.
//!
//! Each file declares the metrics of one subject as rows of [`table()`] and has the functions that feed them. Most are
//! counted as things happen. Those that describe every pod or node are not kept anywhere: they are read off the state
//! when somebody scrapes.

mod calls;
mod claims;
pub(crate) mod cluster;
pub(crate) mod conditions;
pub(crate) mod families;
pub(crate) mod nodes;
mod own;
pub(crate) mod pods;
pub(crate) mod pools;
mod provider;
pub(crate) mod runtime;
pub(crate) mod scheduler;
pub(crate) mod table;
mod voluntary;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub use calls::{CallFamilies, CallMetrics};
pub use claims::ClaimMetrics;
pub use cluster::ClusterMetrics;
pub use conditions::ConditionMetrics;
pub use families::{Counter, Gauge, Histogram, Page, Summary};
pub use nodes::NodeMetrics;
pub use own::OwnMetrics;
pub use pods::PodMetrics;
pub use pools::PoolMetrics;
pub use provider::ProviderMetrics;
pub use runtime::RuntimeMetrics;
pub use scheduler::SchedulerMetrics;
pub use table::{Kind, NODE_CLASS, Naming, Row, Source, WELL_KNOWN, table};
pub use voluntary::VoluntaryMetrics;

pub(crate) use claims::ClaimLabels;
use families::{Exported, Registry};
pub(crate) use own::HeldBack;
pub(crate) use runtime::PassResult;

/// What a program is, for `karpenter_build_info`. The labels keep the names that dashboards know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Build {
    /// Version of the program.
    pub version: String,
    /// Version of the compiler.
    pub goversion: String,
    /// Processor architecture.
    pub goarch: String,
    /// Revision of the source.
    pub commit: String,
}

/// Adds what is known only at the moment of a scrape.
pub trait Collector: Send + Sync {
    /// Writes its metrics on the page.
    fn collect(&self, page: &mut Page);
}

/// All metrics of the controllers.
pub struct Metrics {
    /// Of NodeClaims.
    pub claims: ClaimMetrics,
    /// Of Nodes.
    pub nodes: NodeMetrics,
    /// Of pods.
    pub pods: PodMetrics,
    /// Of NodePools.
    pub pools: PoolMetrics,
    /// Of solves.
    pub scheduler: SchedulerMetrics,
    /// Of voluntary disruption.
    pub voluntary: VoluntaryMetrics,
    /// Of the state in memory.
    pub cluster: ClusterMetrics,
    /// Of calls of the provider.
    pub provider: ProviderMetrics,
    /// Of status conditions.
    pub conditions: ConditionMetrics,
    /// Of the machinery.
    pub runtime: RuntimeMetrics,
    /// That only this controller has.
    pub own: OwnMetrics,
    naming: Naming,
    exported: Vec<Arc<dyn Exported>>,
    collectors: Mutex<Vec<Arc<dyn Collector>>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Metrics").field("families", &self.exported.len()).finish_non_exhaustive()
    }
}

impl Metrics {
    /// Makes every family; `naming` has the labels that depend on the provider.
    pub fn new(build: &Build, naming: Naming) -> Self {
        let mut registry = Registry::new(naming);
        let own = OwnMetrics::new(&mut registry);
        let Build { version, goversion, goarch, commit } = build;
        own.build.set([version, goversion, goarch, commit], 1.0);
        let claims = ClaimMetrics::new(&mut registry);
        let nodes = NodeMetrics::new(&mut registry);
        let pods = PodMetrics::new(&mut registry);
        let pools = PoolMetrics::new(&mut registry);
        let scheduler = SchedulerMetrics::new(&mut registry);
        let voluntary = VoluntaryMetrics::new(&mut registry);
        let cluster = ClusterMetrics::new(&mut registry);
        let provider = ProviderMetrics::new(&mut registry);
        let conditions = ConditionMetrics::new(&mut registry);
        let runtime = RuntimeMetrics::new(&mut registry);
        let (naming, exported) = registry.finish();
        Self {
            claims,
            nodes,
            pods,
            pools,
            scheduler,
            voluntary,
            cluster,
            provider,
            conditions,
            runtime,
            own,
            naming,
            exported,
            collectors: Mutex::default(),
        }
    }

    /// The labels that depend on the provider.
    pub fn naming(&self) -> &Naming {
        &self.naming
    }

    /// Adds something that is asked at every scrape.
    pub fn collect_from(&self, collector: Arc<dyn Collector>) {
        self.collectors.lock().unwrap_or_else(PoisonError::into_inner).push(collector);
    }

    /// Everything as Prometheus reads it.
    pub fn scrape(&self) -> String {
        let mut page = Page::default();
        for family in &self.exported {
            family.write(&mut page);
        }
        let collectors = self.collectors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for collector in collectors {
            collector.collect(&mut page);
        }
        page.into_text()
    }
}

#[cfg(test)]
#[path = "counted_tests.rs"]
mod tests;
