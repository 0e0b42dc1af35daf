//! A claim's status under change: many steps, one write.

use std::sync::Arc;

use api::condition::ConditionSubject;
use api::node_claim::{NodeClaimStatus, conditions};
use api::{Condition, ConditionSet, NodeClaim};
use jiff::Timestamp;
use model::ProviderId;

use super::{believed, name_of};
use crate::context::Context;
use crate::merge::status_patch;
use crate::pools::Registration;
use crate::write::{self, WriteError};

/// A copy of a claim's status that steps may change; [`ClaimDraft::save`] writes it if it differs.
pub(crate) struct ClaimDraft {
    claim: Arc<NodeClaim>,
    status: NodeClaimStatus,
    now: Timestamp,
}

impl ClaimDraft {
    /// Opens a draft; conditions that a claim must have and has not are filled in.
    pub(crate) fn open(claim: Arc<NodeClaim>, now: Timestamp) -> Self {
        let status = claim.status.clone().unwrap_or_default();
        let mut draft = Self { claim, status, now };
        draft.conditions(|_| ());
        draft
    }

    /// The claim as stored.
    pub(crate) fn claim(&self) -> &Arc<NodeClaim> {
        &self.claim
    }

    /// The claim was written to meanwhile, by us; the draft's status stays.
    pub(crate) fn rebase(&mut self, claim: Arc<NodeClaim>) {
        self.claim = claim;
    }

    /// The status under change.
    pub(crate) fn status(&mut self) -> &mut NodeClaimStatus {
        &mut self.status
    }

    /// The instance, once there is one.
    pub(crate) fn provider_id(&self) -> Option<ProviderId> {
        self.status.provider_id.as_deref().filter(|id| !id.is_empty()).map(ProviderId::new)
    }

    /// Changes conditions.
    pub(crate) fn conditions<T>(&mut self, change: impl FnOnce(&mut ConditionSet<'_>) -> T) -> T {
        let metadata = &self.claim.metadata;
        let subject = ConditionSubject {
            generation: metadata.generation.unwrap_or(0),
            created_at: metadata.creation_timestamp.as_ref().map_or(self.now, |time| time.0),
            deleting: metadata.deletion_timestamp.is_some(),
            now: self.now,
        };
        let list = self.status.conditions.get_or_insert_default();
        change(&mut ConditionSet::open(list, conditions::TYPES, subject))
    }

    fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
    }

    /// Whether a condition holds.
    pub(crate) fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == api::ConditionStatus::True)
    }

    /// Whether nobody knows yet.
    pub(crate) fn is_unknown(&self, type_: &str) -> bool {
        self.condition(type_).is_none_or(|condition| condition.status == api::ConditionStatus::Unknown)
    }

    /// Since when a condition is as it is; at worst as long as there is the claim.
    pub(crate) fn since(&self, type_: &str) -> Option<Timestamp> {
        let written = self.condition(type_)?.last_transition_time.0;
        let created = self.claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
        believed(written, self.now).or(created)
    }

    /// Why no node joined: the launch says it itself if there was none.
    pub(crate) fn failed_registration(&self) -> Registration {
        let launched = self.condition(conditions::LAUNCHED).filter(|found| found.status != api::ConditionStatus::True);
        let (reason, message) = launched.map_or(("RegistrationFailed", "Failed to register node"), |found| {
            (found.reason.as_str(), found.message.as_str())
        });
        Registration::Failed { reason: reason.to_owned(), message: message.to_owned() }
    }

    /// Whether all that changed is why something is not known yet: the words of conditions, and no state.
    pub(crate) fn changes_only_words(&self) -> bool {
        let Some(stored) = &self.claim.status else { return false };
        let state = |condition: &Condition| {
            let kind = condition.type_.clone();
            (kind, condition.status, condition.last_transition_time.clone(), condition.observed_generation)
        };
        let states = |status: &NodeClaimStatus| status.conditions.iter().flatten().map(state).collect::<Vec<_>>();
        let rest = |status: &NodeClaimStatus| NodeClaimStatus { conditions: None, ..status.clone() };
        *stored != self.status && states(stored) == states(&self.status) && rest(stored) == rest(&self.status)
    }

    /// Writes the status if it changed.
    pub(crate) async fn save(self, context: &Context) -> Result<(), WriteError> {
        if self.claim.status.as_ref() == Some(&self.status) {
            return Ok(());
        }
        let version = self.claim.metadata.resource_version.as_deref();
        let patch = status_patch(version, self.claim.status.as_ref(), &self.status);
        write::patch_claim_status(context, &name_of(&self.claim), &patch).await.map(|_| ())
    }
}
