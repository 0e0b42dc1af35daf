//! EC2NodeClasses of a world: the network they ask for is the one there is.

use api::ConditionStatus;
use api::ec2_node_class::{EC2NodeClass, conditions};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sim::{ApiServer, Change};

use super::{AwsCloud, REGION};
use crate::world::accounts;

impl AwsCloud {
    /// Says of every EC2NodeClass which subnets it has and that it is ready. Never returns while the server lives.
    ///
    /// Whether selectors find anything at AWS is not a question here: the embedded network has one subnet per zone,
    /// and every class gets all of them.
    pub async fn keep_classes(self, server: ApiServer) {
        let client = server.client(accounts::CLOUD_CONTROLLER);
        let classes: Api<EC2NodeClass> = Api::all(client);
        let mut news = server.subscribe();
        while let Some(event) = news.next().await {
            if event.key.resource != "ec2nodeclasses" || event.change == Change::Deleted {
                continue;
            }
            let Ok(class) = serde_json::from_slice::<EC2NodeClass>(&event.object) else { continue };
            if is_settled(&class) {
                continue;
            }
            let patch = self.status(&class);
            // A class that is gone by now needs no status; one that changed is told again.
            let _ = classes.patch_status(&event.key.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        }
    }

    fn status(&self, class: &EC2NodeClass) -> serde_json::Value {
        let now = self.now();
        let subnets: Vec<serde_json::Value> = self
            .aws()
            .subnets()
            .map(|subnet| json!({"id": subnet.id, "zone": subnet.zone, "zoneID": zone_id(&subnet.zone)}))
            .collect();
        let generation = class.metadata.generation.unwrap_or(1);
        let ready = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": kind, "message": "",
                "lastTransitionTime": now.to_string(), "observedGeneration": generation,
            })
        };
        let kinds = [
            conditions::AMIS_READY,
            conditions::SUBNETS_READY,
            conditions::SECURITY_GROUPS_READY,
            conditions::INSTANCE_PROFILE_READY,
            conditions::VALIDATION_SUCCEEDED,
            conditions::READY,
        ];
        json!({"status": {"subnets": subnets, "conditions": kinds.map(ready)}})
    }
}

fn zone_id(zone: &str) -> Option<String> {
    let region = catalogue::Catalogue::bundled().region(REGION)?;
    region.zones.iter().find(|known| known.name == zone).map(|known| known.id.clone())
}

fn is_settled(class: &EC2NodeClass) -> bool {
    let generation = class.metadata.generation;
    let conditions = class.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        condition.type_ == conditions::READY
            && condition.status == ConditionStatus::True
            && condition.observed_generation == generation
    })
}
