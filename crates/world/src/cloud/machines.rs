//! What instances do to the cluster: their kubelets join, and their nodes go when they end.

use std::collections::BTreeMap;

use api::ec2_node_class::EC2NodeClass;
use aws_sim::{AwsEvent, EventKind, Instance, InstanceState};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::DeleteParams;
use model::{Requirements, labels};
use sim::ApiServer;
use sim_loops::Order;
use tokio::sync::mpsc;

use super::fleet::tags;
use super::provider::{node_labels, planned_as, quantities, type_of};
use super::{AwsCloud, Boots};
use crate::world::accounts;

impl AwsCloud {
    /// Moves the embedded AWS along in time and tells the cluster what became of its machines. Never returns.
    pub async fn run_machines(self, server: ApiServer, orders: mpsc::UnboundedSender<Order>) {
        loop {
            let next = self.aws().next_change();
            tokio::select! {
                biased;
                () = self.called.notified() => {}
                () = sleep_until(self.now(), next) => {}
            }
            let events = self.aws().advance(self.now());
            for event in events {
                self.happened(&event, &server, &orders);
            }
        }
    }

    fn happened(&self, event: &AwsEvent, server: &ApiServer, orders: &mpsc::UnboundedSender<Order>) {
        let Some(instance) = self.aws().instance(&event.instance).cloned() else { return };
        match event.kind {
            EventKind::StateChanged(InstanceState::Running) => {
                tokio::spawn(self.clone().boot(instance, server.clone(), orders.clone()));
            }
            EventKind::StateChanged(InstanceState::Terminated) => {
                // The loops end only with the world.
                let _ = orders.send(Order::PowerOff(instance.private_dns_name.clone()));
                tokio::spawn(forget_node(server.clone(), instance.private_dns_name));
            }
            _ => {}
        }
    }

    async fn boot(self, instance: Instance, server: ApiServer, orders: mpsc::UnboundedSender<Order>) {
        let boots = self.boots();
        if boots == Boots::Never {
            return;
        }
        tokio::time::sleep(self.chance.duration(&self.pace.boot)).await;
        if boots == Boots::Late {
            tokio::time::sleep(self.chance.duration(&self.pace.late_boot)).await;
        }
        let is_up = self.aws().instance(&instance.id).is_some_and(|instance| instance.state == InstanceState::Running);
        if !is_up {
            return;
        }
        let classes: Api<EC2NodeClass> = Api::all(server.client(accounts::CLOUD_CONTROLLER));
        let name = instance.tags.get(tags::NODE_CLASS).map_or("", String::as_str);
        let class = classes.get_opt(name).await.ok().flatten();
        let _ = orders.send(Order::Boot(Box::new(node(&instance, class.as_ref()))));
    }
}

/// The cloud's controller removes nodes whose machine is gone.
async fn forget_node(server: ApiServer, name: String) {
    let nodes: Api<Node> = Api::all(server.client(accounts::CLOUD_CONTROLLER));
    // A node that is not there needs no removal.
    let _ = nodes.delete(&name, &DeleteParams::default()).await;
}

async fn sleep_until(now: Timestamp, next: Option<Timestamp>) {
    match next {
        Some(next) => tokio::time::sleep(next.duration_since(now).try_into().unwrap_or_default()).await,
        None => std::future::pending().await,
    }
}

/// The Node that a kubelet registers.
fn node(instance: &Instance, class: Option<&EC2NodeClass>) -> Node {
    let kind = class.and_then(|class| type_of(class, &instance.instance_type));
    let kind = kind.as_ref();
    let mut own = node_labels(kind, &instance.zone, planned_as(instance.capacity_type), &Requirements::none());
    // A kubelet and the cloud's controller know these; the rest is added when the claim's controller registers it.
    own.retain(|key, _| {
        [labels::INSTANCE_TYPE, labels::ZONE, labels::REGION, labels::ARCH, labels::OS].contains(&key.as_str())
    });
    own.insert(labels::HOSTNAME.to_owned(), instance.private_dns_name.clone());
    let address = |kind: &str, address: &str| NodeAddress { type_: kind.to_owned(), address: address.to_owned() };
    Node {
        metadata: ObjectMeta {
            name: Some(instance.private_dns_name.clone()),
            labels: Some(own),
            annotations: Some(BTreeMap::new()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(instance.provider_id()),
            taints: Some(vec![Taint {
                key: api::labels::UNREGISTERED_TAINT.to_owned(),
                effect: "NoExecute".to_owned(),
                ..Taint::default()
            }]),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            capacity: kind.map(|kind| quantities(&kind.capacity)),
            allocatable: kind.map(|kind| quantities(&kind.allocatable)),
            addresses: Some(vec![
                address("InternalIP", &instance.private_address),
                address("Hostname", &instance.private_dns_name),
            ]),
            ..NodeStatus::default()
        }),
    }
}
