//! What the planner has to reach beside the Go scheduler, and whether it does.

use super::outcome::Outcome;

/// How many times faster: on the mix of the Go scheduler's own benchmark, on the EC2 catalogue, where nodes exist.
const SPEED_DIVERSE: f64 = 100.0;
const SPEED_EC2: f64 = 300.0;
const SPEED_EXISTING: f64 = 100.0;
/// What part of its heap.
const HEAP: f64 = 0.1;
/// How much dearer than what no plan can undercut.
const OVER_BOUND: f64 = 1.05;
/// What part of its price: anywhere, and where neither limits nor the size of machines stand in the way.
const PRICE: f64 = 1.0;
const PRICE_FREE: f64 = 0.8;
/// How much faster than the number of pods the time may grow.
const GROWTH: f64 = 1.3;
/// Sums of prices are floating-point numbers.
const ROUNDING: f64 = 1e-9;

/// Both programs on one scenario.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    /// The scenario.
    pub(super) name: String,
    /// The Go scheduler.
    pub(super) peer: Outcome,
    /// The planner.
    pub(super) ours: Outcome,
}

/// The planner on a small and a large scenario of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// How many pods.
    pub(super) pods: [u32; 2],
    /// How long.
    pub(super) milliseconds: [f64; 2],
}

impl Growth {
    /// By what factor the time grows faster than the pods.
    pub(super) fn excess(&self) -> f64 {
        let [small, large] = self.milliseconds;
        let [few, many] = self.pods.map(f64::from);
        ratio(large, small) / (many / few)
    }

    pub(super) fn demand(&self) -> Demand {
        Demand::at_most("growth of time over growth of pods", self.excess(), GROWTH)
    }
}

/// One thing to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// What.
    pub(super) what: &'static str,
    /// What was reached.
    pub(super) reached: f64,
    /// What was asked for.
    pub(super) limit: Limit,
}

/// On which side of a number it has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
}

impl Demand {
    fn at_least(what: &'static str, reached: f64, limit: f64) -> Self {
        Self { what, reached, limit: Limit::AtLeast(limit) }
    }

    fn at_most(what: &'static str, reached: f64, limit: f64) -> Self {
        Self { what, reached, limit: Limit::AtMost(limit) }
    }

    /// Whether it is reached.
    pub(super) fn is_met(&self) -> bool {
        self.room() >= -ROUNDING
    }

    /// How far it is overfulfilled, in parts of the limit; less than nothing if it is missed.
    pub(super) fn room(&self) -> f64 {
        match self.limit {
            Limit::AtLeast(limit) => (self.reached - limit) / limit,
            Limit::AtMost(limit) => (limit - self.reached) / limit.max(1.0),
        }
    }
}

/// What part one number is of another; nothing is all of nothing.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if part == whole { 1.0 } else { part / whole }
}

impl Compared {
    /// How many times faster than the Go scheduler.
    pub(super) fn speed(&self) -> f64 {
        ratio(self.peer.median_milliseconds(), self.ours.median_milliseconds())
    }

    /// What part of its heap, if both were weighed.
    pub(super) fn heap(&self) -> Option<f64> {
        Some(ratio(self.ours.heap_bytes? as f64, self.peer.heap_bytes? as f64))
    }

    /// What part of its price.
    pub(super) fn price(&self) -> f64 {
        ratio(self.ours.price, self.peer.price)
    }

    /// What part of its price if every claim is launched at its worst.
    pub(super) fn worst_launch(&self) -> f64 {
        ratio(self.ours.worst_launch, self.peer.worst_launch)
    }

    /// How much dearer than our own bound, if there is one to speak of.
    pub(super) fn over_bound(&self) -> Option<f64> {
        self.ours.bound.filter(|bound| *bound > 0.0).map(|bound| self.ours.price / bound)
    }

    /// All that is asked of this scenario.
    pub(super) fn demands(&self) -> Vec<Demand> {
        let is_ec2 = self.name.starts_with("ec2-");
        let mut demands = Vec::new();
        match self.name.split('-').next() {
            Some("diverse") => demands.push(Demand::at_least("speed, diverse", self.speed(), SPEED_DIVERSE)),
            Some("ec2") => demands.push(Demand::at_least("speed, EC2", self.speed(), SPEED_EC2)),
            Some("existing") => demands.push(Demand::at_least("speed, existing nodes", self.speed(), SPEED_EXISTING)),
            _ => {}
        }
        demands.extend(self.heap().map(|heap| Demand::at_most("heap", heap, HEAP)));
        if is_ec2 {
            demands.extend(self.over_bound().map(|over| Demand::at_most("price over bound, EC2", over, OVER_BOUND)));
        }
        // A plan that finds a place for more pods may well cost more.
        if self.ours.unplaced >= self.peer.unplaced {
            demands.push(Demand::at_most("price", self.price(), PRICE));
            if is_ec2 && !self.is_capped() {
                demands.push(Demand::at_most("price, uncapped EC2", self.price(), PRICE_FREE));
                demands.push(Demand::at_most("worst launch price, uncapped EC2", self.worst_launch(), PRICE_FREE));
            }
        }
        let more = (self.ours.unplaced - self.peer.unplaced).max(0.0);
        demands.push(Demand::at_most("pods that only the Go scheduler places", more, 0.0));
        demands.push(Demand::at_most("broken rules", self.ours.violations.len() as f64, 0.0));
        demands
    }

    /// Whether limits or the size of machines leave little to choose.
    fn is_capped(&self) -> bool {
        ["-capped", "-pools", "-priority"].iter().any(|word| self.name.contains(word))
    }
}

/// Every demand that is not met, in words.
pub(super) fn missed(compared: &[Compared], growth: Option<&Growth>) -> Vec<String> {
    let mut missed = Vec::new();
    for one in compared {
        for demand in one.demands().iter().filter(|demand| !demand.is_met()) {
            missed.push(format!("{} of {}", demand.what, one.name));
        }
    }
    missed.extend(growth.map(Growth::demand).filter(|demand| !demand.is_met()).map(|demand| demand.what.to_owned()));
    missed
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An outcome in numbers: milliseconds, kilobytes of heap, price, worst launch price, pods left out.
    pub(in super::super) fn outcome(numbers: [f64; 5], bound: Option<f64>) -> Outcome {
        let [median, kilobytes, price, worst, unplaced] = numbers;
        let bound = bound.map_or("null".to_owned(), |bound| bound.to_string());
        Outcome::parse(&format!(
            r#"{{"report":{{"scenario":{{"pods":1}},"timing":{{"total":{{"median":{median}}}}},
                "memory":{{"baseHeapBytes":0,"peakHeapBytes":{}}},
                "spread":{{"pricePerHour":{{"min":{price}}},"podErrors":{{"min":{unplaced}}}}},
                "result":{{"worstLaunchPerHour":{worst},"boundPerHour":{bound}}}}}}}"#,
            (kilobytes * 1000.0) as u64
        ))
        .unwrap()
    }

    pub(in super::super) fn compared(name: &str, peer: [f64; 5], ours: [f64; 5], bound: f64) -> Compared {
        Compared { name: name.to_owned(), peer: outcome(peer, None), ours: outcome(ours, Some(bound)) }
    }

    #[test]
    fn each_kind_of_scenario_has_its_demands() {
        let peer = [1000.0, 100.0, 10.0, 12.0, 2.0];
        for (name, ours, bound, expected) in [
            ("diverse-5000", [10.0, 10.0, 10.0, 12.0, 2.0], 9.0, ""),
            (
                "diverse-5000",
                [11.0, 11.0, 10.1, 12.0, 3.0],
                9.0,
                "speed, diverse|heap|price|pods that only the Go scheduler places",
            ),
            ("ec2-mixed-5000", [3.0, 5.0, 8.0, 9.0, 2.0], 7.7, ""),
            (
                "ec2-mixed-5000",
                [4.0, 5.0, 9.0, 9.7, 2.0],
                8.0,
                "speed, EC2|price over bound, EC2|price, uncapped EC2|worst launch price, uncapped EC2",
            ),
            ("ec2-mixed-capped-5000", [3.0, 5.0, 9.9, 11.9, 2.0], 9.8, ""),
            // More pods find a place, so the price may be higher.
            ("ec2-priority-2000", [3.0, 5.0, 11.0, 13.0, 1.0], 11.0, ""),
            // Nothing had to be bought, so there is nothing to divide by.
            ("existing-2000", [10.0, 5.0, 0.0, 0.0, 2.0], 0.0, ""),
        ] {
            let demands = compared(name, peer, ours, bound).demands();
            let missed: Vec<&str> =
                demands.iter().filter(|demand| !demand.is_met()).map(|demand| demand.what).collect();
            assert_eq!(missed.join("|"), expected, "{name} {ours:?}");
        }
    }

    #[test]
    fn a_broken_rule_is_a_missed_demand() {
        let mut one = compared("other", [1.0; 5], [1.0, 0.1, 1.0, 1.0, 1.0], 1.0);
        assert_eq!(missed(std::slice::from_ref(&one), None), Vec::<String>::new());
        one.ours.violations.push("no".to_owned());
        assert_eq!(missed(&[one], None), ["broken rules of other"]);
    }

    #[test]
    fn time_may_grow_a_little_faster_than_pods() {
        let growth = |large: f64| Growth { pods: [5_000, 100_000], milliseconds: [10.0, large] };
        assert_eq!(missed(&[], Some(&growth(260.0))), Vec::<String>::new());
        assert_eq!(missed(&[], Some(&growth(261.0))), ["growth of time over growth of pods"]);
    }
}
