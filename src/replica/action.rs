//! What the driver must do, in order.

use model::{BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch};

/// Names one question of a replica, so that its answer is known. Never given twice by the same machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// One thing to do. The driver does them one after the other, each done before the next begins; a flush and a question
/// are merely begun. After those that change the log it calls
/// [`Replica::handle_log_changed`](crate::Replica::handle_log_changed) before anything else. A log that fails takes the
/// partition offline: nothing is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Note that `epoch` begins at `start`, which is the log's end, and drop entries that contradict it. Changes the
    /// log. The entry is flushed before or with the epoch's first records.
    BeginEpoch {
        /// The epoch, which this node leads.
        epoch: LeaderEpoch,
        /// The offset of its first record.
        start: Offset,
    },
    /// Start flushing the log, without waiting for it. When done, call
    /// [`Replica::handle_log_changed`](crate::Replica::handle_log_changed).
    Flush,
    /// Cut the log: nothing at or after this offset stays, and no epoch that begins there. Changes the log, also where
    /// no record is cut (KAFKA-10706). A checkpoint of the high watermark that lies above is lowered on disk first, or
    /// what is written there next would count as committed after a restart.
    Truncate(Offset),
    /// Drop the whole log and all epochs, to start and go on at this offset. Changes the log, and is on disk when it is
    /// done, with the checkpoint of the high watermark as for [`Action::Truncate`]: what comes back after a power cut would
    /// not be what the next Fetch acknowledges.
    RestartAt(Offset),
    /// Append batches of the Fetch answer that was just handed in: `count` of them, from the first. Changes the log.
    Append {
        /// How many batches.
        count: usize,
    },
    /// Readers may no longer see what lies below this offset. Changes the log.
    AdvanceLogStart(Offset),
    /// Ask the leader for records. The answer goes to
    /// [`Replica::handle_fetch_answer`](crate::Replica::handle_fetch_answer).
    Fetch(FetchState),
    /// Ask the leader where its log starts and ends (ListOffsets earliest and latest). The answer goes to
    /// [`Replica::handle_leader_offsets`](crate::Replica::handle_leader_offsets).
    ListOffsets {
        /// Under which id.
        id: QuestionId,
        /// The leader.
        leader: NodeId,
        /// The leader epoch of the request.
        leader_epoch: LeaderEpoch,
    },
    /// Ask the controller to change the ISR. The answer goes to
    /// [`Replica::handle_alter_partition_answer`](crate::Replica::handle_alter_partition_answer).
    AlterPartition(AlterPartition),
    /// Everything below this offset is committed.
    HighWatermark(Offset),
    /// This node leads no more: whoever waits for records to be committed is to be told.
    LostLeadership,
}

/// Where a follower stands: its next Fetch of this partition. The offset says that everything below it is safe here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchState {
    /// Under which id the answer comes.
    pub id: QuestionId,
    /// Whom to ask.
    pub leader: NodeId,
    /// The current leader epoch of the request.
    pub leader_epoch: LeaderEpoch,
    /// The fetch offset: the end of this log.
    pub offset: Offset,
    /// The epoch of the last record; none where there are no records.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// Where this log starts.
    pub log_start: Offset,
}

/// An AlterPartition request of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlterPartition {
    /// Under which id the answer comes.
    pub id: QuestionId,
    /// The leader epoch of this leader.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch that the change is made from.
    pub partition_epoch: PartitionEpoch,
    /// The ISR that is asked for, this leader among them.
    pub isr: Vec<IsrMember>,
}

/// A member of an ISR that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IsrMember {
    /// Which broker.
    pub id: NodeId,
    /// The registration that it fetched with (KIP-903); none where it has not fetched yet: not to be checked.
    pub broker_epoch: Option<BrokerEpoch>,
}
