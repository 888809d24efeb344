//! Tasks on a tokio runtime, blocking work and flushes on its blocking threads.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use env::{BoxFuture, Exec, File};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, error};

/// Runs a node's work on a runtime.
#[derive(Clone)]
pub struct HostExec {
    handle: Handle,
    tasks: TaskTracker,
    stop: CancellationToken,
    panicked: CancellationToken,
    flushes: Arc<Semaphore>,
}

/// Stands in a task, and tells if it panics.
struct Telling {
    name: &'static str,
    panicked: CancellationToken,
}

impl Drop for Telling {
    fn drop(&mut self) {
        if std::thread::panicking() {
            error!(task = self.name, "a task panicked");
            self.panicked.cancel();
        }
    }
}

impl HostExec {
    /// `flushes_at_once`: as many files are synced at a time, each on a thread (`Limits::FLUSHES_AT_ONCE` a log folder).
    pub fn new(handle: Handle, flushes_at_once: usize) -> Self {
        let flushes = Arc::new(Semaphore::new(flushes_at_once));
        let (stop, panicked) = (CancellationToken::new(), CancellationToken::new());
        Self { handle, tasks: TaskTracker::new(), stop, panicked, flushes }
    }
}

impl Exec for HostExec {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        let telling = Telling { name, panicked: self.panicked.clone() };
        let task = async move {
            let _telling = telling;
            task.await;
        };
        self.spawn_apart(name, Box::pin(task));
    }

    fn spawn_apart(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        let stop = self.stop.clone();
        let task = async move {
            stop.run_until_cancelled(task).await;
        };
        self.tasks.spawn_on(task.instrument(tracing::debug_span!("task", name)), &self.handle);
    }

    fn panicked(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.panicked.cancelled())
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let running = self.tasks.spawn_blocking_on(job, &self.handle);
        Box::pin(async move { finished(running.await).unwrap_or(()) })
    }

    fn flush(&self, files: Vec<Arc<dyn File>>) -> BoxFuture<'static, io::Result<()>> {
        let this = self.clone();
        Box::pin(async move {
            let _turn = this.flushes.acquire().await.map_err(io::Error::other)?;
            let sync = move || files.iter().try_for_each(|file| file.sync());
            let running = this.tasks.spawn_blocking_on(sync, &this.handle);
            finished(running.await)
                .unwrap_or_else(|| Err(io::Error::other("the runtime ended before the flush")))
        })
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            self.tasks.close();
            let mut disorderly = 0;
            if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
                disorderly = self.tasks.len();
                self.stop.cancel();
                self.tasks.wait().await;
            }
            disorderly + usize::from(self.panicked.is_cancelled())
        })
    }
}

/// A job's result; its panic goes on here. `None` where the runtime ended before it ran.
fn finished<T>(result: Result<T, JoinError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_cancelled) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use env::{Disk, Open};

    use super::*;
    use crate::HostDisk;

    fn exec() -> HostExec {
        HostExec::new(Handle::current(), 2)
    }

    #[tokio::test]
    async fn close_waits_for_tasks_to_end() {
        let exec = exec();
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        exec.spawn(
            "test",
            Box::pin(async move {
                tokio::task::yield_now().await;
                end.store(true, Ordering::SeqCst);
            }),
        );
        assert_eq!(exec.close(Duration::from_secs(5)).await, 0);
        assert!(ended.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn close_drops_tasks_that_never_end() {
        let exec = exec();
        exec.spawn("test", Box::pin(std::future::pending()));
        assert_eq!(exec.close(Duration::from_millis(1)).await, 1);
    }

    fn panics() -> BoxFuture<'static, ()> {
        Box::pin(async { panic!("in the task") })
    }

    #[tokio::test]
    async fn a_task_that_panics_puts_the_node_in_doubt() {
        let exec = exec();
        exec.spawn("test", panics());
        exec.panicked().await;
        assert_eq!(exec.close(Duration::from_secs(5)).await, 1);
    }

    #[tokio::test]
    async fn a_task_apart_that_panics_concerns_nobody_else() {
        let exec = exec();
        exec.spawn_apart("test", panics());
        assert_eq!(exec.close(Duration::from_secs(5)).await, 0);
        assert!(tokio::time::timeout(Duration::ZERO, exec.panicked()).await.is_err());
    }

    #[tokio::test]
    async fn blocking_gives_its_value_back() {
        assert_eq!(env::blocking(&exec(), || 6 * 7).await, 42);
    }

    #[tokio::test]
    #[should_panic(expected = "in the job")]
    async fn a_panic_in_a_blocking_job_reaches_who_waits() {
        env::blocking(&exec(), || panic!("in the job")).await;
    }

    struct Counting {
        now: AtomicUsize,
        most: AtomicUsize,
        turn: std::sync::Barrier,
    }

    impl File for Counting {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }
        fn try_read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }
        fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }
        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            self.turn.wait();
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    }

    #[tokio::test]
    async fn no_more_flushes_run_at_once_than_allowed() {
        let exec = exec();
        let turn = std::sync::Barrier::new(2);
        let file = Arc::new(Counting { now: AtomicUsize::new(0), most: AtomicUsize::new(0), turn });
        let flush = || exec.flush(vec![Arc::clone(&file) as Arc<dyn File>]);
        let (a, b, c, d) = tokio::join!(flush(), flush(), flush(), flush());
        assert!(a.is_ok() && b.is_ok() && c.is_ok() && d.is_ok());
        assert_eq!(file.most.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_real_file_is_flushed() {
        let folder = tempfile::tempdir().unwrap();
        let file = HostDisk.open(Path::new(&folder.path().join("a")), Open::Create).unwrap();
        file.write_at(&[IoSlice::new(b"x")], 0).unwrap();
        exec().flush(vec![file]).await.unwrap();
    }
}
