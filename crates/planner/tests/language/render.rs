//! Plans as text.

use std::collections::BTreeSet;

use model::{Plan, PlannedClaim, PodKey, Text, TypeName};

use super::Scenario;

impl Scenario {
    /// One line per claim, nomination, refusal and barren pool.
    pub(crate) fn render(&self, plan: &Plan) -> String {
        let mut lines = Vec::new();
        for claim in &plan.claims {
            let types: Vec<&str> = claim.types.iter().map(TypeName::as_str).collect();
            let (types, zones) = (types.join("|"), self.zones(claim).join("|"));
            lines.push(format!("{} {types} {zones} ${}: {}", claim.pool, claim.price.dollars(), names(&claim.pods)));
            if self.shows("requests") {
                lines.push(format!("  requests {}", claim.requests));
            }
            if self.shows("requirements") {
                let relaxed = if claim.min_values_relaxed { " (minValues relaxed)" } else { "" };
                lines.push(format!("  requirements {}{relaxed}", claim.requirements));
            }
        }
        lines.extend(
            plan.nominations.iter().map(|nomination| format!("{}: {}", nomination.place, names(&nomination.pods))),
        );
        for unplaced in &plan.unplaced {
            lines.push(format!("nowhere: {}", names(&unplaced.pods)));
            lines.extend(unplaced.refusals.iter().map(|refusal| format!("  {refusal}")));
            if self.shows("places") {
                lines.extend(unplaced.places.iter().map(|refusal| format!("  {refusal}")));
            }
        }
        lines.extend(plan.barren_pools.iter().map(|refusal| format!("barren {refusal}")));
        if self.shows("bound") {
            lines.push(format!("bound ${}", plan.bound.dollars()));
        }
        if self.shows("sequence") {
            lines.push(format!("sequence {}", names(&plan.sequence)));
        }
        lines.join("\n")
    }

    fn shows(&self, what: &str) -> bool {
        self.show.contains(what)
    }

    /// The zones in which the claim can be bought.
    fn zones(&self, claim: &PlannedClaim) -> Vec<Text> {
        let pools = self.snapshot.pools.iter().filter(|pool| pool.name == claim.pool);
        let listed = pools.flat_map(|pool| pool.types.iter()).filter(|kind| claim.types.contains(&kind.name));
        let offerings = listed.flat_map(|kind| kind.offerings_for(&claim.requirements));
        let zones: BTreeSet<Text> = offerings.filter_map(|offering| offering.zone().cloned()).collect();
        zones.into_iter().collect()
    }
}

fn names(pods: &[PodKey]) -> String {
    pods.iter().map(|pod| &*pod.name).collect::<Vec<_>>().join(" ")
}
