//! Calls of the cloud provider.

use super::table::{DEFAULT_SECONDS, families};

families! {
    /// Metrics of calls of the provider.
    ProviderMetrics {
        seconds: Histogram ["controller", "method", "provider"]
            "karpenter_cloudprovider_duration_seconds" in DEFAULT_SECONDS, "Duration of calls of the provider";
        errors: Counter ["controller", "method", "provider", "error", "nodepool"]
            "karpenter_cloudprovider_errors_total", "Calls of the provider that failed, by how";
    }
    computed {}
    later {}
}
