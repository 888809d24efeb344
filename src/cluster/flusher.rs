//! The metadata log's flushes: one in flight, and at most one more that waits for it.

use std::io;
use std::time::Duration;

use env::{BoxFuture, Env, is_too_many_files};
use model::Offset;
use storage::{FlushJob, Log};

/// What a flush was asked for: the log's end and its truncation count at that time.
type Asked = (Offset, u64);

/// A flush in flight: its job, where there was something to do, and what became of it.
type Flush = BoxFuture<'static, (Option<FlushJob>, io::Result<()>)>;

/// How long a flush that found too many open files waits for some to be closed.
const HINDERED_PAUSE: Duration = Duration::from_millis(500);

/// One flush at a time.
#[derive(Default)]
pub(crate) struct Flusher {
    running: Option<(Asked, Flush)>,
    next: Option<Asked>,
}

impl Flusher {
    /// Starts a flush, or remembers that one more has to follow.
    pub(crate) fn ask(&mut self, env: &Env, log: &mut Log, asked: Asked) {
        if self.running.is_some() {
            self.next = Some(asked);
            return;
        }
        let job = log.flush_job();
        let (exec, clock) = (env.exec.clone(), env.clock.clone());
        self.running = Some((
            asked,
            Box::pin(async move {
                let files = job.as_ref().map(|job| job.files.clone()).unwrap_or_default();
                let mut result = exec.flush(files.clone()).await;
                while result.as_ref().is_err_and(is_too_many_files) {
                    clock.sleep(HINDERED_PAUSE).await;
                    result = exec.flush(files.clone()).await;
                }
                (job, result)
            }),
        ));
    }

    /// The flush in flight, when it is done; never where there is none.
    pub(crate) async fn done(&mut self) -> (Asked, Option<FlushJob>, io::Result<()>) {
        let Some((asked, flush)) = &mut self.running else { return std::future::pending().await };
        let (job, result) = flush.await;
        let asked = *asked;
        self.running = None;
        (asked, job, result)
    }

    /// Ends with the flush in flight. Its job, where there was something to do, and what became of it.
    pub(crate) async fn end(&mut self) -> Option<(FlushJob, io::Result<()>)> {
        self.next = None;
        let (_, flush) = self.running.take()?;
        let (job, result) = flush.await;
        Some((job?, result))
    }

    /// The flush that was asked for meanwhile.
    pub(crate) fn take_next(&mut self) -> Option<Asked> {
        self.next.take()
    }
}
