//! What a leader says to a Fetch before it reads: the checks, in Kafka's order.
//!
//! 1. The leader epoch of the request is this one's.
//! 2. This node leads.
//! 3. A follower is a replica, in its present life.
//! 4. The offset is not below the log start: its reader learns of that before it hears of divergence.
//! 5. The reader's last epoch ends here where it ends there.
//! 6. The offset is not past the end.
//!
//! Kafka: `Partition.fetchRecords`, `readRecords`; KIP-320, KIP-595, KAFKA-13837, KAFKA-14078.

use model::{BrokerEpoch, LeaderEpoch, NodeId, Offset};

use crate::{EpochEnd, FetchError, LogView};

/// A Fetch of one partition. What a request of an older version does not say is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// The leader epoch that the reader knows.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The first offset that is asked for.
    pub offset: Offset,
    /// The epoch of the record before it.
    pub last_fetched_epoch: Option<LeaderEpoch>,
}

/// Who follows with a Fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerFetch {
    /// The replica.
    pub replica: NodeId,
    /// Its registration (KIP-903).
    pub broker_epoch: Option<BrokerEpoch>,
    /// Where its log starts.
    pub log_start: Offset,
    /// What it asks for. The offset says that it holds all below it safely.
    pub request: FetchRequest,
}

/// What a leader finds about a reader's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The reader's log is a prefix of this one, as far as it says.
    Valid,
    /// It is not; up to here it may be.
    Diverging(EpochEnd),
}

/// Whether the leader epoch that a request knows is `own`.
///
/// # Errors
/// It is older or newer.
pub(crate) fn check_epoch(known: Option<LeaderEpoch>, own: LeaderEpoch) -> Result<(), FetchError> {
    match known {
        Some(known) if known < own => Err(FetchError::FencedLeaderEpoch),
        Some(known) if known > own => Err(FetchError::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

pub(crate) fn position(log: &impl LogView, request: &FetchRequest) -> Result<Position, FetchError> {
    let (log_start, log_end) = (log.log_start(), log.log_end());
    let out_of_range = FetchError::OutOfRange { log_start, log_end };
    if request.offset < log_start {
        return Err(out_of_range);
    }
    if let Some(last) = request.last_fetched_epoch {
        let found = log.epoch_end(last).ok_or(out_of_range)?;
        if found.epoch < last || found.end < request.offset {
            return Ok(Position::Diverging(found));
        }
    }
    if request.offset > log_end { Err(out_of_range) } else { Ok(Position::Valid) }
}
