//! The log below a shard.

use bytes::Bytes;
use env::BoxFuture;
use model::{ErrorCode, Instant, LeaderEpoch, Offset};

/// One partition of `__consumer_offsets` that this node leads.
pub(crate) trait ShardLog: Send + Sync {
    /// Appends a batch while this node leads in `epoch`. Gives the new log end.
    fn append(&self, batch: &[u8], epoch: LeaderEpoch) -> Result<Offset, ErrorCode>;

    /// Its first offset, and the offset that comes after its last record.
    fn range(&self) -> Result<(Offset, Offset), ErrorCode>;

    /// Batches from the one that holds `from` on, committed or not. The last one may be cut, the first is not.
    fn read(&self, from: Offset) -> BoxFuture<'_, Result<Bytes, ErrorCode>>;

    /// Waits until all below `end` is committed.
    fn committed(&self, end: Offset, deadline: Instant) -> BoxFuture<'_, Result<(), ErrorCode>>;
}
