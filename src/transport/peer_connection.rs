//! One connection to a peer while it holds: questions leave in their order, answers come in any.
//!
//! Invariants: at most `in_flight_max` questions wait for their answers; a question that nobody waits for any more is not
//! sent; an answer that nobody asked for, or that is not one, or that does not come in time, ends the connection, and
//! with it every question that waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use env::{Chunk, Clock, FrameReader, FrameWriter, Link};
use tokio::sync::{Notify, Semaphore, mpsc};
use tracing::debug;

use crate::PeerConfig;
use crate::call::{CallError, Question};
use crate::peer_versions::PeerVersions;

type Asked = Box<dyn Question>;

pub(crate) struct PeerConnection<'a> {
    clock: &'a dyn Clock,
    config: &'a PeerConfig,
    versions: Arc<PeerVersions>,
    in_flight: Mutex<InFlight>,
    /// Places for questions.
    places: Semaphore,
    /// A question was sent, whose deadline may be the first one.
    sent: Notify,
}

#[derive(Default)]
struct InFlight {
    questions: BTreeMap<i32, Asked>,
    last_id: i32,
}

/// The peer cannot be asked any more on this connection.
struct Ended;

/// Fails a question with `error`, unless its time was over anyway.
pub(crate) fn fail(question: Asked, clock: &dyn Clock, error: CallError) {
    let is_late = question.deadline() <= clock.now();
    question.fail(if is_late { CallError::TimedOut } else { error });
}

impl<'a> PeerConnection<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, config: &'a PeerConfig, versions: Arc<PeerVersions>) -> Self {
        let places = Semaphore::new(config.in_flight_max);
        Self { clock, config, versions, in_flight: Mutex::default(), places, sent: Notify::new() }
    }

    /// Asks until the connection ends, or nobody asks any more.
    pub(crate) async fn run(&self, link: Link, first: Asked, questions: &mut mpsc::Receiver<Asked>) {
        let Link { mut reader, mut writer, peer, .. } = link;
        tokio::select! {
            biased;
            Ended = self.read(&mut *reader) => {}
            Ended = self.write(&mut *writer, first, questions) => {}
            Ended = self.expire() => debug!(%peer, "no answer in time: the connection is closed"),
        }
        let waiting = std::mem::take(&mut self.in_flight().questions);
        for question in waiting.into_values() {
            fail(question, self.clock, CallError::Closed);
        }
    }

    async fn read(&self, reader: &mut dyn FrameReader) -> Ended {
        let mut frames = Vec::new();
        while reader.recv(&mut frames).await.is_ok() {
            if !frames.drain(..).all(|frame| self.answer(frame)) {
                break;
            }
        }
        Ended
    }

    /// False where the frame is no answer to anything.
    fn answer(&self, frame: Bytes) -> bool {
        let Some(id) = frame.first_chunk().map(|id| i32::from_be_bytes(*id)) else { return false };
        let Some(question) = self.in_flight().questions.remove(&id) else { return false };
        self.places.add_permits(1);
        question.answer(frame)
    }

    async fn write(
        &self,
        writer: &mut dyn FrameWriter,
        first: Asked,
        questions: &mut mpsc::Receiver<Asked>,
    ) -> Ended {
        let mut next = Some(first);
        loop {
            let Ok(place) = self.places.acquire().await else { return Ended };
            drop(place);
            let question = match next.take() {
                Some(question) => question,
                None => match questions.recv().await {
                    Some(question) => question,
                    None => return Ended,
                },
            };
            let chunks = self.gather(question, questions);
            if !chunks.is_empty() && writer.send(chunks).await.is_err() {
                return Ended;
            }
        }
    }

    /// The frames of all questions at hand for which there is a place.
    fn gather(&self, first: Asked, questions: &mut mpsc::Receiver<Asked>) -> Vec<Chunk> {
        let mut chunks: Vec<_> = self.ask(first).into_iter().collect();
        while self.places.available_permits() > 0
            && let Ok(question) = questions.try_recv()
        {
            chunks.extend(self.ask(question));
        }
        chunks
    }

    fn ask(&self, mut question: Asked) -> Option<Chunk> {
        if question.is_abandoned() {
            return None;
        }
        let mut in_flight = self.in_flight();
        let id = in_flight.last_id.checked_add(1).unwrap_or(0);
        match question.ask(&self.versions, id, &self.config.client_id) {
            Ok(frame) => {
                in_flight.last_id = id;
                in_flight.questions.insert(id, question);
                drop(in_flight);
                // Only this task takes places, and there was one.
                self.places.forget_permits(1);
                self.sent.notify_one();
                Some(Chunk::Bytes(frame))
            }
            Err(error) => {
                fail(question, self.clock, error);
                None
            }
        }
    }

    /// Ends when an answer is too late. What comes after it might be late too: better a new connection.
    async fn expire(&self) -> Ended {
        loop {
            let first = self.in_flight().questions.values().map(|question| question.deadline()).min();
            match first {
                Some(at) if at <= self.clock.now() => return Ended,
                Some(at) => tokio::select! {
                    biased;
                    () = self.sent.notified() => {}
                    () = self.clock.sleep_until(at) => {}
                },
                None => self.sent.notified().await,
            }
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
