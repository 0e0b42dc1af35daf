//! The hash of a pool's template, kept beside the pool and beside the claims that were made from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::node_claim::conditions;
use api::{NodeClaim, NodePool, hash, labels};
use model::PoolName;
use serde_json::{Value, json};

use crate::context::Context;
use crate::lifecycle::name_of;
use crate::write::{self, WriteError};

/// Keeps the hash beside the pool, so that nodes made from an older template can be told.
///
/// A hash of another version says nothing about the template: then the claims are brought up to date first, for a pool
/// that has the new version means that its claims can be compared with it.
pub(super) async fn stamp(context: &Context, name: &PoolName, pool: &NodePool) -> Result<(), WriteError> {
    let hash = hash::node_pool_hash(&pool.spec.template);
    let stored = pool.metadata.annotations.clone().unwrap_or_default();
    if !has_version(&stored) {
        let claims: Vec<Arc<NodeClaim>> = context.cluster().claims().map(|(_, claim)| Arc::clone(claim)).collect();
        for (claim, annotations) in claims.iter().filter_map(|claim| Some((claim, migrated(claim, name, &hash)?))) {
            let patch = json!({"metadata": {"annotations": annotations}});
            match write::patch_claim(context, &name_of(claim), &patch).await {
                Ok(_) | Err(WriteError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    if has_version(&stored) && stored.get(labels::NODE_POOL_HASH) == Some(&hash) {
        return Ok(());
    }
    let annotations = json!({labels::NODE_POOL_HASH: hash, labels::NODE_POOL_HASH_VERSION: hash::HASH_VERSION});
    write::patch_pool(context, name, &json!({"metadata": {"annotations": annotations}})).await
}

fn has_version(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(labels::NODE_POOL_HASH_VERSION).is_some_and(|version| version == hash::HASH_VERSION)
}

/// What a claim of the pool with a hash of another version gets. A drifted one keeps its hash: whether it would still
/// be drifted cannot be known.
fn migrated(claim: &NodeClaim, pool: &PoolName, hash: &str) -> Option<Value> {
    let is_own = |(key, value): (&String, &String)| key == labels::NODE_POOL && value == pool.as_str();
    let is_current = claim.metadata.annotations.as_ref().is_some_and(has_version);
    if is_current || !claim.metadata.labels.iter().flatten().any(is_own) {
        return None;
    }
    let stated = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_drifted = stated.into_iter().any(|condition| condition.type_ == conditions::DRIFTED);
    Some(match is_drifted {
        true => json!({labels::NODE_POOL_HASH_VERSION: hash::HASH_VERSION}),
        false => json!({labels::NODE_POOL_HASH_VERSION: hash::HASH_VERSION, labels::NODE_POOL_HASH: hash}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// API-56: who gets what when the version of the hash changes.
    #[test]
    fn claims_of_another_version_are_brought_up_to_date() {
        let both = json!({"karpenter.sh/nodepool-hash": "42", "karpenter.sh/nodepool-hash-version": "v3"});
        let version = json!({"karpenter.sh/nodepool-hash-version": "v3"});
        let said =
            |status: &str| json!([{"type": "Drifted", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let drifted = said("True");
        let table = [
            ("p", "v2", json!([]), Some(&both)),
            ("p", "", json!([]), Some(&both)),
            ("p", "v2", drifted.clone(), Some(&version)),
            ("p", "v2", said("False"), Some(&version)),
            ("p", "v3", json!([]), None),
            ("p", "v3", drifted, None),
            ("other", "v2", json!([]), None),
        ];
        for (pool, version, conditions, expected) in table {
            let claim = json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": "c", "labels": {"karpenter.sh/nodepool": pool},
                    "annotations": {"karpenter.sh/nodepool-hash": "7", "karpenter.sh/nodepool-hash-version": version}},
                "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
                "status": {"conditions": conditions},
            });
            let claim: NodeClaim = serde_json::from_value(claim).expect("a claim");
            assert_eq!(migrated(&claim, &PoolName::new("p"), "42").as_ref(), expected, "{pool} {version} {conditions}");
        }
    }
}
