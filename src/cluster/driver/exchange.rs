//! What the driver does with peers: sending the core's questions, handing in what is answered, and answering theirs.
//!
//! Bytes of records and snapshots pass through here and nowhere else; the core knows only their shape.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use metadata::{Delta, Image};
use model::Offset;
use protocol::batch;
use quorum::{FetchResponse, Peer, Request, RequestId, Response, SnapshotId, Token};
use storage::{Log, Origin};
use tokio::sync::oneshot;
use tracing::info;

use super::Driver;
use crate::FatalError;
use crate::metadata_log::{self, with_space};
use crate::peers::Answered;
use crate::snapshot;
use crate::wire::{Answer, Asked};

impl Driver {
    pub(super) fn send(&mut self, to: Peer, id: RequestId, request: Request) {
        if let Err(id) = self.peers.send(to, id, request) {
            self.quorum.handle_failure(self.env.clock.now(), id);
        }
    }

    /// One of this node's questions was answered, or will not be.
    pub(super) async fn answered(&mut self, answered: Answered) -> Result<(), FatalError> {
        let now = self.env.clock.now();
        match answered.answer {
            Ok(answer) => {
                self.received = answer.bytes;
                self.quorum.handle_response(now, answered.id, answer.response);
                self.settle().await?;
                self.received = Bytes::new();
            }
            Err(_) => self.quorum.handle_failure(now, answered.id),
        }
        Ok(())
    }

    /// A peer asks.
    pub(super) fn asked(&mut self, asked: Asked, give: oneshot::Sender<Answer>) {
        if let Some(leader) = asked.leader {
            self.peers.learn_leader(leader);
        }
        let token = self.questions.ask(asked.bytes_max, give);
        self.quorum.handle_request(self.env.clock.now(), token, asked.request);
    }

    pub(super) fn respond(&mut self, token: Token, response: Response) -> Result<(), FatalError> {
        let bytes = match &response {
            Response::FetchSnapshot(piece) if piece.error.is_none() => {
                self.read_piece(piece.id, piece.position, piece.length)?
            }
            _ => Bytes::new(),
        };
        self.give(token, response, bytes);
        Ok(())
    }

    pub(super) fn respond_records(
        &mut self,
        token: Token,
        response: FetchResponse,
        offsets: Range<Offset>,
    ) -> Result<(), FatalError> {
        let bytes_max = self.questions.bytes_max(token);
        let bytes = metadata_log::read_bytes(&self.log, offsets, bytes_max)?;
        self.give(token, Response::Fetch(response), bytes);
        Ok(())
    }

    fn give(&mut self, token: Token, response: Response, bytes: Bytes) {
        let leader = response.current().leader.and_then(|leader| self.peers.address(leader));
        self.questions.answer(token, Answer { response, bytes, leader });
    }

    /// Appends the first `count` batches of what was received.
    pub(super) async fn append_fetched(&mut self, count: usize) -> Result<(), FatalError> {
        let batches = batch::batches(&self.received).take(count);
        let length = batches.map(|batch| batch.map_or(0, |batch| batch.bytes.len())).sum::<usize>();
        let fetched = self.received.slice(..length);
        let (clock, now) = (&*self.env.clock, self.env.clock.wall());
        let append = |log: &mut Log| Ok(log.append_as_follower(&fetched, Origin::Raft, now).map(|_| ())?);
        with_space(clock, &mut self.log, append).await
    }

    fn read_piece(&self, id: SnapshotId, position: u64, length: u32) -> Result<Bytes, FatalError> {
        snapshot::read_piece(self.env.disk.as_ref(), &self.folder, id, position, length as usize)
            .map_err(|cause| self.io(cause))
    }

    pub(super) fn write_piece(&mut self, id: SnapshotId, position: u64) -> Result<(), FatalError> {
        snapshot::write_piece(self.env.disk.as_ref(), &self.folder, id, position, &self.received)
            .map_err(|cause| self.io(cause))
    }

    /// The snapshot that was fetched takes the place of the log, and of everything that was applied.
    pub(super) fn install_snapshot(&mut self, id: SnapshotId) -> Result<(), FatalError> {
        let disk = self.env.disk.clone();
        let size = snapshot::finish(disk.as_ref(), &self.folder, id).map_err(|cause| self.io(cause))?;
        let bytes = snapshot::read(disk.as_ref(), &self.folder, id).map_err(|cause| self.io(cause))?;
        let found = snapshot::decode(&bytes).map_err(FatalError::Apply)?;
        self.log.truncate_fully_and_start_at(id.end, self.env.clock.wall())?;
        let (image, delta) = Image::default()
            .apply(&found.records, id.end)
            .map_err(|error| FatalError::Apply(error.to_string()))?;
        let delta = since(&self.committed, &image, delta);
        info!(end = %id.end, epoch = %id.epoch, bytes = size, "a metadata snapshot was fetched");
        self.publisher.publish(image.clone(), delta);
        (self.committed, self.kraft_version) = (image, found.kraft_version);
        self.bytes_since_snapshot = 0;
        self.quorum.handle_snapshot_installed(self.env.clock.now(), id, size, found.voters);
        self.remove_old_snapshots()
    }

    fn io(&self, cause: io::Error) -> FatalError {
        FatalError::Io { path: self.folder.clone(), cause }
    }
}

/// What changed where `delta` says how the new image came to be out of nothing.
fn since(old: &Image, new: &Image, mut delta: Delta) -> Delta {
    delta.topics_created.retain(|id| old.topics.by_id(*id).is_none());
    let gone = old.topics.iter().filter(|topic| new.topics.by_id(topic.id).is_none());
    delta.topics_deleted = gone.cloned().collect();
    delta.brokers_changed.extend(old.brokers.iter().map(|broker| broker.id));
    delta
}
