//! A partition that another node leads: what is fetched next, and what an answer does to the log.
//!
//! Invariants: nothing is asked before all that the log holds is safe, for the fetch offset is the acknowledgement; an
//! answer counts only for the question that is open, and a question dies with the state of the log and the leader
//! epoch that it was asked in.
//!
//! Kafka: `AbstractFetcherThread`, `PartitionFetchState`; KIP-101, KIP-279, KIP-595.

use model::{ErrorCode, Instant, LeaderEpoch, NodeId, Offset};

use crate::{EpochEnd, LogView, QuestionId};

/// What a Fetch answer says of the partition.
#[derive(Clone, Copy, Debug)]
pub struct FetchAnswer<'a> {
    /// Nothing below counts where there is one.
    pub error: ErrorCode,
    /// The leader's high watermark.
    pub high_watermark: Offset,
    /// Where the leader's log starts.
    pub log_start: Offset,
    /// The logs diverge; up to here they may agree.
    pub diverging: Option<EpochEnd>,
    /// The batches that came, whole and intact.
    pub batches: &'a [BatchRange],
}

/// A batch of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchRange {
    /// The offset of its first record.
    pub base: Offset,
    /// The offset after its last one.
    pub end: Offset,
    /// The leader epoch that it was written in.
    pub epoch: LeaderEpoch,
}

#[derive(Clone, Debug)]
pub(crate) struct FollowerState {
    pub(crate) leader: NodeId,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The next question is asked when the log is safe.
    Ready,
    /// Records are asked for.
    Fetching(QuestionId),
    /// Where the leader's log starts and ends is asked for.
    Listing(QuestionId),
    /// Records are being appended, up to this end; then these offsets of the leader hold here too.
    Appending { end: Offset, high_watermark: Offset, log_start: Offset },
    /// A question failed.
    BackingOff(Instant),
}

impl FollowerState {
    pub(crate) fn new(leader: NodeId, epoch: LeaderEpoch) -> Self {
        Self { leader, epoch, phase: Phase::Ready }
    }

    pub(crate) fn has_leader(&self) -> bool {
        self.leader != NodeId::NONE
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::BackingOff(until) if self.has_leader() => Some(until),
            _ => None,
        }
    }

    /// Whether a question may be asked, as far as time goes.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        let is_over = match self.phase {
            Phase::Ready => true,
            Phase::BackingOff(until) => until <= now,
            Phase::Fetching(_) | Phase::Listing(_) | Phase::Appending { .. } => false,
        };
        is_over && self.has_leader()
    }
}

/// Where a follower cuts its log, given up to where it may agree with the leader's; none where the leader's answer makes
/// no sense, for the logs agree up to there.
pub(crate) fn truncation(log: &impl LogView, diverging: EpochEnd) -> Option<Offset> {
    let to = match log.epoch_end(diverging.epoch) {
        // The leader's epoch is not known here: what this log has up to there may agree, which is to be asked.
        Some(own) if own.epoch < diverging.epoch => own.end,
        Some(own) => own.end.min(diverging.end),
        None => diverging.end,
    };
    let forgets = Some(diverging.epoch) < log.latest_epoch();
    (forgets || to < log.log_end()).then_some(to.min(log.log_end()))
}

/// How many of a leader's batches fit behind this log: in order, without overlap, of epochs that grow up to the leader's
/// own (KAFKA-18723).
pub(crate) fn fitting(log: &impl LogView, leader_epoch: LeaderEpoch, answer: &FetchAnswer<'_>) -> usize {
    let begins_anew = answer.batches.first().is_some_and(|first| begins_anew(log, answer.log_start, first));
    let mut end = if begins_anew { Offset(0) } else { log.log_end() };
    let mut epoch = log.latest_epoch().filter(|_| !begins_anew).unwrap_or(LeaderEpoch::NONE);
    let fits = |batch: &&BatchRange| {
        let fits = batch.base >= end
            && batch.end > batch.base
            && batch.epoch >= epoch
            && batch.epoch <= leader_epoch;
        (end, epoch) = (batch.end, batch.epoch);
        fits
    };
    answer.batches.iter().take_while(fits).count()
}

/// Whether the log ends inside this batch and holds nothing that the leader still has: it begins anew with the batch. So it
/// is where the log that it follows starts, or started, in the middle of a batch (KAFKA-6975).
pub(crate) fn begins_anew(log: &impl LogView, leader_start: Offset, first: &BatchRange) -> bool {
    let end = log.log_end();
    let holds_nothing = end == log.log_start() || end <= leader_start;
    first.base < end && end < first.end && holds_nothing
}
