//! The in-sync replicas: what the controller has committed, and the change that it is asked for.
//!
//! While a change is asked for, the controller may have made it or not. The *maximal* ISR holds in both cases: with the
//! replicas that are to join, and with those that are to leave. Only an answer that says that the change was not made,
//! and newer metadata, end the doubt.
//!
//! An attempt that is given up, unanswered, must not be made good later, when one after it has been answered: the
//! controller takes requests from a broker's latest connection only.
//!
//! Kafka: `PartitionState` (`PendingExpandIsr`, `PendingShrinkIsr`, `CommittedPartitionState`); KIP-497, KIP-704.

use std::collections::BTreeSet;

use model::{ErrorCode, Instant, LeaderEpoch, NodeId, PartitionEpoch};

use crate::mutant::{Mutant, Mutation};
use crate::{IsrMember, QuestionId};

/// What the controller answers where it made the change, or had nothing to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredPartition {
    /// The leader epoch now.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch now.
    pub partition_epoch: PartitionEpoch,
    /// The ISR now.
    pub isr: Vec<NodeId>,
}

#[derive(Clone, Debug)]
pub(crate) struct Isr {
    committed: BTreeSet<NodeId>,
    partition_epoch: PartitionEpoch,
    pending: Option<Pending>,
    /// Nothing new is asked for before.
    quiet_until: Instant,
}

#[derive(Clone, Debug)]
struct Pending {
    target: Vec<IsrMember>,
    maximal: BTreeSet<NodeId>,
    wait: Wait,
}

/// What a pending change waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Answer(QuestionId),
    Retry(Instant),
    /// The controller knows of a change that this node has not seen yet.
    Metadata,
}

/// What an error of the controller says about the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The change was not made, and will not be.
    NotMade,
    /// Newer metadata is on its way.
    Outdated,
    /// Try again.
    Temporary,
}

impl Isr {
    pub(crate) fn new(isr: &[NodeId], partition_epoch: PartitionEpoch) -> Self {
        let committed = isr.iter().copied().collect();
        Self { committed, partition_epoch, pending: None, quiet_until: Instant(0) }
    }

    pub(crate) fn committed(&self) -> &BTreeSet<NodeId> {
        &self.committed
    }

    pub(crate) fn partition_epoch(&self) -> PartitionEpoch {
        self.partition_epoch
    }

    /// All that may be in sync for the controller.
    pub(crate) fn maximal(&self) -> &BTreeSet<NodeId> {
        self.pending.as_ref().map_or(&self.committed, |pending| &pending.maximal)
    }

    /// What is asked for.
    pub(crate) fn target(&self) -> Option<&[IsrMember]> {
        self.pending.as_ref().map(|pending| pending.target.as_slice())
    }

    /// Metadata. It ends the doubt where it is newer than what is known here; it may as well be older.
    pub(crate) fn apply(&mut self, isr: &[NodeId], partition_epoch: PartitionEpoch) {
        if partition_epoch > self.partition_epoch {
            let quiet_until = self.quiet_until;
            *self = Self { quiet_until, ..Self::new(isr, partition_epoch) };
        }
    }

    /// Whether a change may be asked for.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.pending.is_none() && now >= self.quiet_until
    }

    /// A change is to be asked for: the same as long as it takes, each member with the registration that it was found in
    /// sync with. A member that registers anew meanwhile may have lost what it had (KAFKA-15221).
    pub(crate) fn propose(&mut self, now: Instant, target: Vec<IsrMember>, mutation: Mutation) {
        let ids = target.iter().map(|member| member.id);
        let is_expansion = target.iter().any(|member| !self.committed.contains(&member.id));
        let forgets = if is_expansion { Mutant::ExpandWithoutMaximal } else { Mutant::ShrinkAtOnce };
        let takes_target = is_expansion != mutation.is(forgets);
        let maximal = if takes_target { ids.collect() } else { self.committed.clone() };
        self.pending = Some(Pending { target, maximal, wait: Wait::Retry(now) });
    }

    /// Whether the change is to be asked for now, for the first time or again.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.pending.as_ref().is_some_and(|pending| matches!(pending.wait, Wait::Retry(at) if at <= now))
    }

    pub(crate) fn asked(&mut self, id: QuestionId) {
        if let Some(pending) = &mut self.pending {
            pending.wait = Wait::Answer(id);
        }
    }

    pub(crate) fn is_asked(&self, id: QuestionId) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.wait == Wait::Answer(id))
    }

    /// The controller made the change, or had nothing to change.
    ///
    /// Who left is waited for until the metadata says so: what it says before that, a higher min ISR above all, decides
    /// whether those who stay may commit without it, or it may be elected still.
    pub(crate) fn handle_altered(&mut self, altered: &AlteredPartition, mutation: Mutation) {
        let isr: BTreeSet<_> = altered.isr.iter().copied().collect();
        let has_left = !isr.is_superset(&self.committed) && altered.partition_epoch > self.partition_epoch;
        if has_left && !mutation.is(Mutant::ShrinkBeforeMetadata) {
            return self.wait(Wait::Metadata);
        }
        self.committed = isr;
        self.partition_epoch = altered.partition_epoch;
        self.pending = None;
    }

    /// The controller refused; it is asked again at `again_at` where that helps.
    pub(crate) fn handle_refused(&mut self, error: ErrorCode, again_at: Instant, mutation: Mutation) {
        match Refusal::of(error) {
            Refusal::Outdated if !mutation.is(Mutant::RollBackOnUnknown) => self.wait(Wait::Metadata),
            Refusal::NotMade | Refusal::Outdated => {
                self.pending = None;
                self.quiet_until = again_at;
            }
            Refusal::Temporary => self.retry(again_at, mutation),
        }
    }

    /// There is no answer.
    pub(crate) fn retry(&mut self, at: Instant, mutation: Mutation) {
        let never = mutation.is(Mutant::NoAlterPartitionRetry);
        self.wait(if never { Wait::Metadata } else { Wait::Retry(at) });
        if mutation.is(Mutant::EmptyIsrOnRetry)
            && let Some(pending) = &mut self.pending
        {
            pending.target.clear();
        }
    }

    fn wait(&mut self, wait: Wait) {
        if let Some(pending) = &mut self.pending {
            pending.wait = wait;
        }
    }

    /// When something is to be asked again.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        match self.pending.as_ref().map(|pending| pending.wait) {
            Some(Wait::Retry(at)) => Some(at),
            Some(Wait::Answer(_) | Wait::Metadata) => None,
            None => Some(self.quiet_until).filter(|at| *at > now),
        }
    }
}

impl Refusal {
    /// The controller says INELIGIBLE_REPLICA and OPERATION_NOT_ATTEMPTED only where the partition epoch was right.
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else went wrong may go well the next time")]
    fn of(error: ErrorCode) -> Self {
        match error {
            ErrorCode::IneligibleReplica | ErrorCode::OperationNotAttempted => Self::NotMade,
            ErrorCode::FencedLeaderEpoch
            | ErrorCode::InvalidUpdateVersion
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InvalidRequest
            | ErrorCode::NewLeaderElected => Self::Outdated,
            _ => Self::Temporary,
        }
    }
}
