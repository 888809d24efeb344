//! Known faults that a test can put back.
//!
//! Random seeds do not find every fault; each of these is caught by a scenario of its own, and the scenario's
//! test proves it by running with the fault and without. Without the feature `mutants` the questions are
//! constant `false`.

/// A known fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "mutants"),
    expect(unreachable_pub, reason = "exported with the feature `mutants` only")
)]
pub enum Mutant {
    /// A record of an older epoch is committed by counting its copies (Raft, figure 8).
    CommitOlderEpoch,
    /// A flush that began before a truncation counts for what was written after it.
    FlushAcrossTruncation,
    /// A node that hears nothing campaigns in a new epoch at once.
    NoPreVote,
    /// A follower fetches on, which acknowledges, before what it appended is flushed.
    FetchBeforeFlush,
    /// A leader counts its own records before they are flushed.
    LeaderCountsUnflushed,
    /// A vote is granted without a look at the candidate's log.
    VoteWithoutLogCheck,
    /// An answer is taken although it belongs to an earlier question.
    StaleAnswer,
    /// An answer that refuses, or says where logs diverge, moves the high watermark.
    FencedAnswerMovesHighWatermark,
    /// A diverging Fetch counts as an acknowledgement (KAFKA-14704's kin on the leader).
    DivergingFetchCounts,
    /// The vote is not persisted before it is answered.
    VoteNotPersisted,
    /// Candidates and followers go back to the leader that others name, though it is the one they just gave up.
    EchoOfDeadLeader,
    /// A leader that no majority fetches from goes on.
    NoCheckQuorum,
    /// A second change of the voters is taken while the first is not committed.
    TwoVoterChanges,
}

#[cfg(feature = "mutants")]
impl Mutant {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::CommitOlderEpoch,
        Self::FlushAcrossTruncation,
        Self::NoPreVote,
        Self::FetchBeforeFlush,
        Self::LeaderCountsUnflushed,
        Self::VoteWithoutLogCheck,
        Self::StaleAnswer,
        Self::FencedAnswerMovesHighWatermark,
        Self::DivergingFetchCounts,
        Self::VoteNotPersisted,
        Self::EchoOfDeadLeader,
        Self::NoCheckQuorum,
        Self::TwoVoterChanges,
    ];
}

/// The fault that a node has, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mutation {
    #[cfg(feature = "mutants")]
    active: Option<Mutant>,
}

impl Mutation {
    #[cfg(feature = "mutants")]
    pub(crate) fn of(mutant: Mutant) -> Self {
        Self { active: Some(mutant) }
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn is(self, mutant: Mutant) -> bool {
        self.active == Some(mutant)
    }

    #[cfg(not(feature = "mutants"))]
    #[expect(clippy::unused_self, reason = "the same face as with the feature")]
    pub(crate) const fn is(self, _mutant: Mutant) -> bool {
        false
    }
}
