//! Answers on their way from a shard to who asked.

use std::sync::Arc;

use env::BoxFuture;
use model::{Instant, Offset};
use tokio::sync::oneshot;

use crate::ShardError;
use crate::log::ShardLog;

/// A reply of the machine, and where the log ended when it was given.
pub(crate) struct Replied<R> {
    pub(crate) reply: R,
    pub(crate) end: Offset,
}

/// Where a reply goes. Who asked may have gone away.
pub(crate) type Answer<R> = oneshot::Sender<Result<Replied<R>, ShardError>>;

/// Something that was decided and appended, in its place among all others: the ordered point. It counts once it is
/// committed.
pub struct Appended<R> {
    reply: R,
    end: Offset,
    log: Arc<dyn ShardLog>,
    deadline: Instant,
}

impl<R: Send + 'static> Appended<R> {
    pub(crate) fn new(replied: Replied<R>, log: Arc<dyn ShardLog>, deadline: Instant) -> Self {
        Self { reply: replied.reply, end: replied.end, log, deadline }
    }

    /// The reply, when it may be told.
    pub fn committed(self) -> BoxFuture<'static, Result<R, ShardError>> {
        Box::pin(async move {
            self.log.committed(self.end, self.deadline).await.map_err(ShardError::of_log)?;
            Ok(self.reply)
        })
    }
}
