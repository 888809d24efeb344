//! One connection, from its first request to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use env::{Clock, FrameReader, FrameWriter, Link, RecvError};
use model::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::answers::Answers;
use crate::stranger::recognise;
use crate::{Handler, Outcome};

/// Room for so many frames is kept between two runs of requests.
const FRAMES_KEPT: usize = 64;

/// What a connection is given by the server.
pub(crate) struct Context<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) listener: Arc<str>,
    pub(crate) idle_max: Duration,
    pub(crate) stop_wait: Duration,
    pub(crate) stop: CancellationToken,
}

/// The two halves' common knowledge.
struct Connection<'a, H> {
    context: &'a Context<H>,
    peer: SocketAddr,
    answers: Answers,
    /// When something came or left the last time, as an `Instant`.
    active: AtomicU64,
    /// A handler runs.
    is_handling: AtomicBool,
}

/// Serves the connection until it ends.
pub(crate) async fn serve<H: Handler>(context: &Context<H>, link: Link) {
    let Link { peer, mut reader, mut writer, .. } = link;
    let connection = Connection {
        context,
        peer,
        answers: Answers::default(),
        active: AtomicU64::new(context.clock.now().0),
        is_handling: AtomicBool::new(false),
    };
    let mut session = context.handler.session(&context.listener, peer);
    tokio::select! {
        biased;
        () = connection.run(&mut session, &mut *reader, &mut *writer) => {}
        () = connection.idle() => debug!(%peer, "connection closed: idle"),
        () = connection.stopped() => debug!(%peer, "connection closed: the node stops"),
    }
    // The peer is to know at once, whatever its end means here.
    drop((reader, writer));
    tokio::select! {
        biased;
        () = context.stop.cancelled() => {}
        () = context.handler.closed(session) => {}
    }
}

/// The connection is of no use any more.
struct Broken;

impl<H: Handler> Connection<'_, H> {
    /// Runs requests first, then sends what they gave: all answers at hand leave together.
    async fn run(
        &self,
        session: &mut H::Session,
        reader: &mut dyn FrameReader,
        writer: &mut dyn FrameWriter,
    ) {
        let _ended = tokio::try_join!(biased; self.run_requests(session, reader), self.send_answers(writer));
    }

    async fn run_requests(
        &self,
        session: &mut H::Session,
        reader: &mut dyn FrameReader,
    ) -> Result<(), Broken> {
        let mut frames = Vec::new();
        let result = loop {
            match self.receive(reader, &mut frames).await {
                Ok(()) => {}
                Err(result) => break result,
            }
            if !self.handle_all(session, &mut frames).await {
                break Ok(());
            }
        };
        self.answers.finish();
        result
    }

    /// Requests, or how the connection ends.
    async fn receive(
        &self,
        reader: &mut dyn FrameReader,
        frames: &mut Vec<Bytes>,
    ) -> Result<(), Result<(), Broken>> {
        let result = tokio::select! {
            biased;
            () = self.context.stop.cancelled() => return Err(Ok(())),
            result = reader.recv(frames) => result,
        };
        self.touch();
        result.map_err(|error| self.end_of(error))
    }

    /// A peer that has said its last word still gets its answers; a broken or foreign one gets nothing.
    fn end_of(&self, error: RecvError) -> Result<(), Broken> {
        match error {
            RecvError::Closed => return Ok(()),
            RecvError::Io(error) => debug!(peer = %self.peer, %error, "connection broken"),
            RecvError::GivenUp(reason) => {
                info!(peer = %self.peer, listener = %self.context.listener, reason, "connection closed inside a request");
            }
            RecvError::Length { length, head } => match recognise(head) {
                Some(what) => info!(peer = %self.peer, listener = %self.context.listener, "{what}"),
                None => {
                    info!(peer = %self.peer, length, "connection closed: the frame is over socket.request.max.bytes");
                }
            },
        }
        Err(Broken)
    }

    /// Handles the requests in their order; false where no more may follow.
    async fn handle_all(&self, session: &mut H::Session, frames: &mut Vec<Bytes>) -> bool {
        for frame in frames.drain(..) {
            std::future::poll_fn(|cx| self.answers.poll_room(cx)).await;
            if self.context.stop.is_cancelled() {
                return false;
            }
            self.is_handling.store(true, Ordering::Relaxed);
            let outcome = self.context.handler.handle(session, frame).await;
            self.is_handling.store(false, Ordering::Relaxed);
            match outcome {
                Outcome::Now(chunks) => self.answers.push_now(chunks),
                Outcome::Later(chunks) => self.answers.push_later(chunks),
                Outcome::Nothing => {}
                Outcome::Close(reason) => {
                    debug!(peer = %self.peer, %reason, "connection closed");
                    return false;
                }
            }
        }
        frames.shrink_to(FRAMES_KEPT);
        true
    }

    /// Sends answers until all are sent. An error ends the requests too.
    async fn send_answers(&self, writer: &mut dyn FrameWriter) -> Result<(), Broken> {
        loop {
            let batch = match std::future::poll_fn(|cx| self.answers.poll_batch(cx)).await {
                Ok(Some(batch)) => batch,
                Ok(None) => return Ok(()),
                Err(reason) => {
                    debug!(peer = %self.peer, %reason, "connection closed");
                    return Err(Broken);
                }
            };
            let bytes = batch.bytes();
            if let Err(error) = writer.send(batch.chunks).await {
                debug!(peer = %self.peer, %error, "connection broken");
                return Err(Broken);
            }
            self.answers.sent(bytes);
            self.touch();
        }
    }

    fn touch(&self) {
        self.active.store(self.context.clock.now().0, Ordering::Relaxed);
    }

    /// Ends when nothing came or left for long, though it could have: a request that runs is not idle, a peer that does not
    /// read its answers is.
    async fn idle(&self) {
        loop {
            let active = Instant(self.active.load(Ordering::Relaxed));
            self.context.clock.sleep_until(active.plus(self.context.idle_max)).await;
            if self.is_handling.load(Ordering::Relaxed) || self.answers.is_waited_for() {
                self.touch();
            }
            let active = Instant(self.active.load(Ordering::Relaxed));
            if self.context.clock.now().since(active) >= self.context.idle_max {
                return;
            }
        }
    }

    /// Ends when what had started had its time to finish after a stop.
    async fn stopped(&self) {
        self.context.stop.cancelled().await;
        self.context.clock.sleep(self.context.stop_wait).await;
    }
}
