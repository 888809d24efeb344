//! Known faults that a test can put back: faults of somebody's controller, or what a reader might take for a simplification.

model::mutants! {
    /// An AlterPartition of an older partition epoch is taken.
    StaleAlterPartitionTaken,
    /// A replica of an earlier run of its broker is added to the ISR (KIP-903, KAFKA-14139).
    OldBrokerEpochTaken,
    /// A fenced or stopping replica is added to the ISR (KAFKA-13916, KAFKA-14140).
    FencedReplicaAdded,
    /// A replica whose folder came back empty keeps its place.
    EmptyDiskCounted,
    /// A replica that found less than was committed keeps its place.
    LostRecordsIgnored,
    /// The last known leader is elected while it is fenced (KAFKA-19522).
    FencedLastKnownLeaderElected,
    /// Who was eligible by one `min.insync.replicas` stays so by another (KAFKA-16540).
    ElrKeptAfterMinIsrChange,
    /// A reassignment ends before its replicas have caught up (KAFKA-15665).
    ReassignmentEndsEarly,
    /// A broker is unfenced before it has read its own registration.
    UnfencedTooEarly,
    /// A broker that never spoke to this controller is never fenced (KAFKA-18138).
    SilentBrokerForgotten,
    /// Another process takes the id of a broker that lives.
    DuplicateTaken,
}
