//! A partition of this node as the log of a shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use bytes::Bytes;
use env::{BoxFuture, Env, FileRange};
use model::{ErrorCode, Instant, LeaderEpoch, Offset};
use replication::{Commit, Isolation, Origin, Partition, Slice, committed};

use crate::log::ShardLog;

/// Bytes read at once while loading; a larger batch is read whole.
const READ_BYTES: usize = 1 << 20;

pub(crate) struct PartitionLog {
    env: Env,
    partition: Arc<Partition>,
    /// In which this node led when the shard asked for its range, and so began.
    epoch: AtomicI32,
}

impl PartitionLog {
    pub(crate) fn new(env: Env, partition: Arc<Partition>) -> Self {
        Self { env, partition, epoch: AtomicI32::new(LeaderEpoch::NONE.0) }
    }

    async fn read_file(&self, range: FileRange) -> Result<Bytes, ErrorCode> {
        let (give, take) = tokio::sync::oneshot::channel();
        let job = move || drop(give.send(read(&range)));
        self.env.exec.blocking(Box::new(job)).await;
        take.await.map_err(|_| ErrorCode::NotLeaderOrFollower)?.map_err(|_| ErrorCode::KafkaStorageError)
    }
}

impl ShardLog for PartitionLog {
    fn append(&self, batch: &[u8], epoch: LeaderEpoch) -> Result<Offset, ErrorCode> {
        let appended = self.partition.append(batch, (Origin::Coordinator, epoch), true);
        appended.map(|appended| appended.last_offset.plus(1)).map_err(|error| ErrorCode::from(&error))
    }

    fn range(&self) -> Result<(Offset, Offset), ErrorCode> {
        let offsets = self.partition.offsets()?;
        self.epoch.store(offsets.leader_epoch.0, Ordering::Relaxed);
        Ok((offsets.log_start, offsets.log_end))
    }

    fn read(&self, from: Offset) -> BoxFuture<'_, Result<Bytes, ErrorCode>> {
        Box::pin(async move {
            let read = self.partition.read(from, READ_BYTES, true, Isolation::LogEnd);
            match read.map_err(|error| ErrorCode::from(&error))?.slice {
                Slice::Empty => Ok(Bytes::new()),
                Slice::Cached(bytes) => Ok(bytes),
                Slice::File(range) => self.read_file(range).await,
            }
        })
    }

    fn committed(&self, end: Offset, deadline: Instant) -> BoxFuture<'_, Result<(), ErrorCode>> {
        Box::pin(async move {
            let epoch = LeaderEpoch(self.epoch.load(Ordering::Relaxed));
            let commit = Commit { partition: self.partition.clone(), epoch, end };
            let ends = committed(self.env.clock.as_ref(), &[commit], deadline).await;
            ends.into_iter().try_for_each(|end| end.map_err(ErrorCode::from))
        })
    }
}

fn read(range: &FileRange) -> std::io::Result<Bytes> {
    let mut bytes = vec![0; range.length];
    let mut filled = 0;
    while filled < bytes.len() {
        match range.file.read_at(&mut bytes[filled..], range.position + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes.into())
}
