//! What brokers and the active controller say to each other: it may be lost or late, each on its own.

use std::collections::BTreeMap;

use controller::{Heartbeat, Registration};
use model::{BrokerEpoch, ErrorCode, Instant};
use replica::{AlteredPartition, QuestionId};

use super::replica_world::world::Request;

/// A letter and where it goes.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) letter: Letter,
}

#[derive(Clone, Debug)]
pub(crate) enum Letter {
    Register(Box<Registration>, u64),
    /// For the `life`-th process of the receiver.
    Registered {
        life: u64,
        epoch: BrokerEpoch,
    },
    Heartbeat(Box<Heartbeat>, u64),
    Heard {
        life: u64,
        is_fenced: bool,
    },
    Alter {
        partition: usize,
        request: Request,
    },
    Altered {
        partition: usize,
        life: u64,
        id: QuestionId,
        answer: Result<AlteredPartition, ErrorCode>,
    },
}

/// Letters on their way, in the order in which they arrive.
#[derive(Debug, Default)]
pub(crate) struct Post {
    letters: BTreeMap<(Instant, u64), Mail>,
    sent: u64,
}

impl Post {
    pub(crate) fn send(&mut self, arrives: Instant, mail: Mail) {
        self.sent += 1;
        self.letters.insert((arrives, self.sent), mail);
    }

    /// The next letter that has arrived by now.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Mail> {
        let first = self.letters.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}
