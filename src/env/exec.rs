//! Tasks, blocking work and flushes.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{BoxFuture, File};

/// Runs a node's work. Everything started here is tracked, and ends with the node.
pub trait Exec: Send + Sync {
    /// Starts a task. `name` is for logs and traces.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);

    /// Starts a task whose panic concerns nobody else: that of a connection.
    fn spawn_apart(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.spawn(name, task);
    }

    /// Ends when a task has panicked that was not apart: nobody does what it was there for, so the node must end. In the
    /// simulator a panic ends the world.
    fn panicked(&self) -> BoxFuture<'_, ()>;

    /// Runs `job` where it may block; the answer comes when it has run. In the simulator it takes virtual time.
    fn blocking(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;

    /// Makes all that was written to `files` before this call durable (fdatasync of each, in order).
    ///
    /// # Errors
    /// The first failure. It must not be tried again, unless it [`crate::is_too_many_files`]: the data may be gone.
    fn flush(&self, files: Vec<Arc<dyn File>>) -> BoxFuture<'static, io::Result<()>>;

    /// Waits until everything has ended, for as long as `patience`; then drops what has not. How many tasks did not end in
    /// order: those, and one more if any panicked that was not apart. Who calls it is not one of them.
    fn close(&self, patience: Duration) -> BoxFuture<'_, usize>;
}

/// What `job` gives, run where it may block.
pub async fn blocking<T: Send + 'static>(exec: &dyn Exec, job: impl FnOnce() -> T + Send + 'static) -> T {
    match try_blocking(exec, job).await {
        Some(value) => value,
        // The node is ending, and this task with it.
        None => std::future::pending().await,
    }
}

/// As [`blocking`]; `None` where the node ends before the job has run.
pub async fn try_blocking<T: Send + 'static>(
    exec: &dyn Exec,
    job: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let result = Arc::new(Mutex::new(None));
    let put = Arc::clone(&result);
    exec.blocking(Box::new(move || *put.lock().unwrap_or_else(PoisonError::into_inner) = Some(job()))).await;
    result.lock().unwrap_or_else(PoisonError::into_inner).take()
}
