//! Questions that are asked of hundreds of instance types in a row.

use model::{InstanceType, Price, Requirement, Requirements, Text};

/// A demand with the place where its label was last found: types of one provider have their labels in one order.
struct Demand<'a> {
    key: &'a Text,
    requirement: &'a Requirement,
    in_type: usize,
    in_offering: usize,
}

/// Asks types for the lowest price at which they meet some demands.
pub(crate) struct Pricing<'a> {
    demands: Vec<Demand<'a>>,
}

impl<'a> Pricing<'a> {
    pub(crate) fn of(requirements: &'a Requirements) -> Self {
        let demand = |(key, requirement)| Demand { key, requirement, in_type: 0, in_offering: 0 };
        Self { demands: requirements.iter().map(demand).collect() }
    }

    /// The lowest price of the type under the demands; none when it does not meet them or is not for sale.
    pub(crate) fn price(&mut self, kind: &InstanceType) -> Option<Price> {
        for demand in &mut self.demands {
            let stated = kind.requirements.get_near(demand.key, &mut demand.in_type);
            if stated.is_some_and(|stated| !stated.agrees_with(demand.requirement)) {
                return None;
            }
        }
        let mut lowest: Option<Price> = None;
        for offering in &kind.offerings {
            if lowest.is_some_and(|lowest| lowest <= offering.price) || !offering.is_launchable() {
                continue;
            }
            let meets = |demand: &mut Demand<'_>| {
                let stated = offering.requirements.get_near(demand.key, &mut demand.in_offering);
                stated.is_none_or(|stated| stated.agrees_with(demand.requirement))
            };
            if self.demands.iter_mut().all(meets) {
                lowest = Some(offering.price);
            }
        }
        lowest
    }
}
