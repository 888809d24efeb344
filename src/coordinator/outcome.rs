//! What a machine gives out: records to append, answers to send once they are committed.

use model::{ErrorCode, GroupId, Instant, Timestamp};

use crate::command::{JoinReply, SyncReply, Token};
use crate::record::CoordinatorRecord;

/// The two clocks at the moment of an event.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// For timeouts.
    pub now: Instant,
    /// For what is written.
    pub wall: Timestamp,
}

/// The outcome of a command. The caller appends `records`, applies them, and sends the reply and what is released when
/// the log is committed up to its present end. Where the append fails it calls `Groups::handle_append_failure`.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome<R> {
    /// The answer to this command. JoinGroup and SyncGroup have none: they are answered by what is released.
    pub reply: R,
    /// In order.
    pub records: Vec<CoordinatorRecord>,
    /// Answers to this and earlier commands.
    pub released: Vec<Released>,
    /// What the group does if the records cannot be appended.
    pub fallback: Fallback,
}

/// An answer that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// To a JoinGroup.
    Join(Token, JoinReply),
    /// To a SyncGroup.
    Sync(Token, SyncReply),
}

/// What becomes of a group whose records could not be appended. Records that only `apply` knows need nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Fallback {
    /// Nothing.
    #[default]
    None,
    /// The group was new: it is forgotten.
    Forget(GroupId),
    /// The generation is not written as its members know it: they join again.
    Rejoin(GroupId),
}

impl<R> Outcome<R> {
    /// An answer without consequences.
    pub(crate) fn reply(reply: R) -> Self {
        Self { reply, records: Vec::new(), released: Vec::new(), fallback: Fallback::None }
    }

    /// An answer with records.
    pub(crate) fn records(reply: R, records: Vec<CoordinatorRecord>) -> Self {
        Self { records, ..Self::reply(reply) }
    }
}

impl Released {
    /// The same request, refused.
    pub(crate) fn refused(self, error: ErrorCode) -> Self {
        match self {
            Self::Join(token, _) => Self::Join(token, JoinReply::refused(model::MemberId::default(), error)),
            Self::Sync(token, _) => Self::Sync(token, SyncReply::refused(error)),
        }
    }
}
