//! Known faults that a test can put back.

model::mutants! {
    /// The high watermark passes in-sync replicas that have not got so far.
    HighWatermarkBeyondIsr,
    /// A leader counts its own records before they are flushed.
    LeaderCountsUnflushed,
    /// A follower fetches on, which acknowledges, before what it appended is flushed.
    FetchBeforeFlush,
    /// A follower truncates to its high watermark, whatever the epochs say (KAFKA-1211).
    TruncateToHighWatermark,
    /// A follower does not say its last epoch, and so never learns that the logs diverge.
    NoTruncation,
    /// A leader does not note where its epoch begins (KAFKA-7415).
    NoEpochEntry,
    /// A follower joins the ISR below the start of the leader epoch (KAFKA-7128).
    ExpandBelowEpochStart,
    /// The high watermark does not wait for replicas that the controller may have added already.
    ExpandWithoutMaximal,
    /// The high watermark no longer waits for replicas that the controller has not yet removed.
    ShrinkAtOnce,
    /// The high watermark passes who was removed before the metadata of it, which may raise min ISR, is there.
    ShrinkBeforeMetadata,
    /// An answer of the controller counts although the partition moved on.
    StaleAlterPartition,
    /// The change is taken back although the controller may have made it.
    RollBackOnUnknown,
    /// A change that failed for now is never asked for again (KAFKA-14010).
    NoAlterPartitionRetry,
    /// A change that is asked for again names no replicas (KAFKA-15353).
    EmptyIsrOnRetry,
    /// A change that is asked for again takes the registrations of its members anew (KAFKA-15221).
    FreshEpochsOnRetry,
    /// The high watermark moves under min ISR (KAFKA-15583).
    HighWatermarkUnderMinIsr,
    /// It is not computed again when the ISR shrinks (KAFKA-13091).
    NoRecomputeOnShrink,
    /// It waits for a replica that may not join the ISR (KAFKA-15021).
    WaitForIneligible,
    /// A fetch of an earlier life of a broker counts (KIP-903).
    StaleBrokerEpoch,
    /// Positions of followers outlive the leader epoch that they were told in.
    KeepFollowersOverEpochs,
    /// A fetch that diverges counts as an acknowledgement.
    DivergingFetchCounts,
    /// An answer that says where logs diverge moves the high watermark (KAFKA-14704).
    RaiseBeforeTruncating,
    /// An answer is taken although it belongs to an earlier question (KAFKA-18991).
    StaleFetchAnswer,
    /// A follower appends what a leader of a newer epoch wrote (KAFKA-18723).
    AppendNewerEpochs,
    /// A leader goes on with its epoch after a restart, and may give offsets twice.
    LeadAgainAfterRestart,
}
