//! What happens to instances as time goes by.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::time::later;
use crate::{
    Aws, AwsError, AwsEvent, BillLine, CapacityType, EventKind, Instance, InstanceId, InstanceState, PoolKey,
    StateReason,
};

/// From the warning of an interruption to the end.
const INTERRUPTION_NOTICE: Duration = Duration::from_secs(120);

/// What is due for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Run,
    FailToRun,
    Interrupt,
    Terminate,
    Forget,
}

/// What is due when; things due at the same moment happen in the order in which they were planned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agenda {
    steps: BTreeMap<(Timestamp, u64), (InstanceId, Step)>,
    planned: u64,
}

impl Agenda {
    pub(crate) fn plan(&mut self, at: Timestamp, instance: InstanceId, step: Step) {
        self.steps.insert((at, self.planned), (instance, step));
        self.planned += 1;
    }

    fn drop_all_of(&mut self, instance: &InstanceId) {
        self.steps.retain(|_, (other, _)| other != instance);
    }

    fn next(&self) -> Option<Timestamp> {
        self.steps.keys().next().map(|(at, _)| *at)
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, InstanceId, Step)> {
        let due = self.steps.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (instance, step)) = due.remove_entry();
        Some((at, instance, step))
    }
}

impl Aws {
    /// Everything that happened up to now, in order.
    pub fn advance(&mut self, now: Timestamp) -> Vec<AwsEvent> {
        self.catch_up(now);
        self.outbox.drain(..).collect()
    }

    /// When [`Aws::advance`] will next have something to tell; in the past when it has now.
    pub fn next_change(&self) -> Option<Timestamp> {
        self.outbox.front().map(|event| event.at).or_else(|| self.agenda.next())
    }

    /// Warns that a spot instance will be taken back two minutes from now, and takes it back then.
    ///
    /// Its capacity does not return to the pool. Repeating it changes nothing; instances that are ending or were
    /// bought on demand cannot be interrupted.
    pub fn interrupt(&mut self, now: Timestamp, id: &InstanceId) -> Result<Timestamp, AwsError> {
        self.catch_up(now);
        let now = self.now;
        let instance = self.interruptible(id)?;
        if let Some(ends_at) = instance.interruption_at {
            return Ok(ends_at);
        }
        let ends_at = later(now, INTERRUPTION_NOTICE);
        instance.interruption_at = Some(ends_at);
        self.agenda.plan(ends_at, id.clone(), Step::Interrupt);
        self.tell(now, id, EventKind::InterruptionWarning { ends_at });
        Ok(ends_at)
    }

    /// Tells that a spot instance is at an elevated risk of interruption.
    pub fn recommend_rebalance(&mut self, now: Timestamp, id: &InstanceId) -> Result<(), AwsError> {
        self.catch_up(now);
        self.interruptible(id)?;
        self.tell(self.now, id, EventKind::RebalanceRecommendation);
        Ok(())
    }

    /// Takes what a pool still has, and of its spot instances up to `interrupted_max`, youngest first.
    pub fn withdraw_capacity(&mut self, now: Timestamp, pool: &PoolKey, interrupted_max: usize) -> Vec<InstanceId> {
        self.catch_up(now);
        self.pools.set(pool.clone(), 0);
        let affected = |instance: &&Instance| instance.is_alive() && instance.pool() == *pool;
        let youngest_first = self.launched.iter().rev().filter_map(|id| self.instances.get(id)).filter(affected);
        let ids: Vec<InstanceId> = youngest_first.take(interrupted_max).map(|instance| instance.id.clone()).collect();
        ids.into_iter().filter(|id| self.interrupt(now, id).is_ok()).collect()
    }

    fn interruptible(&mut self, id: &InstanceId) -> Result<&mut Instance, AwsError> {
        let found = self.instances.get_mut(id);
        let spot = |instance: &&mut Instance| instance.is_alive() && instance.capacity_type == CapacityType::Spot;
        found.filter(spot).ok_or_else(|| AwsError::InstancesNotFound { ids: vec![id.clone()] })
    }

    /// Lets everything happen that is due by now.
    pub(crate) fn catch_up(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        while let Some((at, id, step)) = self.agenda.pop_due(self.now) {
            match step {
                Step::Run => self.run(at, &id),
                Step::FailToRun => self.end(at, &id, StateReason::InternalError),
                Step::Interrupt => self.end(at, &id, StateReason::SpotTermination),
                Step::Terminate => self.terminated(at, &id),
                Step::Forget => self.forget(at, &id),
            }
        }
    }

    fn run(&mut self, at: Timestamp, id: &InstanceId) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        instance.state = InstanceState::Running;
        instance.running_at = Some(at);
        self.tell(at, id, EventKind::StateChanged(InstanceState::Running));
    }

    /// Begins the end of an instance; one that is ending already is left alone.
    pub(crate) fn end(&mut self, at: Timestamp, id: &InstanceId, reason: StateReason) {
        let Some(instance) = self.instances.get_mut(id).filter(|instance| instance.is_alive()) else { return };
        instance.state = InstanceState::ShuttingDown;
        instance.state_reason = Some(reason);
        instance.ending_at = Some(at);
        self.agenda.drop_all_of(id);
        self.tell(at, id, EventKind::StateChanged(InstanceState::ShuttingDown));
        let gone_at = later(at, self.settings.delays.terminated.draw(&mut self.rng));
        self.agenda.plan(gone_at, id.clone(), Step::Terminate);
    }

    fn terminated(&mut self, at: Timestamp, id: &InstanceId) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        instance.state = InstanceState::Terminated;
        // What AWS took back is gone; anything else can be had again.
        if instance.state_reason != Some(StateReason::SpotTermination) {
            self.pools.give_back(&instance.pool());
        }
        let subnet = self.subnets.iter_mut().find(|subnet| subnet.id == instance.subnet_id);
        let address = instance.private_address.clone();
        subnet.into_iter().for_each(|subnet| subnet.give_back(&address));
        self.tell(at, id, EventKind::StateChanged(InstanceState::Terminated));
        let forgotten_at = later(at, self.settings.delays.forgotten.draw(&mut self.rng));
        self.agenda.plan(forgotten_at, id.clone(), Step::Forget);
    }

    fn forget(&mut self, at: Timestamp, id: &InstanceId) {
        let Some(instance) = self.instances.remove(id) else { return };
        self.settled.insert(id.clone(), BillLine::of(&instance, at));
        self.tell(at, id, EventKind::Forgotten);
    }

    pub(crate) fn tell(&mut self, at: Timestamp, id: &InstanceId, kind: EventKind) {
        self.outbox.push_back(AwsEvent { at, instance: id.clone(), kind });
    }
}
