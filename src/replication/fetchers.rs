//! Who asks the leaders of the partitions that this node follows: one fetcher for each (leader, log folder, durable or not).
//!
//! What a fetcher was answered is flushed before it asks again, so partitions share one only where they share a disk, and
//! not with those that need no flush.
//!
//! Kafka: `ReplicaFetcherManager`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env::Env;
use metadata::Image;
use model::{BrokerEpoch, NodeId, Offset};
use replica::{LogView, Replica};
use tokio_util::sync::CancellationToken;

use crate::fetcher::{self, Fetcher};
use crate::wire::{FetchConfig, Follower};

/// How partitions are replicated.
#[derive(Clone, Debug, Default)]
pub struct ReplicasConfig {
    /// What the machine of each replica is told.
    pub machine: replica::Config,
    /// `inter.broker.listener.name`: where leaders are reached.
    pub listener: String,
    /// How they are asked.
    pub fetch: FetchConfig,
}

/// A leader, a log folder, and whether the topics are durable.
pub(crate) type FetcherKey = (NodeId, usize, bool);

/// All fetchers of a node. A fetcher that has nothing to ask waits: there are no more than brokers allow.
pub(crate) struct Fetchers {
    pub(crate) env: Env,
    node_id: NodeId,
    pub(crate) config: ReplicasConfig,
    closing: CancellationToken,
    broker_epoch: AtomicI64,
    addresses: Mutex<BTreeMap<NodeId, String>>,
    by_key: Mutex<BTreeMap<FetcherKey, Arc<Fetcher>>>,
    holds: AtomicUsize,
}

/// While it is there nothing is asked.
pub(crate) struct Held<'a>(&'a Fetchers);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.holds.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.lock().values().for_each(|fetcher| fetcher.tell());
        }
    }
}

impl Fetchers {
    pub(crate) fn new(
        env: &Env,
        node_id: NodeId,
        config: ReplicasConfig,
        closing: &CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            env: env.clone(),
            node_id,
            config,
            closing: closing.clone(),
            broker_epoch: AtomicI64::new(-1),
            addresses: Mutex::default(),
            by_key: Mutex::default(),
            holds: AtomicUsize::new(0),
        })
    }

    /// Holds back all questions, so that those of many partitions go together.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.holds.fetch_add(1, Ordering::AcqRel);
        Held(self)
    }

    pub(crate) fn is_held(&self) -> bool {
        self.holds.load(Ordering::Acquire) > 0
    }

    /// The machine of a replica on this node.
    pub(crate) fn replica(&self, restored: Offset, log: &impl LogView) -> Replica {
        Replica::new(self.config.machine, self.node_id, restored, log)
    }

    /// This run of the broker is registered.
    pub(crate) fn register(&self, epoch: BrokerEpoch) {
        self.broker_epoch.store(epoch.0, Ordering::Release);
    }

    pub(crate) fn registered(&self) -> Option<BrokerEpoch> {
        Some(self.broker_epoch.load(Ordering::Acquire)).filter(|epoch| *epoch >= 0).map(BrokerEpoch)
    }

    pub(crate) fn follower(&self) -> Follower {
        Follower { id: self.node_id, broker_epoch: self.registered().unwrap_or(BrokerEpoch(-1)) }
    }

    /// Takes over where brokers are reached.
    pub(crate) fn learn_addresses(&self, image: &Image) {
        let reached = image.brokers.iter().filter_map(|broker| {
            let endpoint = broker.endpoint(&self.config.listener)?;
            let colon = endpoint.host.contains(':');
            let host = if colon { format!("[{}]", endpoint.host) } else { endpoint.host.clone() };
            Some((broker.id, format!("{host}:{}", endpoint.port)))
        });
        *self.addresses.lock().unwrap_or_else(PoisonError::into_inner) = reached.collect();
    }

    pub(crate) fn address(&self, leader: NodeId) -> Option<String> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).get(&leader).cloned()
    }

    /// The fetcher of this key, which begins its work when it is first wanted.
    pub(crate) fn get(self: &Arc<Self>, key: FetcherKey) -> Arc<Fetcher> {
        let mut fetchers = self.lock();
        let begin = || {
            let fetcher = Arc::new(Fetcher::default());
            fetcher::start(self, key.0, &fetcher, &self.closing);
            fetcher
        };
        fetchers.entry(key).or_insert_with(begin).clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<FetcherKey, Arc<Fetcher>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
