//! Reading as the leader: for consumers, for followers, for the coordinators of this node.

use std::sync::Arc;

use env::Exec;
use model::{Offset, Timestamp};
use replica::{EpochEnd, FetchRequest, FollowerFetch, Position};
use storage::{Log, Slice, StorageError, TimeSearch, TimestampOffset};

use super::{Offsets, Partition, State};
use crate::error::{PartitionError, ReadError};
use crate::log_shape::LogShape;

/// Which records a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All below the high watermark.
    ReadUncommitted,
    /// All below the last stable offset.
    ReadCommitted,
    /// All below the log end: followers, and the coordinators of this node.
    LogEnd,
}

/// What a read found.
pub struct Read {
    /// Whole batches, from the one that holds the offset on.
    pub slice: Slice,
    /// The high watermark at the time.
    pub high_watermark: Offset,
    /// The last stable offset at the time.
    pub last_stable_offset: Offset,
    /// The first offset of the log.
    pub log_start: Offset,
    /// The offset below which this reader may read at the time, exclusive.
    pub readable_end: Offset,
    /// Where the reader's log is not a prefix of this one: up to here it may be. There are no records then.
    pub diverging: Option<EpochEnd>,
}

/// How much is read at once.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// So many bytes.
    pub bytes_max: usize,
    /// Or the first batch, however large.
    pub at_least_one: bool,
}

impl Partition {
    /// Reads from `from` on.
    ///
    /// # Errors
    /// The offset is outside the log, or the partition cannot be read here.
    pub fn read(
        &self,
        from: Offset,
        bytes_max: usize,
        at_least_one: bool,
        isolation: Isolation,
    ) -> Result<Read, ReadError> {
        let request = FetchRequest { leader_epoch: None, offset: from, last_fetched_epoch: None };
        self.fetch(&request, isolation, ReadLimits { bytes_max, at_least_one })
    }

    /// Reads for a consumer.
    ///
    /// # Errors
    /// The offset is outside the log, the reader knows another leader epoch, or the partition cannot be read here.
    pub fn fetch(
        &self,
        request: &FetchRequest,
        isolation: Isolation,
        limits: ReadLimits,
    ) -> Result<Read, ReadError> {
        let mut state = self.lock();
        state.check_condition()?;
        let position = state.replica.check_fetch(&LogShape(&state.log), request)?;
        self.read_at(&mut state, position, request.offset, (isolation, limits))
    }

    /// Reads for a follower. What `is_new`, and not read again for a Fetch that waited, tells how far the follower is: it may
    /// move the high watermark.
    ///
    /// # Errors
    /// As [`Self::fetch`], or the follower is no replica.
    pub fn fetch_as_follower(
        self: &Arc<Self>,
        from: &FollowerFetch,
        limits: ReadLimits,
        is_new: bool,
    ) -> Result<Read, ReadError> {
        let mut state = self.lock();
        state.check_condition()?;
        let position = state.replica.check_follower_fetch(&LogShape(&state.log), from)?;
        let read = self.read_at(&mut state, position, from.request.offset, (Isolation::LogEnd, limits))?;
        if !is_new || position != Position::Valid {
            return Ok(read);
        }
        let State { log, replica, .. } = &mut *state;
        replica.handle_follower_fetch(self.now(), &LogShape(log), from);
        self.act(&mut state, None);
        Ok(Read { high_watermark: state.replica.high_watermark(), ..read })
    }

    fn read_at(
        &self,
        state: &mut State,
        position: Position,
        from: Offset,
        (isolation, limits): (Isolation, ReadLimits),
    ) -> Result<Read, ReadError> {
        let Offsets { log_start, high_watermark, last_stable_offset, log_end, .. } = state.offsets()?;
        let readable_end = match isolation {
            Isolation::ReadUncommitted => high_watermark,
            Isolation::ReadCommitted => last_stable_offset,
            Isolation::LogEnd => log_end,
        };
        let (slice, diverging) = match position {
            Position::Diverging(end) => (Slice::Empty, Some(end)),
            Position::Valid if from >= readable_end => (Slice::Empty, None),
            Position::Valid => (self.slice(state, from, readable_end, limits)?, None),
        };
        Ok(Read { slice, high_watermark, last_stable_offset, log_start, readable_end, diverging })
    }

    fn slice(
        &self,
        state: &mut State,
        from: Offset,
        end: Offset,
        limits: ReadLimits,
    ) -> Result<Slice, ReadError> {
        let ReadLimits { bytes_max, at_least_one } = limits;
        let read = state.log.read(from, bytes_max, end, at_least_one);
        if read.is_err() {
            state.note_failure(self);
        }
        Ok(read?)
    }

    /// The first record, by offset, whose timestamp is `timestamp` or later.
    ///
    /// # Errors
    /// The partition cannot be read here.
    pub async fn offset_for_timestamp(
        &self,
        exec: &dyn Exec,
        timestamp: Timestamp,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        self.search(exec, |log| log.offset_for_timestamp(timestamp)).await
    }

    /// The record with the latest timestamp.
    ///
    /// # Errors
    /// The partition cannot be read here.
    pub async fn max_timestamp(&self, exec: &dyn Exec) -> Result<Option<TimestampOffset>, ReadError> {
        self.search(exec, Log::max_timestamp).await
    }

    async fn search(
        &self,
        exec: &dyn Exec,
        take: impl FnOnce(&Log) -> Result<TimeSearch, StorageError>,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        let (epoch, search) = {
            let state = self.lock();
            (state.leader_epoch()?, take(&state.log))
        };
        let found = match search {
            Ok(search) if search.is_empty() => return Ok(None),
            Ok(search) => env::blocking(exec, move || search.run()).await,
            Err(error) => Err(error),
        };
        let mut state = self.lock();
        if found.is_err() {
            state.note_failure(self);
        }
        // Another leader's log may be another one, and this one may have been cut.
        if state.leader_epoch()? != epoch {
            return Err(PartitionError::NotLeader.into());
        }
        found.map_err(|error| ReadError::Log(error.into()))
    }
}
