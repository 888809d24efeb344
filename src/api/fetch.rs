//! Fetch: records from an offset on, as soon as there are enough of them.
//!
//! A fetch reads all its partitions once. With enough bytes, an error or no time to wait it is answered; else one signal is
//! registered with all of them, and those that fire it are read again.
//!
//! Kafka: `KafkaApis.handleFetchRequest`, `ReplicaManager.readFromLog`, `DelayedFetch`; KIP-74, 227, 320, 516.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use metadata::Image;
use model::{ErrorCode, Instant, LeaderEpoch, Offset};
use protocol::messages::FetchRequest;
use replication::{Isolation, Partition, Registration, Signal};

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
    let mut round = Round::new(&sources, terms);
    let signal = Signal::new(1);
    let mut waiting: Vec<Option<Registration>> = sources.iter().map(|_| None).collect();
    while !round.is_enough() && !sources.is_empty() && node.env.clock.now() < terms.deadline {
        for place in std::mem::take(&mut round.unwaited) {
            waiting[place] = round.wait(place, &signal);
        }
        let fired = env::timeout(node.env.clock.as_ref(), terms.deadline, signal.fired()).await;
        fired.into_iter().flatten().for_each(|place| round.read(place));
    }
    round.answers
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

/// What was read so far. A partition is read again when it has more, and no other with it.
struct Round<'a> {
    sources: &'a [Source<'a>],
    terms: &'a Terms,
    /// One for each source.
    answers: Vec<PartitionAnswer>,
    /// The places of those that were read and are not waited for yet.
    unwaited: Vec<usize>,
    bytes: usize,
    failed: bool,
}

impl<'a> Round<'a> {
    /// Reads all.
    fn new(sources: &'a [Source<'a>], terms: &'a Terms) -> Self {
        let mut round = Self {
            sources,
            terms,
            answers: Vec::with_capacity(sources.len()),
            unwaited: Vec::new(),
            bytes: 0,
            failed: false,
        };
        for source in sources {
            let answer = round.answer(source);
            round.take(&answer);
            round.answers.push(answer);
        }
        round.unwaited = (0..sources.len()).collect();
        round
    }

    /// Reads one again.
    fn read(&mut self, place: usize) {
        self.bytes -= self.answers[place].slice.len();
        let answer = self.answer(&self.sources[place]);
        self.take(&answer);
        self.answers[place] = answer;
        self.unwaited.push(place);
    }

    fn take(&mut self, answer: &PartitionAnswer) {
        self.bytes += answer.slice.len();
        self.failed |= answer.error != ErrorCode::None;
    }

    fn answer(&self, (key, wanted, partition): &Source<'_>) -> PartitionAnswer {
        match partition {
            Ok(partition) => self.read_partition(partition, key, wanted),
            Err(error) => PartitionAnswer::failed((*key).clone(), *error),
        }
    }

    fn read_partition(&self, partition: &Partition, key: &Key, wanted: &Wanted) -> PartitionAnswer {
        // The first batch that is found is sent whole, however large, or a consumer could never pass it.
        let nothing_yet = self.bytes == 0;
        let left = self.terms.bytes_max.saturating_sub(self.bytes);
        let bytes_max = left.min(wanted.bytes_max.max(0) as usize);
        match partition.read(wanted.offset, bytes_max, nothing_yet, self.terms.isolation) {
            Ok(read) => PartitionAnswer {
                key: key.clone(),
                error: ErrorCode::None,
                high_watermark: read.high_watermark,
                last_stable_offset: read.last_stable_offset,
                log_start: read.log_start,
                knows_aborted: self.terms.isolation == Isolation::ReadCommitted,
                slice: read.slice,
            },
            Err(error) => PartitionAnswer::failed(key.clone(), ErrorCode::from(&error)),
        }
    }

    /// Waits for more of one: whatever a reader waits for moves the high watermark, and below it nothing changes.
    fn wait(&self, place: usize, signal: &Arc<Signal>) -> Option<Registration> {
        let partition = self.sources[place].2.as_ref().ok()?;
        Some(partition.register(self.answers[place].high_watermark.plus(1), signal, place))
    }

    fn is_enough(&self) -> bool {
        self.failed || self.bytes >= self.terms.bytes_min
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
