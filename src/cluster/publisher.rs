//! The task that makes committed metadata true on this node, so that the quorum never waits for files.
//!
//! The driver hands over what is committed, and goes on. Here it is applied to the node's partitions and then to its
//! shards; then the image is published to readers; then those hear of it who wait for a decision in it. What is handed over
//! meanwhile becomes one change.
//!
//! Invariants: images are published in the order of their ends; who waited for a decision finds it done, so a partition
//! can be written to as soon as its creation is answered; at most one image and one delta wait here.
//!
//! Kafka: `MetadataLoader`, `BrokerMetadataPublisher`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metadata::{Delta, Image};
use replication::Replication;
use shards::Shards;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::cluster::Shared;

/// How a decision is answered.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

/// The driver's way to the publisher.
#[derive(Default)]
pub(crate) struct Publisher {
    handed: Mutex<Handed>,
    news: Notify,
}

/// What waits to be published.
#[derive(Default)]
struct Handed {
    change: Option<(Image, Delta)>,
    answers: Vec<Answer>,
}

impl Publisher {
    /// Hands over a newer image, and what changed since the one before.
    pub(crate) fn publish(&self, image: Image, delta: Delta) {
        let mut handed = self.lock();
        let delta = match handed.change.take() {
            Some((_, before)) => before.merged(delta),
            None => delta,
        };
        handed.change = Some((image, delta));
        self.news.notify_one();
    }

    /// Answers when all that was handed over before is published.
    pub(crate) fn answer(&self, answer: Answer) {
        self.lock().answers.push(answer);
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Handed> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Handed {
        std::mem::take(&mut *self.lock())
    }
}

/// The publisher's task.
pub(crate) struct Publishing {
    pub(crate) publisher: Arc<Publisher>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) replication: Arc<Replication>,
    pub(crate) shards: Arc<Shards>,
    pub(crate) partitions_are_open: bool,
}

impl Publishing {
    /// Runs until the node closes; opens this node's partitions when it is asked to, and from then on they follow the
    /// metadata. What has begun is done; what still waits at the end is found in the log at the next start.
    pub(crate) async fn run(
        mut self,
        mut open: mpsc::Receiver<oneshot::Sender<()>>,
        closing: CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return,
                () = self.publisher.news.notified() => self.publish().await,
                Some(opened) = open.recv() => self.open(opened).await,
            }
        }
    }

    async fn publish(&mut self) {
        let handed = self.publisher.take();
        if let Some((image, delta)) = handed.change {
            self.apply(&image, &delta).await;
            let end = image.end();
            self.shared.image.store(Arc::new(image));
            self.shared.applied.send_replace(end);
        }
        handed.answers.into_iter().for_each(|answer| answer());
    }

    async fn apply(&self, image: &Image, delta: &Delta) {
        if self.partitions_are_open {
            self.replication.apply(image, delta).await;
            self.shards.apply(image, delta).await;
        }
    }

    async fn open(&mut self, opened: oneshot::Sender<()>) {
        let image = self.shared.image.load_full();
        self.partitions_are_open = true;
        self.replication.apply_all(&image).await;
        self.shards.apply(&image, &Delta::default()).await;
        // Who asked may have gone away.
        let _ = opened.send(());
    }
}
