//! Work that may block, and its result.

use env::Exec;
use tokio::sync::oneshot;

/// Runs `work` where it may block. `None` where the node ends before it has run.
pub(crate) async fn blocking<T: Send + 'static>(
    exec: &dyn Exec,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (give, take) = oneshot::channel();
    exec.blocking(Box::new(move || {
        // Nobody takes the result of a node that is ending.
        let _ = give.send(work());
    }))
    .await;
    take.await.ok()
}
