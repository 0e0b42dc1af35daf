//! Metrics, under the names that dashboards and alerts already know.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use model::Plan;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::deletion_cost::DeletionCostMetrics;
use crate::provisioning::EffectiveZone;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabel {
    nodepool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Created {
    reason: String,
    nodepool: String,
    min_values_relaxed: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Disrupted {
    reason: String,
    nodepool: String,
    capacity_type: String,
    consolidation_policy: String,
    termination_mode: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Terminated {
    nodepool: String,
    capacity_type: String,
    zone: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    nodepool: String,
    zone: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ZoneLabels {
    controller: &'static str,
    zone: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciled {
    controller: &'static str,
    result: &'static str,
}

/// What a program is, for `karpenter_build_info`. The labels keep the names that dashboards know.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
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

/// Where a claim came from, for labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimLabels {
    pub(crate) pool: String,
    pub(crate) zone: String,
    pub(crate) capacity_type: String,
}

/// All metrics of the controllers.
#[derive(Debug)]
pub struct Metrics {
    claims_created: Family<Created, Counter>,
    claims_disrupted: Family<Disrupted, Counter>,
    claims_terminated: Family<Terminated, Counter>,
    nodes_created: Family<NodeLabels, Counter>,
    nodes_terminated: Family<NodeLabels, Counter>,
    nodes_drained: Family<PoolLabel, Counter>,
    evictions: Family<CodeLabel, Counter>,
    solve_seconds: Family<ControllerLabel, Histogram>,
    first_claim_seconds: Histogram,
    unschedulable_pods: Family<ControllerLabel, Gauge>,
    pending_pods_by_zone: Family<ZoneLabels, Gauge>,
    ignored_pods: Gauge,
    state_nodes: Gauge,
    state_synced: Gauge,
    reconciles: Family<Reconciled, Counter>,
    malformed_objects: Family<KindLabel, Counter>,
    cluster_price: Gauge<f64, AtomicU64>,
    price_bound: Gauge<f64, AtomicU64>,
    price_gap: Gauge<f64, AtomicU64>,
    search_steps: Histogram,
    pub(crate) deletion_costs: DeletionCostMetrics,
}

fn duration_histogram() -> Histogram {
    const SECONDS: [f64; 17] =
        [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
    Histogram::new(SECONDS)
}

fn step_histogram() -> Histogram {
    const STEPS: [f64; 9] = [1e2, 1e3, 1e4, 1e5, 1e6, 5e6, 1e7, 2e7, 5e7];
    Histogram::new(STEPS)
}

impl Metrics {
    /// Registers everything.
    pub fn new(registry: &mut Registry, build: &Build) -> Self {
        let metrics = Self {
            claims_created: Family::default(),
            claims_disrupted: Family::default(),
            claims_terminated: Family::default(),
            nodes_created: Family::default(),
            nodes_terminated: Family::default(),
            nodes_drained: Family::default(),
            evictions: Family::default(),
            solve_seconds: Family::new_with_constructor(duration_histogram),
            first_claim_seconds: duration_histogram(),
            unschedulable_pods: Family::default(),
            pending_pods_by_zone: Family::default(),
            ignored_pods: Gauge::default(),
            state_nodes: Gauge::default(),
            state_synced: Gauge::default(),
            reconciles: Family::default(),
            malformed_objects: Family::default(),
            cluster_price: Gauge::default(),
            price_bound: Gauge::default(),
            price_gap: Gauge::default(),
            search_steps: step_histogram(),
            deletion_costs: DeletionCostMetrics::default(),
        };
        let info: Family<Build, Gauge> = Family::default();
        info.get_or_create(build).set(1);
        let own = registry.sub_registry_with_prefix("karpenter");
        own.register("build_info", "What is running", info);
        metrics.register(own);
        registry.register("controller_runtime_reconcile", "Passes over one key by result", metrics.reconciles.clone());
        metrics
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("nodeclaims_created", "NodeClaims created", self.claims_created.clone());
        registry.register("nodeclaims_disrupted", "NodeClaims ended on purpose", self.claims_disrupted.clone());
        registry.register("nodeclaims_terminated", "NodeClaims that are gone", self.claims_terminated.clone());
        registry.register("nodes_created", "Nodes that registered", self.nodes_created.clone());
        registry.register("nodes_terminated", "Nodes that are gone", self.nodes_terminated.clone());
        registry.register("nodes_drained", "Nodes that were drained", self.nodes_drained.clone());
        registry.register("pods_eviction_requests", "Evictions by HTTP code", self.evictions.clone());
        let solve = "Duration of one solve in seconds";
        registry.register("scheduler_scheduling_duration_seconds", solve, self.solve_seconds.clone());
        let first = "Time from the end of the batch window to the first NodeClaim in seconds";
        registry.register("provisioner_first_claim_duration_seconds", first, self.first_claim_seconds.clone());
        let unschedulable = "Pods that fit nowhere";
        registry.register("scheduler_unschedulable_pods_count", unschedulable, self.unschedulable_pods.clone());
        let by_zone = "Waiting pods by the zone they can be in";
        registry.register("scheduler_pending_pods_by_effective_zone_count", by_zone, self.pending_pods_by_zone.clone());
        registry.register("scheduler_ignored_pods_count", "Pods that cannot be planned", self.ignored_pods.clone());
        registry.register("cluster_state_node_count", "Nodes in memory", self.state_nodes.clone());
        registry.register("cluster_state_synced", "Whether everything was listed once", self.state_synced.clone());
        let malformed = "Objects of a watch that could not be read";
        registry.register("watch_malformed_objects", malformed, self.malformed_objects.clone());
        let price = "Price of all planned nodes of the last pass in dollars per hour";
        registry.register("provisioner_planned_price", price, self.cluster_price.clone());
        let bound = "What the planned nodes of the last pass cost at least, however planned, in dollars per hour";
        registry.register("scheduler_planned_price_bound", bound, self.price_bound.clone());
        let gap = "By what part of its price the last plan may be dearer than the cheapest one, at most";
        registry.register("scheduler_planned_price_gap", gap, self.price_gap.clone());
        let steps = "Counted steps of the search for one plan";
        registry.register("scheduler_search_steps", steps, self.search_steps.clone());
        self.deletion_costs.register(registry);
    }

    pub(crate) fn claim_created(&self, pool: &str, min_values_relaxed: bool) {
        let labels = Created {
            reason: "provisioned".to_owned(),
            nodepool: pool.to_owned(),
            min_values_relaxed: min_values_relaxed.to_string(),
        };
        self.claims_created.get_or_create(&labels).inc();
    }

    pub(crate) fn claim_disrupted(&self, reason: &str, claim: ClaimLabels, termination_mode: &str) {
        let labels = Disrupted {
            reason: reason.to_owned(),
            nodepool: claim.pool,
            capacity_type: claim.capacity_type,
            consolidation_policy: String::new(),
            termination_mode: termination_mode.to_owned(),
        };
        self.claims_disrupted.get_or_create(&labels).inc();
    }

    pub(crate) fn claim_terminated(&self, claim: ClaimLabels) {
        let ClaimLabels { pool, zone, capacity_type } = claim;
        self.claims_terminated.get_or_create(&Terminated { nodepool: pool, capacity_type, zone }).inc();
    }

    pub(crate) fn node_created(&self, claim: ClaimLabels) {
        let ClaimLabels { pool, zone, capacity_type: _ } = claim;
        self.nodes_created.get_or_create(&NodeLabels { nodepool: pool, zone }).inc();
    }

    pub(crate) fn node_terminated(&self, claim: ClaimLabels) {
        let ClaimLabels { pool, zone, capacity_type: _ } = claim;
        self.nodes_terminated.get_or_create(&NodeLabels { nodepool: pool, zone }).inc();
    }

    pub(crate) fn node_drained(&self, claim: ClaimLabels) {
        self.nodes_drained.get_or_create(&PoolLabel { nodepool: claim.pool }).inc();
    }

    pub(crate) fn eviction_answered(&self, code: u16) {
        self.evictions.get_or_create(&CodeLabel { code }).inc();
    }

    pub(crate) fn solved(&self, seconds: f64, plan: &Plan) {
        self.solve_seconds.get_or_create(&ControllerLabel { controller: "provisioner" }).observe(seconds);
        self.cluster_price.set(plan.price().dollars());
        self.price_bound.set(plan.bound.dollars());
        self.price_gap.set(plan.gap());
        #[expect(clippy::cast_precision_loss, reason = "a histogram has no use for the last digit")]
        self.search_steps.observe(plan.steps as f64);
    }

    pub(crate) fn first_claim_after(&self, seconds: f64) {
        self.first_claim_seconds.observe(seconds);
    }

    pub(crate) fn pods_unplaced(&self, unschedulable: usize, ignored: usize) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.unschedulable_pods.get_or_create(&ControllerLabel { controller: "provisioner" }).set(gauge(unschedulable));
        self.ignored_pods.set(gauge(ignored));
    }

    /// Zones that no pod waits for any more are no longer told of.
    pub(crate) fn pods_by_zone(&self, counts: &BTreeMap<EffectiveZone, usize>) {
        self.pending_pods_by_zone.clear();
        for (zone, count) in counts {
            let labels = ZoneLabels { controller: "provisioner", zone: zone.to_string() };
            self.pending_pods_by_zone.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn state(&self, nodes: usize, synced: bool) {
        self.state_nodes.set(i64::try_from(nodes).unwrap_or(i64::MAX));
        self.state_synced.set(i64::from(synced));
    }

    pub(crate) fn reconciled(&self, controller: &'static str, result: &'static str) {
        self.reconciles.get_or_create(&Reconciled { controller, result }).inc();
    }

    pub(crate) fn malformed(&self, kind: &'static str) {
        self.malformed_objects.get_or_create(&KindLabel { kind }).inc();
    }
}
