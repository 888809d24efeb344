//! The answers of one connection that are not sent yet, in the order of their requests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use env::{BoxFuture, Chunk};
use model::Limits;

use crate::Reason;

/// Requests are handled in runs of at most so many before their answers leave.
const ANSWERS_MAX: usize = 64;

/// Filled by the half that runs requests, emptied by the half that sends, both of one task.
#[derive(Default)]
pub(crate) struct Answers(Mutex<State>);

#[derive(Default)]
struct State {
    queue: VecDeque<Answer>,
    /// How many of the queue have yet to come.
    later: usize,
    /// In memory: in the queue, and taken but not sent.
    bytes: usize,
    /// The answer that would leave next cannot: nothing more is sent.
    failed: Option<Reason>,
    /// No more are pushed.
    is_finished: bool,
    /// A batch was taken and has not left.
    is_sending: bool,
    room: Option<Waker>,
    more: Option<Waker>,
}

enum Answer {
    Now(Vec<Chunk>),
    Later(BoxFuture<'static, Result<Vec<Chunk>, Reason>>),
}

/// Answers that leave together.
pub(crate) struct Batch {
    pub(crate) chunks: Vec<Chunk>,
    bytes: usize,
}

impl Answers {
    /// Ready when one more request may start.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        let has_room = state.queue.len() < ANSWERS_MAX
            && state.later < Limits::REQUESTS_LATER_MAX
            && state.bytes < Limits::CONNECTION_QUEUE_BYTES;
        if has_room {
            return Poll::Ready(());
        }
        state.room = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(crate) fn push_now(&self, chunks: Vec<Chunk>) {
        let mut state = self.state();
        state.bytes += bytes_of(&chunks);
        state.push(Answer::Now(chunks));
    }

    pub(crate) fn push_later(&self, answer: BoxFuture<'static, Result<Vec<Chunk>, Reason>>) {
        let mut state = self.state();
        state.later += 1;
        state.push(Answer::Later(answer));
    }

    /// No more answers follow.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        state.is_finished = true;
        state.more.take().into_iter().for_each(Waker::wake);
    }

    /// Whether the answer that leaves next has yet to come, and nothing else is being sent.
    pub(crate) fn is_waited_for(&self) -> bool {
        let state = self.state();
        !state.is_sending && matches!(state.queue.front(), Some(Answer::Later(_)))
    }

    /// All that is ready at the head; `None` when everything was sent and no more follows.
    ///
    /// # Errors
    /// The next answer cannot be said: without it those behind it would be out of step.
    pub(crate) fn poll_batch(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Batch>, Reason>> {
        let mut batch = Batch { chunks: Vec::new(), bytes: 0 };
        while let Poll::Ready(Some(chunks)) = self.poll_head(cx) {
            batch.bytes += bytes_of(&chunks);
            batch.chunks.extend(chunks);
        }
        if !batch.chunks.is_empty() {
            self.state().is_sending = true;
            return Poll::Ready(Ok(Some(batch)));
        }
        let mut state = self.state();
        if let Some(reason) = state.failed.take() {
            return Poll::Ready(Err(reason));
        }
        if state.is_finished && state.queue.is_empty() {
            return Poll::Ready(Ok(None));
        }
        state.more = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The batch has left.
    pub(crate) fn sent(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes -= bytes;
        state.is_sending = false;
        state.wake_room();
    }

    /// The first answer, if it is there. Its future is polled outside the lock.
    fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Option<Vec<Chunk>>> {
        let head = self.state().pop();
        match head {
            None => Poll::Ready(None),
            Some(Answer::Now(chunks)) => {
                self.state().wake_room();
                Poll::Ready(Some(chunks))
            }
            Some(Answer::Later(mut later)) => {
                let result = later.as_mut().poll(cx);
                let mut state = self.state();
                let Poll::Ready(answer) = result else {
                    state.queue.push_front(Answer::Later(later));
                    return Poll::Pending;
                };
                state.later -= 1;
                Poll::Ready(state.take(answer))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, answer: Answer) {
        self.queue.push_back(answer);
        self.more.take().into_iter().for_each(Waker::wake);
    }

    fn pop(&mut self) -> Option<Answer> {
        if self.failed.is_some() { None } else { self.queue.pop_front() }
    }

    /// The chunks of an answer that has come.
    fn take(&mut self, answer: Result<Vec<Chunk>, Reason>) -> Option<Vec<Chunk>> {
        match answer {
            Ok(chunks) => {
                self.bytes += bytes_of(&chunks);
                self.wake_room();
                Some(chunks)
            }
            Err(reason) => {
                self.failed = Some(reason);
                None
            }
        }
    }

    fn wake_room(&mut self) {
        self.room.take().into_iter().for_each(Waker::wake);
    }
}

impl Batch {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What the chunks hold in memory: the bytes of a file stay where they are.
fn bytes_of(chunks: &[Chunk]) -> usize {
    let bytes = |chunk: &Chunk| match chunk {
        Chunk::Bytes(bytes) => bytes.len(),
        Chunk::File(_) => 0,
    };
    chunks.iter().map(bytes).sum()
}
