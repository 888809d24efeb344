//! What the driver does with peers: sending the core's questions, handing in what is answered, and answering theirs.
//!
//! Bytes of records and snapshots pass through here and nowhere else; the core knows only their shape.

use std::io;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use metadata::{Delta, Image};
use model::Offset;
use protocol::batch;
use quorum::{FetchResponse, Peer, Request, RequestId, Response, SnapshotId, Token};
use storage::Log;
use tokio::sync::oneshot;
use tracing::info;

use super::Driver;
use crate::FatalError;
use crate::metadata_log::{self, patiently};
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
        let (now, unreachable) = (self.env.clock.now(), answered.unreachable());
        match answered.answer {
            Ok(answer) => {
                self.received = answer.bytes;
                self.quorum.handle_response(now, answered.id, answer.response);
                self.settle().await?;
                self.received = Bytes::new();
            }
            Err(_) => self.quorum.handle_failure(now, answered.id),
        }
        if let Some(node) = unreachable {
            self.quorum.handle_unreachable(now, node);
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

    pub(super) async fn respond(&mut self, token: Token, response: Response) -> Result<(), FatalError> {
        let bytes = match &response {
            Response::FetchSnapshot(piece) if piece.error.is_none() => {
                self.read_piece(piece.id, piece.position, piece.length).await?
            }
            _ => Bytes::new(),
        };
        self.give(token, response, bytes);
        Ok(())
    }

    pub(super) async fn respond_records(
        &mut self,
        token: Token,
        response: FetchResponse,
        offsets: Range<Offset>,
    ) -> Result<(), FatalError> {
        let bytes_max = self.questions.bytes_max(token);
        let read = |log: &mut Log| metadata_log::read_bytes(log, offsets.clone(), bytes_max);
        let bytes = patiently(&*self.env.clock, &mut self.log, read).await?;
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
        let append = |log: &mut Log| metadata_log::append_fetched(log, &fetched, now);
        patiently(clock, &mut self.log, append).await
    }

    async fn read_piece(&mut self, id: SnapshotId, position: u64, length: u32) -> Result<Bytes, FatalError> {
        let (disk, folder) = (&*self.env.disk, &self.folder);
        let read = |_: &mut Log| {
            snapshot::read_piece(disk, folder, id, position, length as usize)
                .map_err(|cause| io(folder, cause))
        };
        patiently(&*self.env.clock, &mut self.log, read).await
    }

    pub(super) async fn write_piece(&mut self, id: SnapshotId, position: u64) -> Result<(), FatalError> {
        let (disk, folder, piece) = (&*self.env.disk, &self.folder, &self.received);
        let write = |_: &mut Log| {
            snapshot::write_piece(disk, folder, id, position, piece).map_err(|cause| io(folder, cause))
        };
        patiently(&*self.env.clock, &mut self.log, write).await
    }

    /// The snapshot that was fetched takes the place of the log, and of everything that was applied.
    pub(super) async fn install_snapshot(&mut self, id: SnapshotId) -> Result<(), FatalError> {
        let (disk, folder, now) = (&*self.env.disk, &self.folder, self.env.clock.wall());
        let install = |log: &mut Log| {
            let size = snapshot::finish(disk, folder, id).map_err(|cause| io(folder, cause))?;
            let bytes = snapshot::read(disk, folder, id).map_err(|cause| io(folder, cause))?;
            let found = snapshot::decode(&bytes).map_err(FatalError::Apply)?;
            log.truncate_fully_and_start_at(id.end, now)?;
            Ok((size, found))
        };
        let (size, found) = patiently(&*self.env.clock, &mut self.log, install).await?;
        let (image, delta) = Image::default()
            .apply(&found.records, id.end)
            .map_err(|error| FatalError::Apply(error.to_string()))?;
        let delta = since(&self.committed, &image, delta);
        info!(end = %id.end, epoch = %id.epoch, bytes = size, "a metadata snapshot was fetched");
        self.publisher.publish(image.clone(), delta);
        self.committed = image;
        self.learn_kraft_version(Some(found.kraft_version));
        self.bytes_since_snapshot = 0;
        self.quorum.handle_snapshot_installed(self.env.clock.now(), id, size, found.voters);
        self.remove_old_snapshots()
    }
}

fn io(folder: &Path, cause: io::Error) -> FatalError {
    FatalError::Io { path: folder.to_owned(), cause }
}

/// What changed where `delta` says how the new image came to be out of nothing.
fn since(old: &Image, new: &Image, mut delta: Delta) -> Delta {
    delta.topics_created.retain(|id| old.topics.by_id(*id).is_none());
    let gone = old.topics.iter().filter(|topic| new.topics.by_id(topic.id).is_none());
    delta.topics_deleted = gone.cloned().collect();
    delta.brokers_changed.extend(old.brokers.iter().map(|broker| broker.id));
    delta
}
