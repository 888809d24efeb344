//! Fetch: records from an offset on, as soon as there are enough of them.
//!
//! A fetch reads all its partitions once. With enough bytes, an error or no time to wait it is answered; else one signal is
//! registered with all of them, and those that fire it are read again.
//!
//! A follower reads up to the log end. Its Fetch acknowledges that it holds all below its offset on disk: that is told to the
//! partition with the first read, and may move the high watermark.
//!
//! Kafka: `KafkaApis.handleFetchRequest`, `ReplicaManager.readFromLog`, `DelayedFetch`; KIP-74, 227, 320, 516, 595, 903.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use metadata::Image;
use model::{BrokerEpoch, ErrorCode, Instant, LeaderEpoch, NodeId, Offset};
use protocol::messages::FetchRequest;
use replication::{
    Awaited, FetchRequest as PartitionRequest, FollowerFetch, Isolation, Partition, Read, ReadError,
    ReadLimits, Registration, Signal,
};

use crate::fetch_answer::{FetchAnswer, PartitionAnswer};
use crate::fetch_session::{Context, Key, Opening, TopicRef, Wanted};
use crate::{Node, Reply, Session};

/// So many partitions may be named more often than they are there.
const FEW: usize = 1000;

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
    follower: Option<Follower>,
}

/// A broker that follows.
#[derive(Clone, Copy)]
struct Follower {
    id: NodeId,
    broker_epoch: Option<BrokerEpoch>,
}

impl Follower {
    /// Who sends this request, if it is not a consumer. Versions below 15 do not say the registration.
    fn of(request: &FetchRequest, version: i16) -> Option<Self> {
        let (id, epoch) = match &request.replica_state {
            state if version >= 15 => (state.replica_id, state.replica_epoch),
            _ => (request.replica_id, -1),
        };
        let broker_epoch = (epoch >= 0).then_some(BrokerEpoch(epoch));
        (id.0 >= 0).then_some(Self { id: NodeId(id.0), broker_epoch })
    }
}

impl Terms {
    fn of(node: &Node, request: &FetchRequest, version: i16) -> Self {
        let wait = Duration::from_millis(request.max_wait_ms.max(0) as u64);
        let bytes_max = (request.max_bytes.max(0) as usize).min(node.config.fetch_bytes_max);
        Self {
            bytes_min: (request.min_bytes.max(0) as usize).min(bytes_max),
            bytes_max,
            deadline: node.env.clock.now().plus(wait),
            isolation: match request.isolation_level {
                1 => Isolation::ReadCommitted,
                _ => Isolation::ReadUncommitted,
            },
            follower: Follower::of(request, version),
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
                last_fetched_epoch: LeaderEpoch(partition.last_fetched_epoch.max(-1)),
                log_start: Offset(partition.log_start_offset),
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
    let sources: Vec<_> =
        context.partitions.iter().map(|(key, wanted)| (key, wanted, source(node, &image, key))).collect();
    let mut round = Round::new(&sources, terms);
    let signal = Signal::new(1);
    let mut waiting: Vec<Option<Registration>> = sources.iter().map(|_| None).collect();
    let waits = may_wait(sources.len(), &image);
    while waits && !round.is_enough() && node.env.clock.now() < terms.deadline {
        for place in std::mem::take(&mut round.unwaited) {
            waiting[place] = round.wait(place, &signal);
        }
        let fired = env::timeout(node.env.clock.as_ref(), terms.deadline, signal.fired()).await;
        fired.into_iter().flatten().for_each(|place| round.read(place));
    }
    round.answers
}

/// A fetch that names partitions again and again takes much more memory than its request did: it is answered at once. Only
/// where there are many of them is it worth counting.
fn may_wait(named: usize, image: &Image) -> bool {
    let there_are = || image.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>();
    named > 0 && (named <= FEW || named <= there_are())
}

/// The partition on this node that a key means.
fn source(node: &Node, image: &Image, key: &Key) -> Result<Arc<Partition>, ErrorCode> {
    match &key.topic {
        TopicRef::Name(name) => node.partition(image, name.as_str(), key.partition),
        TopicRef::Id(id) => node.partition_by_id(image, *id, key.partition),
    }
}

/// What is asked of one partition.
fn lift_partition(wanted: &Wanted) -> PartitionRequest {
    let some = |epoch: LeaderEpoch| (epoch > LeaderEpoch::NONE).then_some(epoch);
    PartitionRequest {
        leader_epoch: some(wanted.leader_epoch),
        offset: wanted.offset,
        last_fetched_epoch: some(wanted.last_fetched_epoch),
    }
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
            let answer = round.answer(source, true);
            round.take(&answer);
            round.answers.push(answer);
        }
        round.unwaited = (0..sources.len()).collect();
        round
    }

    /// Reads one again.
    fn read(&mut self, place: usize) {
        self.bytes -= self.answers[place].slice.len();
        let answer = self.answer(&self.sources[place], false);
        self.take(&answer);
        self.answers[place] = answer;
        self.unwaited.push(place);
    }

    fn take(&mut self, answer: &PartitionAnswer) {
        self.bytes += answer.slice.len();
        self.failed |= answer.error != ErrorCode::None || answer.diverging.is_some();
    }

    fn answer(&self, (key, wanted, partition): &Source<'_>, is_new: bool) -> PartitionAnswer {
        match partition {
            Ok(partition) => match self.read_partition(partition, wanted, is_new) {
                Ok(read) => self.found((*key).clone(), read),
                Err(error) => PartitionAnswer::failed((*key).clone(), ErrorCode::from(&error)),
            },
            Err(error) => PartitionAnswer::failed((*key).clone(), *error),
        }
    }

    fn read_partition(
        &self,
        partition: &Arc<Partition>,
        wanted: &Wanted,
        is_new: bool,
    ) -> Result<Read, ReadError> {
        // The first batch that is found is sent whole, however large, or a consumer could never pass it.
        let nothing_yet = self.bytes == 0;
        let left = self.terms.bytes_max.saturating_sub(self.bytes);
        let bytes_max = left.min(wanted.bytes_max.max(0) as usize);
        let (request, limits) = (lift_partition(wanted), ReadLimits { bytes_max, at_least_one: nothing_yet });
        let Some(Follower { id, broker_epoch }) = self.terms.follower else {
            return partition.fetch(&request, self.terms.isolation, limits);
        };
        let from = FollowerFetch { replica: id, broker_epoch, log_start: wanted.log_start, request };
        partition.fetch_as_follower(&from, limits, is_new)
    }

    fn found(&self, key: Key, read: Read) -> PartitionAnswer {
        PartitionAnswer {
            key,
            error: ErrorCode::None,
            high_watermark: read.high_watermark,
            last_stable_offset: read.last_stable_offset,
            log_start: read.log_start,
            knows_aborted: self.terms.isolation == Isolation::ReadCommitted,
            diverging: read.diverging,
            slice: read.slice,
            readable_end: read.readable_end,
        }
    }

    /// Waits for more of one: whatever a consumer waits for moves the high watermark, and below it nothing changes.
    fn wait(&self, place: usize, signal: &Arc<Signal>) -> Option<Registration> {
        let partition = self.sources[place].2.as_ref().ok()?;
        let answer = &self.answers[place];
        let more = match self.terms.follower {
            Some(_) => Awaited::LogEnd(answer.readable_end.plus(1)),
            None => Awaited::HighWatermark(answer.high_watermark.plus(1)),
        };
        Some(partition.register(more, signal, place))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_that_names_more_partitions_than_there_are_does_not_wait() {
        let image = Image::default();
        assert_eq!([0, 1, FEW, FEW + 1].map(|named| may_wait(named, &image)), [false, true, true, false]);
    }
}
