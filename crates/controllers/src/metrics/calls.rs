//! Calls of the API server, under the names that the reference's client uses.

use std::sync::Arc;

use super::families::{Exported, Page, Registry};
use super::table::{Naming, families};

/// From a millisecond on, each half as long again as the one before.
const REQUEST_SECONDS: &[f64] = &[
    0.001,
    0.0015,
    0.00225,
    0.003375,
    0.0050625,
    0.00759375,
    0.011390625,
    0.0170859375,
    0.02562890625,
    0.038443359375,
    0.0576650390625,
    0.08649755859375,
    0.129746337890625,
    0.1946195068359375,
    0.29192926025390625,
    0.43789389038085936,
    0.6568408355712891,
    0.9852612533569335,
    1.4778918800354003,
    2.2168378200531003,
];

families! {
    /// Metrics of calls.
    CallFamilies {
        requests: Counter ["code", "method"]
            "client_go_request_total", "Requests to the API server, by HTTP code of the answer";
        request_seconds: Histogram ["verb", "group", "version", "kind", "subresource"]
            "client_go_request_duration_seconds" in REQUEST_SECONDS, "Duration of requests to the API server";
        refused: Counter ["verb", "resource"]
            "karpenter_observe_refused_writes_total", "Writes that were not sent because the process only observes";
    }
    computed {}
    later {}
}

/// Metrics of calls; they are there before anything else, and so apart from all others.
#[derive(Debug)]
pub struct CallMetrics {
    families: CallFamilies,
    exported: Vec<Arc<dyn Exported>>,
}

impl std::ops::Deref for CallMetrics {
    type Target = CallFamilies;

    fn deref(&self) -> &CallFamilies {
        &self.families
    }
}

impl CallMetrics {
    pub(crate) fn standalone() -> Self {
        let mut registry = Registry::new(Naming::default());
        let families = CallFamilies::new(&mut registry);
        Self { families, exported: registry.finish().1 }
    }

    pub(crate) fn write(&self, page: &mut Page) {
        self.exported.iter().for_each(|family| family.write(page));
    }
}
