//! The calls.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::aws::Bucket;
use crate::filter::{Filter, Subject};
use crate::log::{Action, Call, CallRecord, Outcome};
use crate::time::milliseconds_between;
use crate::{
    Aws, AwsError, CallFaultKind, DescribeRequest, FleetAnswer, FleetRequest, Instance, InstanceId, StateChange,
    StateReason, Subnet,
};

/// The work of a call: what it answers, and what the log keeps of it.
pub(crate) type Work<A> = Result<(A, Outcome), AwsError>;

impl Aws {
    /// Launches instances now, or says what stood in the way.
    ///
    /// A pool without capacity is an error inside the answer; an error of the call means that nothing was launched,
    /// except after [`AwsError::RequestTimeout`].
    pub fn create_fleet(&mut self, now: Timestamp, request: &FleetRequest) -> Result<FleetAnswer, AwsError> {
        self.call(now, Call::CreateFleet(request.clone()), |aws| aws.fleet(request))
    }

    /// Describes instances, those included that ended within the last hour, in the order of launch.
    pub fn describe_instances(&mut self, now: Timestamp, request: &DescribeRequest) -> Result<Vec<Instance>, AwsError> {
        self.call(now, Call::DescribeInstances(request.clone()), |aws| {
            let found = aws.described(request)?;
            let count = found.len();
            Ok((found, Outcome::Described(count)))
        })
    }

    /// Ends instances. One unknown id fails the call and ends none; ending what has ended is a success.
    pub fn terminate_instances(&mut self, now: Timestamp, ids: &[InstanceId]) -> Result<Vec<StateChange>, AwsError> {
        self.call(now, Call::TerminateInstances(ids.to_vec()), |aws| {
            aws.all_known(ids)?;
            let changes: Vec<StateChange> = ids.iter().filter_map(|id| aws.terminate(id)).collect();
            Ok((changes.clone(), Outcome::Ending(changes)))
        })
    }

    /// Tags instances. One unknown id fails the call and tags none.
    pub fn create_tags(
        &mut self,
        now: Timestamp,
        ids: &[InstanceId],
        tags: &BTreeMap<String, String>,
    ) -> Result<(), AwsError> {
        self.call(now, Call::CreateTags { ids: ids.to_vec(), tags: tags.clone() }, |aws| {
            aws.all_known(ids)?;
            for id in ids {
                let instance = aws.instances.get_mut(id);
                instance.into_iter().for_each(|instance| instance.tags.extend(tags.clone()));
            }
            Ok(((), Outcome::Tagged))
        })
    }

    /// Describes the subnets, in the order of the zones.
    pub fn describe_subnets(&mut self, now: Timestamp) -> Result<Vec<Subnet>, AwsError> {
        self.call(now, Call::DescribeSubnets, |aws| {
            let subnets: Vec<Subnet> = aws.subnets().collect();
            let count = subnets.len();
            Ok((subnets, Outcome::Described(count)))
        })
    }

    /// What all calls have in common: time, faults, limits, the log.
    fn call<A>(&mut self, now: Timestamp, call: Call, work: impl FnOnce(&mut Self) -> Work<A>) -> Result<A, AwsError> {
        self.catch_up(now);
        let action = call.action();
        let fault = self.faults.of_call(self.now, action);
        let refusal = match fault {
            Some(CallFaultKind::Throttled) => Some(AwsError::RequestLimitExceeded),
            Some(CallFaultKind::Unauthorized) => Some(AwsError::UnauthorizedOperation { action }),
            Some(CallFaultKind::Internal) => Some(AwsError::InternalError),
            Some(CallFaultKind::AnswerLost) | None => self.over_limit(action).then_some(AwsError::RequestLimitExceeded),
        };
        let (answer, outcome) = match refusal.map_or_else(|| work(self), Err) {
            Ok((answer, outcome)) => (Ok(answer), Some(outcome)),
            Err(error) => (Err(error), None),
        };
        let answer = if fault == Some(CallFaultKind::AnswerLost) { Err(AwsError::RequestTimeout) } else { answer };
        if self.settings.keep_log {
            let error = answer.as_ref().err().cloned();
            self.log.push(CallRecord { at: self.now, call, outcome, error });
        }
        answer
    }

    /// Takes a token for a call; true when there is none.
    fn over_limit(&mut self, action: Action) -> bool {
        let Some(limit) = self.settings.rate_limits.get(&action) else { return false };
        let now = self.now;
        let full = u64::from(limit.burst) * 1000;
        let bucket = self.buckets.entry(action).or_insert(Bucket { thousandths: full, filled_at: now });
        let gained = milliseconds_between(bucket.filled_at, now).saturating_mul(u64::from(limit.per_second));
        *bucket = Bucket { thousandths: full.min(bucket.thousandths.saturating_add(gained)), filled_at: now };
        match bucket.thousandths.checked_sub(1000) {
            None => true,
            Some(left) => {
                bucket.thousandths = left;
                false
            }
        }
    }

    fn is_visible(&self, instance: &Instance) -> bool {
        instance.visible_at <= self.now
    }

    fn all_known(&self, ids: &[InstanceId]) -> Result<(), AwsError> {
        let known = |id: &InstanceId| self.instances.get(id).is_some_and(|instance| self.is_visible(instance));
        let unknown: Vec<InstanceId> = ids.iter().filter(|id| !known(id)).cloned().collect();
        if unknown.is_empty() { Ok(()) } else { Err(AwsError::InstancesNotFound { ids: unknown }) }
    }

    fn described(&self, request: &DescribeRequest) -> Result<Vec<Instance>, AwsError> {
        let with_subject = |filter| Filter::subject(filter).map(|subject| (filter, subject));
        let filters: Vec<(&Filter, Subject<'_>)> =
            request.filters.iter().map(with_subject).collect::<Result<_, AwsError>>()?;
        self.all_known(&request.ids)?;
        let asked: BTreeSet<&InstanceId> = request.ids.iter().collect();
        let wanted = |instance: &&Instance| {
            let passes = filters.iter().all(|(filter, subject)| filter.admits(*subject, instance));
            self.is_visible(instance) && passes && (asked.is_empty() || asked.contains(&instance.id))
        };
        Ok(self.instances().filter(wanted).cloned().collect())
    }

    fn terminate(&mut self, id: &InstanceId) -> Option<StateChange> {
        let previous = self.instances.get(id)?.state;
        self.end(self.now, id, StateReason::UserInitiated);
        let current = self.instances.get(id)?.state;
        Some(StateChange { id: id.clone(), previous, current })
    }
}
