//! The partition and its committer.

use std::sync::Arc;
use std::time::Duration;

use env::Exec;
use storage::StorageError;

use super::{Partition, State};

/// How long a flush that found too many open files waits for some to be closed.
const HINDERED_PAUSE: Duration = Duration::from_millis(500);

/// Where the partition stands with its committer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    Idle,
    Queued,
    Running,
    RunningAndAsked,
}

/// How a flush ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nobody has asked for another.
    Done,
    /// Another was asked for meanwhile.
    Again,
    /// Too many files were open: it is to be tried again in a while.
    Hindered,
}

impl Partition {
    pub(super) fn ask(self: &Arc<Self>, state: &mut State) {
        match state.flush {
            Flush::Idle => {
                state.flush = Flush::Queued;
                self.committer.ask(self.clone());
            }
            Flush::Running => state.flush = Flush::RunningAndAsked,
            Flush::Queued | Flush::RunningAndAsked => {}
        }
    }

    /// One flush, for the committer alone, which then queues the partition again where another is wanted.
    pub(crate) async fn flush(self: &Arc<Self>, exec: &dyn Exec) -> Flushed {
        let job = {
            let mut state = self.lock();
            state.flush = Flush::Running;
            state.log.flush_job()
        };
        let Some(job) = job else {
            return self.lock().flush_ended();
        };
        let result = exec.flush(job.files.clone()).await;
        let mut state = self.lock();
        match state.log.flush_done(&job, result) {
            Ok(_) => self.log_changed(&mut state),
            Err(error @ StorageError::Io { .. }) => {
                tracing::warn!(partition = %self.name, %error, "a flush could not begin and is tried again");
                state.flush = Flush::Queued;
                return Flushed::Hindered;
            }
            Err(error) => {
                tracing::error!(partition = %self.name, %error, "a flush failed: the log folder goes offline");
                state.note_failure(self);
            }
        }
        state.flush_ended()
    }

    /// Asks for a flush where the topic caches writes and `flush.ms` is over, as far as upkeep can tell.
    pub(crate) fn flush_if_due(self: &Arc<Self>, every: Duration) {
        let mut state = self.lock();
        state.unflushed_for = if state.log.flushed_end() < state.log.log_end() {
            state.unflushed_for + every
        } else {
            Duration::ZERO
        };
        if state.unflushed_for.as_millis() as i64 >= state.log.config().flush_ms {
            state.unflushed_for = Duration::ZERO;
            self.ask(&mut state);
        }
    }

    /// Ends when a flush that was hindered may be tried again.
    pub(crate) async fn rest(&self) {
        self.outlets.clock.sleep(HINDERED_PAUSE).await;
    }
}

impl State {
    fn flush_ended(&mut self) -> Flushed {
        let again = self.flush == Flush::RunningAndAsked;
        self.flush = if again { Flush::Queued } else { Flush::Idle };
        if again { Flushed::Again } else { Flushed::Done }
    }
}
