//! Where pods want to be, and with whom.

use model::labels;
use serde_json::{Value, json};

use super::pods::app;
use super::{Artist, FENCE, Phase};

/// Rules that must hold when a pod is placed.
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

impl Artist {
    pub(super) fn node_selector(&mut self) -> Value {
        let mut selector = json!({FENCE: self.name});
        let wanted = [
            (labels::ZONE, "a"),
            (labels::ARCH, "amd64"),
            ("team", "x"),
            (labels::CAPACITY_TYPE, "on-demand"),
            (labels::OS, "linux"),
        ];
        if let Some((key, value)) = self.perhaps(15, &wanted) {
            selector[key] = json!(value);
        }
        selector
    }

    pub(super) fn tolerations(&mut self) -> Value {
        let mut tolerations = Vec::new();
        if self.percent(15) {
            tolerations.push(json!({"key": "hard", "operator": "Equal", "value": "1", "effect": "NoSchedule"}));
        }
        if self.flavours.wishes && self.percent(20) {
            tolerations.push(json!({"key": "soft", "operator": "Exists"}));
        }
        json!(tolerations)
    }

    pub(super) fn affinity(&mut self, group: usize) -> Value {
        let mut affinity = json!({});
        if self.percent(15) {
            let terms: Vec<Value> = (0..self.rng.usize(1..=2)).map(|_| self.node_term()).collect();
            affinity["nodeAffinity"][REQUIRED] = json!({"nodeSelectorTerms": terms});
        }
        if self.flavours.wishes && self.percent(40) {
            let wish = |artist: &mut Self| json!({"weight": artist.rng.u8(1..=100), "preference": artist.node_term()});
            let wishes: Vec<Value> = (0..self.rng.usize(1..=2)).map(|_| wish(self)).collect();
            affinity["nodeAffinity"][PREFERRED] = json!(wishes);
        }
        for (kind, percent) in [("podAffinity", 12), ("podAntiAffinity", 15)] {
            if self.percent(percent) {
                affinity[kind][REQUIRED] = json!([self.pod_term(group)]);
            }
            if self.flavours.wishes && self.percent(25) {
                let wish = json!({"weight": self.rng.u8(1..=100), "podAffinityTerm": self.pod_term(group)});
                affinity[kind][PREFERRED] = json!([wish]);
            }
        }
        affinity
    }

    fn node_term(&mut self) -> Value {
        let expression = match self.rng.u8(..7) {
            0 => json!({"key": labels::ZONE, "operator": "In", "values": ["b", "c"]}),
            1 => json!({"key": labels::ZONE, "operator": "In", "values": ["a"]}),
            2 => json!({"key": labels::ZONE, "operator": "NotIn", "values": ["b"]}),
            3 => json!({"key": labels::ARCH, "operator": "NotIn", "values": ["arm64"]}),
            4 => json!({"key": "team", "operator": "Exists"}),
            5 => json!({"key": "team", "operator": "DoesNotExist"}),
            _ => json!({"key": labels::CAPACITY_TYPE, "operator": "In", "values": ["spot"]}),
        };
        json!({"matchExpressions": [expression]})
    }

    /// A term about the group itself or one of the first two.
    pub(super) fn pod_term(&mut self, group: usize) -> Value {
        let spoken_of = *self.pick(&[group, group, 0, 1]);
        let key = self.domains();
        let mut selector = json!({"matchLabels": {"app": app(spoken_of)}});
        if self.percent(10) {
            selector = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": [app(group), "app1"]}]});
        }
        let mut term = json!({"topologyKey": key, "labelSelector": selector});
        if self.flavours.namespaces && self.percent(60) {
            // Other clusters have pods of the same name in the same zones.
            term["labelSelector"]["matchLabels"][FENCE] = json!(self.name);
            match self.rng.u8(..4) {
                0 => term["namespaces"] = json!([self.other_namespace()]),
                1 => term["namespaces"] = json!([self.name, self.other_namespace()]),
                2 => term["namespaceSelector"] = json!({"matchLabels": {"team": "y", FENCE: self.name}}),
                _ => term["namespaceSelector"] = json!({}),
            }
        }
        if self.flavours.counting
            && let Some(keys) = self.perhaps(30, &["matchLabelKeys", "mismatchLabelKeys"])
        {
            term[keys] = json!(["version"]);
        }
        term
    }

    fn domains(&mut self) -> String {
        if self.flavours.counting && self.percent(25) {
            return self.rack_label();
        }
        (*self.pick(&[labels::ZONE, labels::HOSTNAME])).to_owned()
    }

    pub(super) fn spread(&mut self, group: usize) -> Value {
        let mut constraints = Vec::new();
        if self.percent(if self.flavours.counting { 45 } else { 20 }) {
            constraints.push(self.constraint(group, "DoNotSchedule"));
        }
        if self.flavours.wishes && self.percent(30) {
            constraints.push(self.constraint(group, "ScheduleAnyway"));
        }
        json!(constraints)
    }

    fn constraint(&mut self, group: usize, otherwise: &str) -> Value {
        let key = self.domains();
        let spoken_of = if self.percent(85) { group } else { 0 };
        let mut constraint = json!({
            "topologyKey": key,
            "maxSkew": *self.pick(&[1, 1, 2]),
            "whenUnsatisfiable": otherwise,
            "labelSelector": {"matchLabels": {"app": app(spoken_of)}},
        });
        if !self.flavours.counting {
            return constraint;
        }
        if otherwise == "DoNotSchedule"
            && let Some(count) = self.perhaps(30, &[2, 3])
        {
            constraint["minDomains"] = json!(count);
        }
        if self.percent(30) {
            constraint["matchLabelKeys"] = json!(["version"]);
        }
        if let Some(policy) = self.perhaps(50, &["Honor", "Ignore"]) {
            constraint["nodeTaintsPolicy"] = json!(if self.phase == Phase::Steered { "Ignore" } else { policy });
        }
        // Nodes of other clusters have zones and names too, and would count.
        if key == self.rack_label()
            && let Some(policy) = self.perhaps(70, &["Honor", "Ignore"])
        {
            constraint["nodeAffinityPolicy"] = json!(policy);
        }
        constraint
    }
}
