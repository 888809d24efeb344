//! What a partition's leader answers, and what its follower does with it.

use std::sync::Arc;

use bytes::Bytes;
use model::{ErrorCode, NodeId, Offset};
use protocol::batch::{self, BatchError};
use replica::{BatchRange, EpochEnd, FetchAnswer, LeaderOffsets, LogView, QuestionId};
use storage::Origin;
use tracing::warn;

use super::drive::Log;
use super::{Partition, State};
use crate::fetcher::Fetcher;
use crate::log_shape::LogShape;

/// A leader's answer for one partition.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) error: ErrorCode,
    pub(crate) high_watermark: Offset,
    pub(crate) log_start: Offset,
    pub(crate) diverging: Option<EpochEnd>,
    pub(crate) records: Bytes,
    /// The whole batches among the records, and where each ends, in bytes.
    ranges: Vec<BatchRange>,
    ends: Vec<usize>,
}

impl Fetched {
    pub(crate) fn new(
        (high_watermark, log_start): (Offset, Offset),
        diverging: Option<EpochEnd>,
        records: Bytes,
    ) -> Self {
        let (mut ranges, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        let mut error = ErrorCode::None;
        for batch in batch::batches(&records) {
            match batch {
                Ok(batch) => {
                    let header = &batch.header;
                    let (base, next) = (header.base_offset, header.next_offset());
                    ranges.push(BatchRange { base, end: next, epoch: header.leader_epoch });
                    end += batch.bytes.len();
                    ends.push(end);
                }
                Err(BatchError::Incomplete { .. }) => break,
                Err(_) => {
                    error = if ranges.is_empty() { ErrorCode::CorruptMessage } else { ErrorCode::None };
                    break;
                }
            }
        }
        Self { error, high_watermark, log_start, diverging, records, ranges, ends }
    }

    /// Nothing but an error.
    pub(crate) fn failed(error: ErrorCode) -> Self {
        Self { error, ..Self::new((Offset(-1), Offset(-1)), None, Bytes::new()) }
    }

    /// Whether what it makes of a log that ends at `log_end` may wait for the disk.
    pub(crate) fn may_cut(&self, log_end: Offset) -> bool {
        self.diverging.is_some() || self.ranges.first().is_some_and(|first| first.base < log_end)
    }

    fn answer(&self) -> FetchAnswer<'_> {
        FetchAnswer {
            error: self.error,
            high_watermark: self.high_watermark,
            log_start: self.log_start,
            diverging: self.diverging,
            batches: &self.ranges,
        }
    }

    fn first(&self, count: usize) -> &[u8] {
        let end = count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        self.records.get(..end).unwrap_or_default()
    }
}

impl Partition {
    /// The leader answered the Fetch of this id. May wait for the disk where [`Fetched::may_cut`]. Whether the next question
    /// comes when what was appended is flushed.
    pub(crate) fn take_fetched(self: &Arc<Self>, id: QuestionId, fetched: &Fetched) -> bool {
        let mut state = self.lock();
        let State { log, replica, .. } = &mut *state;
        replica.handle_fetch_answer(self.now(), &LogShape(log), id, &fetched.answer());
        self.act(&mut state, Some(fetched));
        let log = LogShape(&state.log);
        state.check_condition().is_ok()
            && state.replica.leads().is_none()
            && log.counted_end() < log.log_end()
    }

    /// The question of this id will have no answer.
    pub(crate) fn fetch_failed(self: &Arc<Self>, id: QuestionId) {
        let mut state = self.lock();
        state.replica.handle_fetch_failure(self.now(), id);
        self.act(&mut state, None);
    }

    /// The leader told where its log starts and ends; none where it refused. May wait for the disk.
    pub(crate) fn take_leader_offsets(self: &Arc<Self>, id: QuestionId, offsets: Option<LeaderOffsets>) {
        let mut state = self.lock();
        let State { log, replica, .. } = &mut *state;
        replica.handle_leader_offsets(self.now(), &LogShape(log), id, offsets);
        self.act(&mut state, None);
    }

    /// Appends the first batches of an answer; where that fails and the log goes on, the leader is asked again later.
    pub(super) fn append_fetched(&self, state: &mut State, count: usize, fetched: Option<&Fetched>) -> Log {
        let Some(bytes) = fetched.map(|fetched| fetched.first(count)) else {
            // What came before was hindered, and the answer is gone.
            state.replica.handle_append_failure(self.now());
            return Log::Kept;
        };
        // A coordinator's records may use a part of the reserve, as where they are led.
        let origin = if self.name.topic.is_internal() { Origin::Coordinator } else { Origin::Client };
        match state.log.append_as_follower(bytes, origin, self.wall()) {
            Ok(_) => {
                state.owe(self, bytes.len());
                Log::Changed
            }
            Err(error) => {
                warn!(partition = %self.name, %error, "what the leader sent was not appended");
                state.note_failure(self);
                state.replica.handle_append_failure(self.now());
                Log::Kept
            }
        }
    }

    /// Who asks this leader.
    pub(super) fn fetcher(&self, state: &mut State, leader: NodeId) -> Arc<Fetcher> {
        let is_durable = !state.log.config().write_caching;
        let fetcher = self.outlets.fetchers.get((leader, self.folder, is_durable));
        if state.fetcher.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &fetcher)) {
            state.leave_fetcher(self.id);
            state.fetcher = Some(fetcher.clone());
        }
        fetcher
    }
}
