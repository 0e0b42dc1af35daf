//! Instances and what happens to them.

use std::collections::BTreeMap;
use std::fmt;

use catalogue::MicroDollars;
use jiff::Timestamp;

use crate::{CapacityType, PoolKey};

/// The id of an instance, for example `i-0123456789abcdef0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(String);

impl InstanceId {
    /// Wraps an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The bare text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How far an instance is; later states never give way to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceState {
    /// Being started.
    Pending,
    /// Up.
    Running,
    /// Being ended.
    ShuttingDown,
    /// Gone, but remembered.
    Terminated,
}

impl InstanceState {
    /// The spelling of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Why an instance ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateReason {
    /// Somebody called for it.
    UserInitiated,
    /// Spot capacity was taken back.
    SpotTermination,
    /// It could not be started.
    InternalError,
}

impl StateReason {
    /// The code of the API.
    pub fn code(self) -> &'static str {
        match self {
            Self::UserInitiated => "Client.UserInitiatedShutdown",
            Self::SpotTermination => "Server.SpotInstanceTermination",
            Self::InternalError => "Server.InternalError",
        }
    }
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Id.
    pub id: InstanceId,
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// The request that it was made for, if it is a spot instance.
    pub spot_request_id: Option<String>,
    /// The fleet that it belongs to.
    pub fleet_id: String,
    /// The token of the call that launched it.
    pub client_token: Option<String>,
    /// Subnet.
    pub subnet_id: String,
    /// Image.
    pub image_id: String,
    /// Address in the subnet.
    pub private_address: String,
    /// Name in the private DNS, for example `ip-10-0-0-4.ec2.internal`.
    pub private_dns_name: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// State.
    pub state: InstanceState,
    /// Why it ended, once it does.
    pub state_reason: Option<StateReason>,
    /// When it was launched.
    pub launched_at: Timestamp,
    /// When calls other than the launch get to know it.
    pub visible_at: Timestamp,
    /// When it began to run; from then on it costs money.
    pub running_at: Option<Timestamp>,
    /// When its end began; from then on it costs nothing.
    pub ending_at: Option<Timestamp>,
    /// When its end will be forced, once an interruption was announced.
    pub interruption_at: Option<Timestamp>,
    /// Price per hour.
    pub price: MicroDollars,
    /// Whether what should run on it never speaks up. No call tells this; it is for whoever plays the machine.
    pub silent: bool,
}

impl Instance {
    /// The identity under which a Kubernetes node knows it.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }

    /// The pool it came from.
    pub fn pool(&self) -> PoolKey {
        PoolKey::new(self.instance_type.clone(), self.zone.clone(), self.capacity_type)
    }

    /// Whether it holds capacity that can be used: pending or running.
    pub fn is_alive(&self) -> bool {
        self.state <= InstanceState::Running
    }
}

/// Something that happened without being the answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsEvent {
    /// When.
    pub at: Timestamp,
    /// To which instance.
    pub instance: InstanceId,
    /// What.
    pub kind: EventKind,
}

/// What happened to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It is in a new state.
    StateChanged(InstanceState),
    /// Its spot capacity will be taken back.
    InterruptionWarning {
        /// When.
        ends_at: Timestamp,
    },
    /// Its spot capacity is at an elevated risk.
    RebalanceRecommendation,
    /// It is not remembered any more.
    Forgotten,
}

impl fmt::Display for AwsEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, instance, kind } = self;
        write!(formatter, "{at} {instance} ")?;
        match kind {
            EventKind::StateChanged(state) => write!(formatter, "is {state}"),
            EventKind::InterruptionWarning { ends_at } => write!(formatter, "will be interrupted at {ends_at}"),
            EventKind::RebalanceRecommendation => formatter.write_str("should be rebalanced"),
            EventKind::Forgotten => formatter.write_str("is forgotten"),
        }
    }
}
