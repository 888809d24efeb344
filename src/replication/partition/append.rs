//! Appending as the leader.

use std::sync::Arc;

use model::LeaderEpoch;
use storage::{Appended, Origin};

use super::{Partition, State, known};
use crate::error::AppendError;

impl Partition {
    /// Appends batches of a client or a coordinator, and asks for a flush. The caller waits with
    /// [`crate::committed`].
    ///
    /// What was decided in one leader epoch must not be appended in another: `decided_in` says it, or
    /// [`LeaderEpoch::NONE`].
    ///
    /// # Errors
    /// Nothing was appended.
    pub fn append(
        self: &Arc<Self>,
        batches: &[u8],
        (origin, decided_in): (Origin, LeaderEpoch),
        needs_min_isr: bool,
    ) -> Result<Appended, AppendError> {
        let now = self.wall();
        let mut state = self.lock();
        if known(decided_in).is_some() {
            state.check_epoch(decided_in)?;
        }
        state.check_condition()?;
        let epoch = state.replica.check_append(needs_min_isr)?;
        let appended = match state.log.append_as_leader(batches, epoch, now, origin) {
            Ok(appended) => appended,
            Err(error) => {
                state.note_failure(self);
                return Err(error.into());
            }
        };
        state.owe(self, batches.len());
        self.log_changed(&mut state);
        let end = state.log.log_end();
        state.followers.reached(end);
        self.after_append(&mut state);
        Ok(appended)
    }

    /// Everything appended is flushed, soon; later where the topic caches writes.
    fn after_append(self: &Arc<Self>, state: &mut State) {
        let unflushed = state.log.log_end().0 - state.log.flushed_end().0;
        if !state.log.config().write_caching || unflushed >= state.log.config().flush_messages {
            self.ask(state);
        }
    }
}
