//! When partitions want to be woken: one task for all of them.
//!
//! Invariant: a partition stands here at most once, as long as it names its present tick whenever it plans another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env::Clock;
use model::{Instant, TopicIdPartition};
use tokio::sync::Notify;

use crate::Partition;
use crate::fetchers::Fetchers;

/// The ticks to come.
#[derive(Default)]
pub(crate) struct Ticks {
    due: Mutex<BTreeMap<(Instant, TopicIdPartition), Arc<Partition>>>,
    sooner: Notify,
}

impl Ticks {
    /// Wakes the partition at `at`, and no more at `planned`.
    pub(crate) fn plan(&self, at: Instant, planned: Option<Instant>, partition: &Arc<Partition>) {
        let mut due = self.lock();
        if let Some(planned) = planned {
            due.remove(&(planned, partition.id));
        }
        due.insert((at, partition.id), partition.clone());
        if due.first_key_value().is_some_and(|(first, _)| *first == (at, partition.id)) {
            self.sooner.notify_one();
        }
    }

    /// The partition is gone.
    pub(crate) fn forget(&self, planned: Instant, id: TopicIdPartition) {
        self.lock().remove(&(planned, id));
    }

    /// Wakes them, each in its time.
    pub(crate) async fn run(&self, clock: &dyn Clock, fetchers: &Fetchers) {
        loop {
            self.wake(clock.now(), fetchers);
            let first = self.lock().first_key_value().map(|((at, _), _)| *at);
            let tick = async {
                match first {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.sooner.notified() => {}
                () = tick => {}
            }
        }
    }

    fn wake(&self, now: Instant, fetchers: &Fetchers) {
        let _held = fetchers.hold();
        self.take(now).iter().for_each(Partition::tick);
    }

    fn take(&self, now: Instant) -> Vec<Arc<Partition>> {
        let mut due = self.lock();
        let is_due = |key: &(Instant, TopicIdPartition)| key.0 <= now;
        due.extract_if(.., |key, _| is_due(key)).map(|(_, partition)| partition).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Instant, TopicIdPartition), Arc<Partition>>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
