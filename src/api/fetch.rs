//! Fetch: records from an offset on, as soon as there are enough of them.
//!
//! A fetch reads all its partitions once. With enough bytes, an error or no time to wait it is answered; else one waiter
//! is registered with all of them, and what wakes it is followed by one more read.
//!
//! Kafka: `KafkaApis.handleFetchRequest`, `ReplicaManager.readFromLog`, `DelayedFetch`; KIP-74, 227, 320, 516.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use metadata::Image;
use model::{ErrorCode, Instant, LeaderEpoch, Offset};
use protocol::messages::FetchRequest;
use replication::{Isolation, Partition, Signal};

use crate::fetch_answer::{FetchAnswer, PartitionAnswer};
use crate::fetch_session::{Context, Key, Opening, TopicRef, Wanted};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: FetchRequest,
    version: i16,
) -> Reply<FetchAnswer> {
    let terms = Terms::of(node, &request, version);
    let opening = lift(request, version);
    let opened = node
        .fetch_sessions
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .begin(opening, node.env.clock.now());
    let context = match opened {
        Ok(context) => context,
        Err(error) => return Reply::Now(error_answer(error)),
    };
    let partitions = fetch(node, &context, &terms).await;
    Reply::Now(tell(node, &context, partitions))
}

fn error_answer(error: ErrorCode) -> FetchAnswer {
    FetchAnswer { error: error.code(), ..FetchAnswer::default() }
}

/// What holds for all partitions of a request.
struct Terms {
    bytes_min: usize,
    bytes_max: usize,
    deadline: Instant,
    isolation: Isolation,
    is_replica: bool,
}

impl Terms {
    fn of(node: &Node, request: &FetchRequest, version: i16) -> Self {
        let wait = Duration::from_millis(request.max_wait_ms.max(0) as u64);
        let bytes_max = (request.max_bytes.max(0) as usize).min(node.config.fetch_bytes_max);
        let replica = if version >= 15 { request.replica_state.replica_id } else { request.replica_id };
        Self {
            bytes_min: (request.min_bytes.max(0) as usize).min(bytes_max),
            bytes_max,
            deadline: node.env.clock.now().plus(wait),
            isolation: match request.isolation_level {
                1 => Isolation::ReadCommitted,
                _ => Isolation::ReadUncommitted,
            },
            is_replica: replica.0 >= 0,
        }
    }
}

fn lift(request: FetchRequest, version: i16) -> Opening {
    let uses_ids = version >= 13;
    let topic_ref = |name: &protocol::messages::TopicName, id: [u8; 16]| {
        if uses_ids { TopicRef::Id(model::Uuid(id)) } else { TopicRef::Name(name.as_str().into()) }
    };
    let mut wanted = Vec::new();
    for topic in request.topics {
        let topic_ref = topic_ref(&topic.topic, topic.topic_id.into_bytes());
        wanted.extend(topic.partitions.iter().map(|partition| {
            let key = Key { topic: topic_ref.clone(), partition: partition.partition };
            let wanted = Wanted {
                offset: Offset(partition.fetch_offset),
                bytes_max: partition.partition_max_bytes,
                // Any negative epoch is none.
                leader_epoch: LeaderEpoch(partition.current_leader_epoch.max(-1)),
                last_fetched_epoch: LeaderEpoch(partition.last_fetched_epoch),
            };
            (key, wanted)
        }));
    }
    let forgotten = request
        .forgotten_topics_data
        .into_iter()
        .flat_map(|topic| {
            let topic_ref = topic_ref(&topic.topic, topic.topic_id.into_bytes());
            topic.partitions.into_iter().map(move |partition| Key { topic: topic_ref.clone(), partition })
        })
        .collect();
    // Versions below 7 know no sessions, and say so by the defaults: id 0, epoch -1.
    Opening { session_id: request.session_id, epoch: request.session_epoch, uses_ids, wanted, forgotten }
}

/// Reads until there is enough, or the time is up.
async fn fetch(node: &Node, context: &Context, terms: &Terms) -> Vec<PartitionAnswer> {
    let image = node.image();
    let sources: Vec<_> = context
        .partitions
        .iter()
        .map(|(key, wanted)| (key, wanted, source(node, &image, key, wanted, terms)))
        .collect();
    loop {
        let round = Round::read(&sources, terms);
        let now = node.env.clock.now();
        if round.is_enough(terms) || now >= terms.deadline || round.ends.is_empty() {
            return round.answers;
        }
        let signal = Signal::new(1);
        let registrations: Vec<_> =
            round.ends.iter().map(|(partition, end)| partition.register(end.plus(1), &signal)).collect();
        env::timeout(node.env.clock.as_ref(), terms.deadline, signal.done()).await;
        drop(registrations);
    }
}

/// The partition on this node that a key means.
fn source(
    node: &Node,
    image: &Image,
    key: &Key,
    wanted: &Wanted,
    terms: &Terms,
) -> Result<Arc<Partition>, ErrorCode> {
    let partition = match &key.topic {
        TopicRef::Name(name) => node.partition(image, name.as_str(), key.partition)?,
        TopicRef::Id(id) => node.partition_by_id(image, *id, key.partition)?,
    };
    if terms.is_replica {
        return Err(ErrorCode::NotLeaderOrFollower);
    }
    partition.check_epoch(wanted.leader_epoch)?;
    Ok(partition)
}

type Source<'a> = (&'a Key, &'a Wanted, Result<Arc<Partition>, ErrorCode>);

/// One read of all partitions.
struct Round {
    answers: Vec<PartitionAnswer>,
    /// The high watermark of each partition that can be waited for: whatever a reader waits for moves it, and below it
    /// nothing changes.
    ends: Vec<(Arc<Partition>, Offset)>,
    bytes: usize,
    failed: bool,
}

impl Round {
    fn read(sources: &[Source<'_>], terms: &Terms) -> Self {
        let mut round =
            Self { answers: Vec::with_capacity(sources.len()), ends: Vec::new(), bytes: 0, failed: false };
        for (key, wanted, source) in sources {
            let answer = match source {
                Ok(partition) => round.read_partition(partition, key, wanted, terms),
                Err(error) => PartitionAnswer::failed((*key).clone(), *error),
            };
            round.bytes += answer.slice.len();
            round.failed |= answer.error != ErrorCode::None;
            round.answers.push(answer);
        }
        round
    }

    fn read_partition(
        &mut self,
        partition: &Arc<Partition>,
        key: &Key,
        wanted: &Wanted,
        terms: &Terms,
    ) -> PartitionAnswer {
        // The first batch that is found is sent whole, however large, or a consumer could never pass it.
        let nothing_yet = self.bytes == 0;
        let left = terms.bytes_max.saturating_sub(self.bytes);
        let bytes_max = left.min(wanted.bytes_max.max(0) as usize);
        match partition.read(wanted.offset, bytes_max, nothing_yet, terms.isolation) {
            Ok(read) => {
                self.ends.push((partition.clone(), read.high_watermark));
                PartitionAnswer {
                    key: key.clone(),
                    error: ErrorCode::None,
                    high_watermark: read.high_watermark,
                    last_stable_offset: read.last_stable_offset,
                    log_start: read.log_start,
                    knows_aborted: terms.isolation == Isolation::ReadCommitted,
                    slice: read.slice,
                }
            }
            Err(error) => PartitionAnswer::failed(key.clone(), ErrorCode::from(&error)),
        }
    }

    fn is_enough(&self, terms: &Terms) -> bool {
        self.failed || self.bytes >= terms.bytes_min
    }
}

/// The answer as the session tells it.
fn tell(node: &Node, context: &Context, mut partitions: Vec<PartitionAnswer>) -> FetchAnswer {
    let mut sessions = node.fetch_sessions.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh_id = || node.env.rng.next_u64() as i32;
    match sessions.end(context, &mut partitions, (node.env.clock.now(), fresh_id)) {
        Ok(session_id) => FetchAnswer { error: 0, session_id, partitions },
        Err(error) => error_answer(error),
    }
}
