//! Known faults that a test can put back.

model::mutants! {
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
