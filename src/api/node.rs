//! The node as its handlers see it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cluster::{Cluster, ClusterError, Forwarding};
use controller::{ConnectionId, Controller, Decision};
use env::Env;
use metadata::Image;
use model::{ErrorCode, Instant, Limits, NodeId, PartitionIndex, TopicId, TopicIdPartition};
use replication::{Partition, PartitionError, Replication};
use shards::Shards;

use crate::fetch_session::FetchSessions;
use crate::producer_ids::ProducerIds;
use crate::{Session, Side};

/// What handlers need of the configuration that is fixed at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// `fetch.max.bytes`.
    pub fetch_bytes_max: usize,
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_session_slots: usize,
    /// `controller.listener.names`, in capitals.
    pub controller_listeners: Vec<String>,
}

/// The rooms below, and the world. Shared by all connections.
pub struct Node {
    /// Time, chance and tasks.
    pub env: Env,
    /// What is fixed at start.
    pub config: Config,
    /// Metadata and the controller.
    pub cluster: Arc<Cluster>,
    /// The partitions on this node.
    pub replication: Arc<Replication>,
    /// The group coordinators on this node.
    pub shards: Arc<Shards>,
    pub(crate) forwarding: Forwarding,
    pub(crate) fetch_sessions: Mutex<FetchSessions>,
    pub(crate) producer_ids: ProducerIds,
    /// How many there were.
    connections: AtomicU64,
}

impl Node {
    /// Puts the rooms together.
    pub fn new(
        env: Env,
        config: Config,
        cluster: Arc<Cluster>,
        replication: Arc<Replication>,
        shards: Arc<Shards>,
    ) -> Self {
        let fetch_sessions =
            Mutex::new(FetchSessions::new(config.fetch_session_slots, Limits::FETCH_SESSIONS_BYTES));
        let forwarding = Forwarding::new(&env, cluster.clone());
        Self {
            env,
            config,
            cluster,
            replication,
            shards,
            forwarding,
            fetch_sessions,
            producer_ids: ProducerIds::default(),
            connections: AtomicU64::new(ConnectionId::LOCAL.0),
        }
    }

    /// A connection that came in by the listener of that name.
    pub fn session(&self, listener: &str, peer: SocketAddr) -> Session {
        let is_controller = self.config.controller_listeners.iter().any(|name| name == listener);
        let side = if is_controller { Side::Controller } else { Side::Broker };
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        Session::new(listener, peer, side, ConnectionId(number))
    }

    /// A connection has closed: if a broker was heard on it, the controller is told.
    pub async fn close_session(&self, session: Session) {
        if let Some((id, epoch)) = session.broker {
            self.cluster.handle_connection_closed(id, epoch, session.connection).await;
        }
    }

    /// What the cluster looks like now. A handler takes it once, so that one request sees one image.
    pub fn image(&self) -> Arc<Image> {
        self.cluster.image()
    }

    /// The broker that clients of this listener are told is the controller: any one that is there, for each takes what
    /// belongs to the controller. A random one, as in Kafka, so that they share the work.
    pub(crate) fn any_broker(&self, image: &Image, listener: &str) -> NodeId {
        let alive = || image.brokers.unfenced().filter(|broker| broker.endpoint(listener).is_some());
        let Some(last) = alive().count().checked_sub(1) else { return NodeId::NONE };
        let nth = self.env.rng.next_u64() as usize % (last + 1);
        alive().nth(nth).map_or(NodeId::NONE, |broker| broker.id)
    }

    /// A decision of this node's controller.
    ///
    /// # Errors
    /// It is not the active one, or there was none until `until`: then it may still decide.
    pub(crate) async fn decide<R: Send + 'static>(
        &self,
        until: Instant,
        decide: impl FnOnce(&Controller) -> Decision<R> + Send + 'static,
    ) -> Result<R, ClusterError> {
        let decided = self.cluster.decide(decide);
        env::timeout(&*self.env.clock, until, decided).await.unwrap_or(Err(ClusterError::TimedOut))
    }

    /// The same, for what is not to fill a disk that is full.
    ///
    /// # Errors
    /// As there, and something was to be made while a disk is full.
    pub(crate) async fn decide_where_space_is<R: Send + 'static>(
        &self,
        until: Instant,
        decide: impl FnOnce(&Controller) -> Decision<R> + Send + 'static,
    ) -> Result<R, ClusterError> {
        let decided = self.cluster.decide_where_space_is(decide);
        env::timeout(&*self.env.clock, until, decided).await.unwrap_or(Err(ClusterError::TimedOut))
    }

    /// A partition of this node by its topic's name.
    ///
    /// # Errors
    /// What Kafka answers where it is elsewhere, or nowhere.
    pub(crate) fn partition(
        &self,
        image: &Image,
        topic: &str,
        index: PartitionIndex,
    ) -> Result<Arc<Partition>, ErrorCode> {
        self.replication.partition(topic, index).map_err(|error| match error {
            PartitionError::Unknown
                if image.topics.by_name(topic).is_some_and(|topic| topic.partitions.contains_key(&index)) =>
            {
                ErrorCode::NotLeaderOrFollower
            }
            error => error.into(),
        })
    }

    /// A partition of this node by its topic's id.
    ///
    /// # Errors
    /// What Kafka answers where it is elsewhere, or nowhere.
    pub(crate) fn partition_by_id(
        &self,
        image: &Image,
        topic_id: TopicId,
        index: PartitionIndex,
    ) -> Result<Arc<Partition>, ErrorCode> {
        let topic = image.topics.by_id(topic_id).ok_or(ErrorCode::UnknownTopicId)?;
        self.replication.partition_by_id(TopicIdPartition { topic_id, partition: index }).map_err(|error| {
            match error {
                PartitionError::Unknown if topic.partitions.contains_key(&index) => {
                    ErrorCode::NotLeaderOrFollower
                }
                error => error.into(),
            }
        })
    }
}
