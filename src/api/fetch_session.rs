//! Fetch sessions: a consumer names its partitions once, then only what changed (KIP-227).
//!
//! Pure: `now` is an argument. A session belongs to no connection; its id and epoch prove who goes on with it.
//!
//! Invariants: at most `slots` sessions, which remember at most `bytes_max`; an answer within a session names a partition
//! only if it has something new to say. Who finds no room is served without a session: it names all its partitions each time.
//!
//! Kafka: `FetchManager`, `FetchSession`, `FetchContext`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{ErrorCode, Instant, LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName};

/// A session that was not used for this long may make room for another (`min.incremental.fetch.session.eviction.ms`).
const EVICTION_AGE: Duration = Duration::from_mins(2);
/// What a session remembers of a partition, beside the topic's name.
const PARTITION_BYTES: usize = 256;
const FULL_EPOCH: i32 = 0;
const FINAL_EPOCH: i32 = -1;

/// A topic as the request names it: by name up to version 12, by id from 13 on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TopicRef {
    Name(TopicName),
    Id(TopicId),
}

/// A partition as the request names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) topic: TopicRef,
    pub(crate) partition: PartitionIndex,
}

impl Key {
    /// What it costs to remember. A client may name topics that are not there, so names count.
    fn bytes(&self) -> usize {
        match &self.topic {
            TopicRef::Name(name) => PARTITION_BYTES + name.as_str().len(),
            TopicRef::Id(_) => PARTITION_BYTES,
        }
    }
}

/// What is wanted of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) offset: Offset,
    pub(crate) bytes_max: i32,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) last_fetched_epoch: LeaderEpoch,
    /// Where a follower's log starts.
    pub(crate) log_start: Offset,
}

/// The session part of a request.
pub(crate) struct Opening {
    pub(crate) session_id: i32,
    pub(crate) epoch: i32,
    pub(crate) uses_ids: bool,
    pub(crate) wanted: Vec<(Key, Wanted)>,
    pub(crate) forgotten: Vec<Key>,
}

/// What one request fetches, and how its answer is told.
pub(crate) struct Context {
    pub(crate) partitions: Vec<(Key, Wanted)>,
    kind: Kind,
    uses_ids: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sessionless,
    Full,
    Incremental { id: i32, epoch: i32 },
}

/// What an answer says of a partition, as far as a session cares.
pub(crate) trait Told {
    fn key(&self) -> &Key;
    fn error(&self) -> ErrorCode;
    fn high_watermark(&self) -> Offset;
    fn log_start(&self) -> Offset;
    fn has_records(&self) -> bool;
    /// The reader's log is another one.
    fn diverges(&self) -> bool;
}

struct Remembered {
    wanted: Wanted,
    high_watermark: Offset,
    log_start: Offset,
}

struct Session {
    epoch: i32,
    uses_ids: bool,
    used: Instant,
    /// In the order in which they are served: who got records goes to the end.
    order: BTreeMap<u64, Key>,
    partitions: BTreeMap<Key, (u64, Remembered)>,
    next_place: u64,
    bytes: usize,
}

/// All sessions of a node.
pub(crate) struct FetchSessions {
    slots: usize,
    bytes_max: usize,
    /// Of all sessions.
    bytes: usize,
    sessions: BTreeMap<i32, Session>,
}

impl FetchSessions {
    pub(crate) fn new(slots: usize, bytes_max: usize) -> Self {
        Self { slots, bytes_max, bytes: 0, sessions: BTreeMap::new() }
    }

    /// What this request fetches.
    ///
    /// # Errors
    /// The session is not known, is further, names topics otherwise, or has grown over all bounds and is gone.
    pub(crate) fn begin(&mut self, opening: Opening, now: Instant) -> Result<Context, ErrorCode> {
        if opening.epoch == FULL_EPOCH || opening.epoch == FINAL_EPOCH {
            self.remove(opening.session_id);
            let kind = if opening.epoch == FINAL_EPOCH { Kind::Sessionless } else { Kind::Full };
            return Ok(Context { partitions: opening.wanted, kind, uses_ids: opening.uses_ids });
        }
        let id = opening.session_id;
        let session = self.sessions.get_mut(&id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        if session.epoch != opening.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.uses_ids != opening.uses_ids {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        self.bytes -= session.bytes;
        for key in &opening.forgotten {
            session.forget(key);
        }
        for (key, wanted) in opening.wanted {
            session.want(key, wanted);
        }
        self.bytes += session.bytes;
        session.epoch = next_epoch(session.epoch);
        session.used = now;
        let partitions = session.wanted();
        let epoch = session.epoch;
        if self.bytes > self.bytes_max {
            self.remove(id);
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        if partitions.is_empty() {
            self.remove(id);
            return Ok(Context { partitions, kind: Kind::Sessionless, uses_ids: opening.uses_ids });
        }
        Ok(Context { partitions, kind: Kind::Incremental { id, epoch }, uses_ids: opening.uses_ids })
    }

    /// Leaves in `told` what this answer says, and gives the session's id; 0 is none.
    ///
    /// # Errors
    /// The session went on without this request.
    pub(crate) fn end<T: Told>(
        &mut self,
        context: &Context,
        told: &mut Vec<T>,
        (now, id): (Instant, impl FnMut() -> i32),
    ) -> Result<i32, ErrorCode> {
        match context.kind {
            Kind::Sessionless => Ok(0),
            Kind::Full => Ok(self.create(context, told, (now, id))),
            Kind::Incremental { id, epoch } => {
                let session = self.sessions.get_mut(&id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
                if session.epoch != epoch {
                    return Err(ErrorCode::InvalidFetchSessionEpoch);
                }
                told.retain(|partition| session.tell(partition));
                Ok(id)
            }
        }
    }

    fn create<T: Told>(
        &mut self,
        context: &Context,
        told: &[T],
        (now, mut id): (Instant, impl FnMut() -> i32),
    ) -> i32 {
        let bytes = context.partitions.iter().map(|(key, _)| key.bytes()).sum();
        if context.partitions.is_empty() || !self.make_room(bytes, now) {
            return 0;
        }
        let id = std::iter::repeat_with(|| id() & i32::MAX)
            .find(|id| *id != 0 && !self.sessions.contains_key(id))
            .unwrap_or(0);
        let mut session = Session::new(context.uses_ids, now);
        for (key, wanted) in &context.partitions {
            session.want(key.clone(), *wanted);
        }
        for partition in told {
            session.tell(partition);
        }
        self.bytes += session.bytes;
        self.sessions.insert(id, session);
        id
    }

    /// Makes room by sessions that were not used for long, the oldest first.
    fn make_room(&mut self, bytes: usize, now: Instant) -> bool {
        while self.sessions.len() >= self.slots || self.bytes + bytes > self.bytes_max {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used);
            match oldest {
                Some((id, session)) if now.since(session.used) > EVICTION_AGE => self.remove(*id),
                _ => return false,
            }
        }
        true
    }

    fn remove(&mut self, id: i32) {
        if let Some(session) = self.sessions.remove(&id) {
            self.bytes -= session.bytes;
        }
    }
}

impl Session {
    fn new(uses_ids: bool, now: Instant) -> Self {
        Self {
            epoch: 1,
            uses_ids,
            used: now,
            order: BTreeMap::new(),
            partitions: BTreeMap::new(),
            next_place: 0,
            bytes: 0,
        }
    }

    fn want(&mut self, key: Key, wanted: Wanted) {
        if let Some((_, remembered)) = self.partitions.get_mut(&key) {
            remembered.wanted = wanted;
            return;
        }
        let place = self.place();
        self.bytes += key.bytes();
        self.order.insert(place, key.clone());
        let remembered = Remembered { wanted, high_watermark: Offset(-1), log_start: Offset(-1) };
        self.partitions.insert(key, (place, remembered));
    }

    fn forget(&mut self, key: &Key) {
        if let Some((place, _)) = self.partitions.remove(key) {
            self.order.remove(&place);
            self.bytes -= key.bytes();
        }
    }

    fn wanted(&self) -> Vec<(Key, Wanted)> {
        self.order
            .values()
            .filter_map(|key| {
                self.partitions.get(key).map(|(_, remembered)| (key.clone(), remembered.wanted))
            })
            .collect()
    }

    /// Whether the partition has something new to say; remembers what it says.
    fn tell(&mut self, told: &impl Told) -> bool {
        let place = self.next_place;
        let Some((at, remembered)) = self.partitions.get_mut(told.key()) else { return true };
        let failed = told.error() != ErrorCode::None;
        let news = failed
            || told.has_records()
            || told.diverges()
            || remembered.high_watermark != told.high_watermark()
            || remembered.log_start != told.log_start();
        // After an error the next good answer is news, whatever it says.
        remembered.high_watermark = if failed { Offset(-1) } else { told.high_watermark() };
        remembered.log_start = told.log_start();
        if told.has_records() {
            let key = self.order.remove(at);
            *at = place;
            self.order.extend(key.map(|key| (place, key)));
            self.next_place += 1;
        }
        news
    }

    fn place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place - 1
    }
}

fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 3 * (PARTITION_BYTES + 1);

    struct Answered {
        key: Key,
        error: ErrorCode,
        high_watermark: i64,
        records: bool,
    }

    impl Told for Answered {
        fn key(&self) -> &Key {
            &self.key
        }
        fn error(&self) -> ErrorCode {
            self.error
        }
        fn high_watermark(&self) -> Offset {
            Offset(self.high_watermark)
        }
        fn log_start(&self) -> Offset {
            Offset(0)
        }
        fn has_records(&self) -> bool {
            self.records
        }
        fn diverges(&self) -> bool {
            false
        }
    }

    fn key(partition: i32) -> Key {
        Key { topic: TopicRef::Name("t".into()), partition }
    }

    fn wanted(offset: i64) -> Wanted {
        Wanted {
            offset: Offset(offset),
            bytes_max: 1,
            leader_epoch: LeaderEpoch::NONE,
            last_fetched_epoch: LeaderEpoch::NONE,
            log_start: Offset(-1),
        }
    }

    fn opening(session_id: i32, epoch: i32, partitions: &[i32]) -> Opening {
        let wanted = partitions.iter().map(|p| (key(*p), wanted(0))).collect();
        Opening { session_id, epoch, uses_ids: false, wanted, forgotten: vec![] }
    }

    fn answer(partition: i32, high_watermark: i64, records: bool) -> Answered {
        Answered { key: key(partition), error: ErrorCode::None, high_watermark, records }
    }

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }

    /// A session over partitions 0 and 1, both told once.
    fn established(sessions: &mut FetchSessions) -> i32 {
        let context = sessions.begin(opening(0, 0, &[0, 1]), at(0)).expect("full");
        let mut told = vec![answer(0, 5, false), answer(1, 5, false)];
        sessions.end(&context, &mut told, (at(0), || 7)).expect("created")
    }

    #[test]
    fn a_full_fetch_makes_a_session_and_the_next_says_only_news() {
        let mut sessions = FetchSessions::new(2, BYTES_MAX);
        let id = established(&mut sessions);
        assert_eq!(id, 7);
        let context = sessions.begin(opening(id, 1, &[]), at(1)).expect("incremental");
        assert_eq!(context.partitions.len(), 2);
        let mut told = vec![answer(0, 5, false), answer(1, 6, false)];
        assert_eq!(sessions.end(&context, &mut told, (at(1), || 0)), Ok(id));
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].key, key(1));
    }

    #[test]
    fn who_got_records_is_served_last_next_time() {
        let mut sessions = FetchSessions::new(2, BYTES_MAX);
        let id = established(&mut sessions);
        let context = sessions.begin(opening(id, 1, &[]), at(1)).expect("incremental");
        let mut told = vec![answer(0, 6, true), answer(1, 5, false)];
        sessions.end(&context, &mut told, (at(1), || 0)).expect("told");
        let context = sessions.begin(opening(id, 2, &[]), at(1)).expect("incremental");
        assert_eq!(context.partitions.iter().map(|(key, _)| key.partition).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn after_an_error_the_next_answer_is_news() {
        let mut sessions = FetchSessions::new(2, BYTES_MAX);
        let id = established(&mut sessions);
        for (epoch, error) in [(1, ErrorCode::KafkaStorageError), (2, ErrorCode::None)] {
            let context = sessions.begin(opening(id, epoch, &[]), at(1)).expect("incremental");
            let mut told = vec![Answered { error, ..answer(0, 5, false) }];
            sessions.end(&context, &mut told, (at(1), || 0)).expect("told");
            assert_eq!(told.len(), 1);
        }
    }

    #[test]
    fn a_wrong_epoch_or_id_is_refused() {
        let mut sessions = FetchSessions::new(2, BYTES_MAX);
        let id = established(&mut sessions);
        assert_eq!(
            sessions.begin(opening(id, 3, &[]), at(1)).err(),
            Some(ErrorCode::InvalidFetchSessionEpoch)
        );
        assert_eq!(sessions.begin(opening(99, 1, &[]), at(1)).err(), Some(ErrorCode::FetchSessionIdNotFound));
        let ids = Opening { uses_ids: true, ..opening(id, 1, &[]) };
        assert_eq!(sessions.begin(ids, at(1)).err(), Some(ErrorCode::FetchSessionTopicIdError));
    }

    #[test]
    fn the_final_epoch_closes_the_session() {
        let mut sessions = FetchSessions::new(2, BYTES_MAX);
        let id = established(&mut sessions);
        sessions.begin(opening(id, -1, &[]), at(1)).expect("final");
        assert_eq!(sessions.begin(opening(id, 1, &[]), at(1)).err(), Some(ErrorCode::FetchSessionIdNotFound));
    }

    #[test]
    fn forgetting_all_partitions_ends_the_session() {
        let mut sessions = FetchSessions::new(2, BYTES_MAX);
        let id = established(&mut sessions);
        let all = Opening { forgotten: vec![key(0), key(1)], ..opening(id, 1, &[]) };
        let context = sessions.begin(all, at(1)).expect("empty");
        assert_eq!(sessions.end(&context, &mut Vec::<Answered>::new(), (at(1), || 0)), Ok(0));
    }

    #[test]
    fn sessions_are_bounded_and_only_old_ones_make_room() {
        let mut sessions = FetchSessions::new(1, BYTES_MAX);
        established(&mut sessions);
        let context = sessions.begin(opening(0, 0, &[0]), at(60)).expect("full");
        assert_eq!(sessions.end(&context, &mut vec![answer(0, 1, false)], (at(60), || 8)), Ok(0));
        assert_eq!(sessions.end(&context, &mut vec![answer(0, 1, false)], (at(121), || 8)), Ok(8));
        assert_eq!(sessions.sessions.len(), 1);
    }

    #[test]
    fn partitions_are_bounded_and_who_has_no_room_is_served_without_a_session() {
        let mut sessions = FetchSessions::new(9, BYTES_MAX);
        let id = established(&mut sessions);
        let two = |sessions: &mut FetchSessions, now| {
            let context = sessions.begin(opening(0, 0, &[0, 1]), now).expect("full");
            sessions.end(&context, &mut vec![answer(0, 1, false)], (now, || 8))
        };
        assert_eq!(two(&mut sessions, at(60)), Ok(0));
        let fewer = Opening { forgotten: vec![key(1)], ..opening(id, 1, &[]) };
        sessions.begin(fewer, at(60)).expect("incremental");
        assert_eq!(two(&mut sessions, at(60)), Ok(8));
    }

    #[test]
    fn a_session_that_grows_over_all_bounds_is_gone_and_so_is_what_it_remembered() {
        let mut sessions = FetchSessions::new(9, BYTES_MAX);
        let id = established(&mut sessions);
        let grown = sessions.begin(opening(id, 1, &[2, 3]), at(1));
        assert_eq!(grown.err(), Some(ErrorCode::FetchSessionIdNotFound));
        assert_eq!((sessions.sessions.len(), sessions.bytes), (0, 0));
    }
}
