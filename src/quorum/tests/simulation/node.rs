//! A node: its disk, and while it runs the core and what its driver remembers.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{Instant, LeaderEpoch, NodeId, Offset};
use quorum::{Quorum, ReplicaKey, RequestId, Token, VoterSet};

use super::disk::{Disk, SnapshotFile};

pub struct Node {
    pub key: ReplicaKey,
    pub disk: Disk,
    pub process: Option<Process>,
    /// How often it was started.
    pub life: u64,
    /// How long its flushes take, in microseconds: at least, and at most.
    pub flush_micros: (u64, u64),
    /// It stands still: what should happen on it happens when it goes on.
    pub paused: bool,
    /// Flushes begin and do not end.
    pub flushes_held: bool,
}

pub struct Process {
    pub quorum: Quorum,
    /// Whose question a token stands for.
    pub asked_by: BTreeMap<Token, Asker>,
    pub next_token: u64,
    /// The epoch that it leads and may decide in.
    pub active: Option<LeaderEpoch>,
    pub high_watermark: Offset,
    /// When its next tick is planned.
    pub tick_at: Option<Instant>,
    pub part: Option<Part>,
    /// Whether it has announced itself as the leader.
    pub leads: Option<LeaderEpoch>,
    /// The voters that count, as it has announced them.
    pub voters: VoterSet,
}

/// A node that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    pub node: usize,
    pub life: u64,
    pub id: RequestId,
    /// The vote that it asked for.
    pub vote: Option<(LeaderEpoch, ReplicaKey)>,
}

/// A snapshot's `.part` file.
pub struct Part {
    pub file: Rc<SnapshotFile>,
    pub length: u64,
}

impl Node {
    pub fn id(&self) -> NodeId {
        self.key.id
    }
}

impl Process {
    pub fn new(quorum: Quorum) -> Self {
        let voters = quorum.voters().current().clone();
        Self {
            quorum,
            asked_by: BTreeMap::new(),
            next_token: 0,
            active: None,
            high_watermark: Offset(0),
            tick_at: None,
            part: None,
            leads: None,
            voters,
        }
    }

    pub fn token(&mut self, asker: Asker) -> Token {
        self.next_token += 1;
        let token = Token(self.next_token);
        self.asked_by.insert(token, asker);
        token
    }

    /// A piece was fetched: it goes on where the last ended, out of the same file.
    pub fn write_piece(&mut self, file: Rc<SnapshotFile>, position: u64, length: u64) {
        if position == 0 {
            self.part = Some(Part { file: Rc::clone(&file), length: 0 });
        }
        let part = self.part.as_mut().expect("a piece at 0 comes first");
        assert!(Rc::ptr_eq(&part.file, &file), "a snapshot is pieced together from two files");
        assert_eq!(part.length, position, "a snapshot's pieces leave a hole");
        part.length += length;
    }
}
