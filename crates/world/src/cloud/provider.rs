//! The provider trait, served by the embedded AWS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use api::ec2_node_class::{self, EC2NodeClass};
use api::{NodeClaim, NodePool, ResourceList, lower};
use aws_sim::{AwsError, DescribeRequest, Filter, FleetAnswer, FleetErrorCode, InstanceId, InstanceState};
use catalogue::Catalogue;
use cloud::{
    CloudError, CloudProvider, Instance, InstanceTypes, LaunchError, LaunchId, LaunchRequest, Launched, NodeClassKind,
    Origin, Termination,
};
use ec2::{ClassView, RegionTypes, Settings};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{Api, Client};
use model::{
    CapacityType, ClaimName, InstanceType, ProviderId, Requirements, Resources, Vocabulary, format_quantity, labels,
};

use super::fleet::{self, tags};
use super::{AwsCloud, REGION};

const NODE_CLASS_KIND: NodeClassKind =
    NodeClassKind { group: ec2_node_class::GROUP, version: "v1", kind: "EC2NodeClass", plural: "ec2nodeclasses" };

/// How long an offering that ran out is not asked for again.
const SOLD_OUT: Duration = Duration::from_secs(180);

/// Launches instances of the embedded AWS.
pub struct AwsProvider {
    cloud: AwsCloud,
    client: Client,
    vocabulary: Arc<Vocabulary>,
    shelf: Mutex<Shelf>,
}

/// What this process remembers: offerings that ran out, and types already worked out.
#[derive(Default)]
struct Shelf {
    sold_out: BTreeMap<(String, String, CapacityType), Timestamp>,
    /// By class.
    types: BTreeMap<String, Worked>,
}

/// Types that were worked out, and what they are valid for.
struct Worked {
    version: String,
    sold_out: Vec<(String, String, CapacityType)>,
    types: InstanceTypes,
}

/// Types of the region, worked out once per process of ours.
fn region() -> Option<&'static RegionTypes<'static>> {
    static REGION_TYPES: OnceLock<Option<RegionTypes<'static>>> = OnceLock::new();
    REGION_TYPES.get_or_init(|| RegionTypes::new(Catalogue::bundled(), REGION)).as_ref()
}

/// One type as a class launches it.
pub(super) fn type_of(class: &EC2NodeClass, name: &str) -> Option<Arc<InstanceType>> {
    let region = region()?;
    let view = ClassView::new(class, region.region());
    region.instance_type(name, &view, &Settings::default(), &|_, _, _| false)
}

impl AwsProvider {
    pub(super) fn new(cloud: AwsCloud, client: Client) -> Self {
        Self { cloud, client, vocabulary: Arc::new(ec2::vocabulary()), shelf: Mutex::default() }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn class(&self, name: &str) -> Result<Option<EC2NodeClass>, CloudError> {
        let classes: Api<EC2NodeClass> = Api::all(self.client.clone());
        let failed = |error: kube::Error| CloudError { attempt: "get EC2NodeClass", message: error.to_string() };
        classes.get_opt(name).await.map_err(failed)
    }

    fn types(&self, class: &EC2NodeClass) -> InstanceTypes {
        let now = self.cloud.now();
        let mut shelf = self.shelf();
        shelf.sold_out.retain(|_, until| *until > now);
        let version = class.metadata.resource_version.clone().unwrap_or_default();
        let sold_out: Vec<(String, String, CapacityType)> = shelf.sold_out.keys().cloned().collect();
        let name = class.metadata.name.clone().unwrap_or_default();
        let Some(region) = region() else { return InstanceTypes::default() };
        let view = ClassView::new(class, region.region());
        let is_sold_out = |kind: &str, zone: &str, capacity_type: CapacityType| {
            shelf.sold_out.contains_key(&(kind.to_owned(), zone.to_owned(), capacity_type))
        };
        let settings = Settings::default();
        let types: InstanceTypes = match shelf.types.get(&name).filter(|worked| worked.version == version) {
            Some(worked) if worked.sold_out == sold_out => return Arc::clone(&worked.types),
            Some(worked) => region.refresh(&worked.types, &view, &settings, &is_sold_out).into(),
            None => region.instance_types(&view, &settings, &is_sold_out).into(),
        };
        shelf.types.insert(name, Worked { version, sold_out, types: Arc::clone(&types) });
        types
    }

    async fn launch_claim(&self, request: &LaunchRequest) -> Result<Launched, LaunchError> {
        let name = &request.claim.spec.node_class_ref.name;
        let failed = |error: CloudError| LaunchError::Failed { message: error.to_string() };
        let class = self.class(name).await.map_err(failed)?;
        let missing = || LaunchError::InsufficientCapacity { message: format!("EC2NodeClass `{name}` not found") };
        let types = self.types(&class.ok_or_else(missing)?);
        let requirements = lower::requirements(&request.claim.spec.requirements);
        let fleet = fleet::request(request, &types, &requirements);
        let nothing = || LaunchError::InsufficientCapacity {
            message: "all requested instance types were unavailable during launch".to_owned(),
        };
        let fleet = fleet.ok_or_else(nothing)?;
        let bought_as = fleet.capacity_type;
        let answer = self.cloud.call(move |aws, now| aws.create_fleet(now, &fleet)).await;
        let answer = answer.unwrap_or(Err(AwsError::InternalError)).map_err(|error| launch_error(&error))?;
        self.remember_sold_out(&answer, bought_as);
        let Some(instance) = answer.instances.first() else {
            let words: Vec<String> = answer.errors.iter().map(ToString::to_string).take(3).collect();
            return Err(LaunchError::InsufficientCapacity { message: words.join(", ") });
        };
        let bought = Bought {
            provider_id: format!("aws:///{}/{}", instance.zone, instance.id),
            instance_type: instance.instance_type.clone(),
            zone: instance.zone.clone(),
            capacity_type: instance.capacity_type,
            image_id: instance.image_id.clone(),
        };
        Ok(launched(&bought, &types, &requirements))
    }

    fn remember_sold_out(&self, answer: &FleetAnswer, bought_as: aws_sim::CapacityType) {
        let until = self.cloud.now().saturating_add(SignedDuration::try_from(SOLD_OUT).unwrap_or_default());
        let until = until.unwrap_or(Timestamp::MAX);
        let mut shelf = self.shelf();
        for error in answer.errors.iter().filter(|error| runs_out(error.code)) {
            let key = (error.pool.instance_type.clone(), error.pool.zone.clone(), planned_as(bought_as));
            shelf.sold_out.insert(key, until);
        }
    }

    /// Instances of this cluster with a tag, those that are going left out.
    async fn tagged(&self, key: &'static str, value: Option<String>) -> Result<Vec<aws_sim::Instance>, CloudError> {
        let wanted = match value {
            Some(value) => Filter::tag(key, value),
            None => Filter::new("tag-key", [key]),
        };
        let alive = Filter::new("instance-state-name", ["pending", "running"]);
        let request = DescribeRequest { ids: Vec::new(), filters: vec![wanted, alive] };
        let answer = self.cloud.call(move |aws, now| aws.describe_instances(now, &request)).await;
        answer.unwrap_or(Err(AwsError::InternalError)).map_err(cloud_error("describe instances"))
    }

    async fn find(&self, request: &LaunchRequest) -> Result<Option<Launched>, CloudError> {
        let found = self.tagged(tags::LAUNCH, Some(request.id.to_string())).await?;
        let Some(instance) = found.into_iter().next() else { return Ok(None) };
        let class = self.class(&request.claim.spec.node_class_ref.name).await?;
        let types = class.map(|class| self.types(&class)).unwrap_or_default();
        let bought = Bought {
            provider_id: instance.provider_id(),
            instance_type: instance.instance_type,
            zone: instance.zone,
            capacity_type: instance.capacity_type,
            image_id: instance.image_id,
        };
        Ok(Some(launched(&bought, &types, &lower::requirements(&request.claim.spec.requirements))))
    }

    /// The instance of a claim. A claim whose status was never written can still have one: its launch tells which.
    async fn instance_of(&self, claim: &NodeClaim) -> Result<Option<InstanceId>, CloudError> {
        let recorded = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
        if let Some(id) = recorded.filter(|id| !id.is_empty()) {
            return Ok(instance_id(&ProviderId::new(id)));
        }
        let Some(launch) = LaunchId::of(claim) else { return Ok(None) };
        let found = self.tagged(tags::LAUNCH, Some(launch.to_string())).await?;
        Ok(found.into_iter().next().map(|instance| instance.id))
    }

    async fn state(&self, id: InstanceId) -> Result<Option<InstanceState>, CloudError> {
        let request = DescribeRequest { ids: vec![id], filters: Vec::new() };
        let answer = self.cloud.call(move |aws, now| aws.describe_instances(now, &request)).await;
        match answer.unwrap_or(Err(AwsError::InternalError)) {
            Ok(found) => Ok(found.first().map(|instance| instance.state)),
            Err(AwsError::InstancesNotFound { .. }) => Ok(None),
            Err(error) => Err(cloud_error("describe instances")(error)),
        }
    }

    async fn end(&self, claim: &NodeClaim) -> Result<Termination, CloudError> {
        let Some(id) = self.instance_of(claim).await? else { return Ok(Termination::Gone) };
        match self.state(id.clone()).await? {
            None | Some(InstanceState::Terminated) => return Ok(Termination::Gone),
            Some(InstanceState::ShuttingDown) => return Ok(Termination::Requested),
            Some(InstanceState::Pending | InstanceState::Running) => {}
        }
        let answer = self.cloud.call(move |aws, now| aws.terminate_instances(now, &[id])).await;
        match answer.unwrap_or(Err(AwsError::InternalError)) {
            Ok(_) => Ok(Termination::Requested),
            Err(AwsError::InstancesNotFound { .. }) => Ok(Termination::Gone),
            Err(error) => Err(cloud_error("terminate instances")(error)),
        }
    }
}

impl CloudProvider for AwsProvider {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        Arc::clone(&self.vocabulary)
    }

    fn node_class_kind(&self) -> NodeClassKind {
        NODE_CLASS_KIND
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<InstanceTypes, CloudError>> {
        async move {
            let class = self.class(&pool.spec.template.spec.node_class_ref.name).await?;
            Ok(class.map(|class| self.types(&class)).unwrap_or_default())
        }
        .boxed()
    }

    fn launch<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        self.launch_claim(request).boxed()
    }

    fn find_launched<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Option<Launched>, CloudError>> {
        self.find(request).boxed()
    }

    fn terminate<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Termination, CloudError>> {
        self.end(claim).boxed()
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Instance>, CloudError>> {
        async move {
            let Some(instance) = instance_id(id) else { return Ok(None) };
            let state = self.state(instance).await?;
            let is_there = state.is_some_and(|state| state <= InstanceState::Running);
            Ok(is_there.then(|| Instance { provider_id: id.clone(), origin: None }))
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, CloudError>> {
        async move {
            let found = self.tagged(tags::CLAIM, None).await?;
            Ok(found.iter().map(listed).collect())
        }
        .boxed()
    }
}

fn listed(instance: &aws_sim::Instance) -> Instance {
    let tag = |key: &str| instance.tags.get(key);
    let origin = tag(tags::LAUNCH).zip(tag(tags::CLAIM)).map(|(launch, claim)| Origin {
        launch: LaunchId::new(launch),
        claim: ClaimName::new(claim.as_str()),
        started: instance.launched_at,
    });
    Instance { provider_id: ProviderId::new(instance.provider_id()), origin }
}

/// Whether the offering itself is used up, so that asking again soon is in vain.
fn runs_out(code: FleetErrorCode) -> bool {
    use FleetErrorCode::{
        InsufficientFreeAddressesInSubnet, InsufficientInstanceCapacity, MaxSpotInstanceCountExceeded,
        UnfulfillableCapacity, Unsupported, VcpuLimitExceeded,
    };
    matches!(
        code,
        InsufficientInstanceCapacity
            | UnfulfillableCapacity
            | MaxSpotInstanceCountExceeded
            | VcpuLimitExceeded
            | InsufficientFreeAddressesInSubnet
            | Unsupported
    )
}

/// What is known of an instance for its claim.
struct Bought {
    provider_id: String,
    instance_type: String,
    zone: String,
    capacity_type: aws_sim::CapacityType,
    image_id: String,
}

fn launched(bought: &Bought, types: &InstanceTypes, required: &Requirements) -> Launched {
    let kind = types.iter().find(|kind| kind.name.as_str() == bought.instance_type);
    Launched {
        provider_id: ProviderId::new(bought.provider_id.as_str()),
        image_id: bought.image_id.clone(),
        labels: node_labels(kind, &bought.zone, planned_as(bought.capacity_type), required),
        annotations: BTreeMap::new(),
        capacity: kind.map(|kind| quantities(&kind.capacity)).unwrap_or_default(),
        allocatable: kind.map(|kind| quantities(&kind.allocatable)).unwrap_or_default(),
    }
}

/// The labels of a node: what its type says of itself, where it is and how it was bought.
pub(super) fn node_labels(
    kind: Option<&Arc<InstanceType>>,
    zone: &str,
    capacity_type: CapacityType,
    required: &Requirements,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (key, offered) in kind.iter().flat_map(|kind| kind.requirements.iter()) {
        let admitted = required.get(key).map_or_else(|| offered.clone(), |wanted| offered.intersection(wanted));
        found.extend(admitted.single_value().map(|value| (key.to_string(), value.to_string())));
    }
    found.insert(labels::ZONE.to_owned(), zone.to_owned());
    found.insert(labels::CAPACITY_TYPE.to_owned(), capacity_type.as_str().to_owned());
    found
}

pub(super) fn planned_as(capacity_type: aws_sim::CapacityType) -> CapacityType {
    match capacity_type {
        aws_sim::CapacityType::OnDemand => CapacityType::OnDemand,
        aws_sim::CapacityType::Spot => CapacityType::Spot,
    }
}

pub(super) fn quantities(resources: &Resources) -> ResourceList {
    resources.iter().map(|(name, amount)| (name.to_string(), Quantity(format_quantity(name, amount)))).collect()
}

fn instance_id(id: &ProviderId) -> Option<InstanceId> {
    id.as_str().strip_prefix("aws:///").and_then(|rest| rest.split_once('/')).map(|(_, id)| InstanceId::new(id))
}

fn launch_error(error: &AwsError) -> LaunchError {
    match error {
        AwsError::RequestLimitExceeded => LaunchError::Throttled { message: error.to_string(), after: None },
        _ => LaunchError::Failed { message: error.to_string() },
    }
}

fn cloud_error(attempt: &'static str) -> impl Fn(AwsError) -> CloudError {
    move |error| CloudError { attempt, message: error.to_string() }
}
