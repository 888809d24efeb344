//! A follower's fetch session with its leader (KIP-227): it names its partitions once, then only what changed.
//!
//! Pure. A session stands and falls with what its leader remembers; whatever goes wrong, the next request begins a new
//! one.
//!
//! Kafka: `FetchSessionHandler`, `FetchMetadata`.

use std::collections::BTreeMap;

use model::{ErrorCode, LeaderEpoch, Offset, TopicIdPartition};
use replica::FetchState;

/// What a leader remembers of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    offset: Offset,
    leader_epoch: LeaderEpoch,
    last_fetched_epoch: Option<LeaderEpoch>,
    log_start: Offset,
}

impl Position {
    fn of(state: &FetchState) -> Self {
        let FetchState { offset, leader_epoch, last_fetched_epoch, log_start, .. } = *state;
        Self { offset, leader_epoch, last_fetched_epoch, log_start }
    }
}

/// What a request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRequest {
    pub(crate) session_id: i32,
    pub(crate) session_epoch: i32,
    pub(crate) named: Vec<(TopicIdPartition, FetchState)>,
    pub(crate) forgotten: Vec<TopicIdPartition>,
}

/// One session, or none yet.
#[derive(Debug, Default)]
pub(crate) struct FetchSession {
    /// 0 is none; with an epoch of 0 the leader is to close it and to begin another.
    id: i32,
    epoch: i32,
    partitions: BTreeMap<TopicIdPartition, Position>,
}

impl FetchSession {
    /// The next request, for these partitions and no others.
    pub(crate) fn ask(&mut self, wanted: &BTreeMap<TopicIdPartition, FetchState>) -> SessionRequest {
        if self.epoch == 0 {
            self.partitions.clear();
        }
        let forgotten: Vec<_> =
            self.partitions.keys().filter(|id| !wanted.contains_key(id)).copied().collect();
        for id in &forgotten {
            self.partitions.remove(id);
        }
        let mut named = Vec::new();
        for (id, state) in wanted {
            let position = Position::of(state);
            if self.partitions.insert(*id, position) != Some(position) {
                named.push((*id, *state));
            }
        }
        SessionRequest { session_id: self.id, session_epoch: self.epoch, named, forgotten }
    }

    /// The leader answered, with a session or without.
    pub(crate) fn handle_answer(&mut self, session_id: i32) {
        self.epoch = match (session_id, self.epoch) {
            (0, _) => 0,
            (_, i32::MAX) => 1,
            (_, epoch) => epoch + 1,
        };
        self.id = session_id;
    }

    /// The leader refused the request as a whole. Whether the next one may help, which begins a session.
    pub(crate) fn handle_error(&mut self, error: ErrorCode) -> bool {
        let was_known = self.epoch != 0;
        self.epoch = 0;
        if error == ErrorCode::FetchSessionIdNotFound {
            self.id = 0;
        }
        let is_of_session = matches!(
            error,
            ErrorCode::FetchSessionIdNotFound
                | ErrorCode::InvalidFetchSessionEpoch
                | ErrorCode::FetchSessionTopicIdError
        );
        was_known && is_of_session
    }

    /// There is no answer: whether the leader went on with the session is not known.
    pub(crate) fn handle_failure(&mut self) {
        self.epoch = 0;
    }
}

#[cfg(test)]
mod tests {
    use model::{NodeId, Uuid};
    use replica::QuestionId;

    use super::*;

    fn id(partition: i32) -> TopicIdPartition {
        TopicIdPartition { topic_id: Uuid([7; 16]), partition }
    }

    fn wanted(partitions: &[(i32, i64)]) -> BTreeMap<TopicIdPartition, FetchState> {
        let state = |offset| FetchState {
            id: QuestionId(0),
            leader: NodeId(1),
            leader_epoch: LeaderEpoch(0),
            offset: Offset(offset),
            last_fetched_epoch: None,
            log_start: Offset(0),
        };
        partitions.iter().map(|(partition, offset)| (id(*partition), state(*offset))).collect()
    }

    /// Session id and epoch, the partitions that are named, and those that are forgotten.
    fn said(request: &SessionRequest) -> (i32, i32, Vec<i32>, Vec<i32>) {
        let named = request.named.iter().map(|(id, _)| id.partition).collect();
        let forgotten = request.forgotten.iter().map(|id| id.partition).collect();
        (request.session_id, request.session_epoch, named, forgotten)
    }

    #[test]
    fn a_session_names_what_is_new_or_moved_and_what_is_no_longer_wanted() {
        let mut session = FetchSession::default();
        assert_eq!(said(&session.ask(&wanted(&[(0, 0), (1, 5)]))), (0, 0, vec![0, 1], vec![]));
        session.handle_answer(9);
        assert_eq!(said(&session.ask(&wanted(&[(0, 0), (1, 6)]))), (9, 1, vec![1], vec![]));
        session.handle_answer(9);
        assert_eq!(said(&session.ask(&wanted(&[(1, 6), (2, 0)]))), (9, 2, vec![2], vec![0]));
        session.handle_answer(9);
        assert_eq!(said(&session.ask(&wanted(&[(0, 0), (1, 6), (2, 0)]))), (9, 3, vec![0], vec![]));
    }

    #[test]
    fn without_a_session_all_is_named_each_time() {
        let mut session = FetchSession::default();
        for _ in 0..2 {
            assert_eq!(said(&session.ask(&wanted(&[(0, 0)]))), (0, 0, vec![0], vec![]));
            session.handle_answer(0);
        }
    }

    #[test]
    fn after_a_failure_or_an_error_a_new_session_begins_and_the_old_one_is_closed() {
        let mut session = FetchSession::default();
        session.ask(&wanted(&[(0, 0)]));
        session.handle_answer(9);
        session.handle_failure();
        assert_eq!(said(&session.ask(&wanted(&[(0, 0)]))), (9, 0, vec![0], vec![]));
        session.handle_answer(10);
        assert!(session.handle_error(ErrorCode::FetchSessionIdNotFound), "the next request may help");
        assert_eq!(said(&session.ask(&wanted(&[(0, 0)]))), (0, 0, vec![0], vec![]));
        assert!(!session.handle_error(ErrorCode::FetchSessionIdNotFound), "there was no session to lose");
    }
}
