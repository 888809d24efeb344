//! A node's tasks, blocking work and flushes: all on the world's one thread, all taking virtual time.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::{BoxFuture, Exec, File};
use tokio::sync::oneshot;

use crate::executor::{Executor, Kind, NodeKey, Sleep, lock};

/// How often a job asks whether the disk still hangs.
const HUNG_WAIT: Duration = Duration::from_millis(10);
/// How often a node that ends asks whether its tasks have ended.
const CLOSE_WAIT: Duration = Duration::from_millis(1);

/// How the node's device behaves; shared by the node's lives.
pub(crate) struct Device {
    pub(crate) latency: Range<Duration>,
    pub(crate) is_hung: bool,
}

/// Runs the work of one life of a node: when that is over, nothing starts any more.
#[derive(Clone)]
pub(crate) struct SimExec {
    pub(crate) executor: Arc<Executor>,
    pub(crate) node: NodeKey,
    pub(crate) life: u64,
    pub(crate) lives: Arc<Mutex<u64>>,
    pub(crate) device: Arc<Mutex<Device>>,
}

impl SimExec {
    /// The time that one operation of the device takes.
    async fn device_time(&self) {
        loop {
            let latency = lock(&self.device).latency.clone();
            Sleep::new(&self.executor, self.node, self.executor.some_time(&latency)).await;
            if !lock(&self.device).is_hung {
                return;
            }
            Sleep::new(&self.executor, self.node, HUNG_WAIT.as_nanos() as u64).await;
        }
    }

    /// Starts `work`, whether or not its result is waited for.
    fn start<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let (done, result) = oneshot::channel();
        let work = async move {
            // Nobody may wait any more.
            let _unheard = done.send(work.await);
        };
        self.spawn(name, Box::pin(work));
        Box::pin(async move {
            match result.await {
                Ok(value) => value,
                // The node died, and this task is about to.
                Err(_) => std::future::pending().await,
            }
        })
    }
}

impl Exec for SimExec {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        if *lock(&self.lives) == self.life {
            self.executor.history.add("spawn", &[u64::from(self.node)], name.as_bytes());
            self.executor.spawn(self.node, Kind::Started, task);
        }
    }

    fn panicked(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let this = self.clone();
        self.start("blocking", async move {
            this.device_time().await;
            job();
        })
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, usize> {
        let end = self.executor.now() + patience.as_nanos() as u64;
        Box::pin(async move {
            while self.executor.tasks_started(self.node) > 0 && self.executor.now() < end {
                Sleep::new(&self.executor, self.node, CLOSE_WAIT.as_nanos() as u64).await;
            }
            self.executor.drop_tasks(self.node, |kind| kind == Kind::Started)
        })
    }

    fn flush(&self, files: Vec<Arc<dyn File>>) -> BoxFuture<'static, io::Result<()>> {
        let this = self.clone();
        self.start("flush", async move {
            for file in files {
                this.device_time().await;
                file.sync()?;
            }
            Ok(())
        })
    }
}
