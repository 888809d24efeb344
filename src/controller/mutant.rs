//! Known faults that a test can put back.
//!
//! Each of these was a fault of somebody's controller, or is what a reader might take for a simplification; a scenario of
//! its own catches it, and the scenario's test proves it by running with the fault and without. Without the feature
//! `mutants` the questions are constant `false`.

/// A known fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "mutants"),
    expect(unreachable_pub, reason = "exported with the feature `mutants` only")
)]
pub enum Mutant {
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

#[cfg(feature = "mutants")]
impl Mutant {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::StaleAlterPartitionTaken,
        Self::OldBrokerEpochTaken,
        Self::FencedReplicaAdded,
        Self::EmptyDiskCounted,
        Self::LostRecordsIgnored,
        Self::FencedLastKnownLeaderElected,
        Self::ElrKeptAfterMinIsrChange,
        Self::ReassignmentEndsEarly,
        Self::UnfencedTooEarly,
        Self::SilentBrokerForgotten,
        Self::DuplicateTaken,
    ];
}

/// The fault that a controller has, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
