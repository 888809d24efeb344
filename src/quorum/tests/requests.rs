//! What a node answers to requests that are wrong in one way each.

use std::time::Duration;

use model::{ErrorCode, Instant, LeaderEpoch, NodeId, Offset, Uuid};
use quorum::{
    Action, BeginQuorumEpochRequest, Boot, Config, CurrentLeader, EndQuorumEpochRequest, EpochEnd,
    EpochStart, FetchRequest, FetchResponse, FetchSnapshotRequest, LogView, Peer, Quorum, ReplicaKey,
    Request, Response, RoleName, SnapshotId, Token, VoteRequest, Voter, VoterHistory, VoterSet,
};

const EPOCH: LeaderEpoch = LeaderEpoch(1);
const NOW: Instant = Instant(0);
const SNAPSHOT: SnapshotId = SnapshotId { end: Offset(3), epoch: EPOCH };

fn key(id: i32) -> ReplicaKey {
    ReplicaKey::new(NodeId(id), Uuid([id as u8; 16]))
}

/// The leader of epoch 1, which has three records and a snapshot of them.
fn leader() -> Quorum {
    let voters: VoterSet = [Voter::new(key(1))].into_iter().collect();
    let boot = Boot { voters: VoterHistory::bootstrap(voters), ..Boot::default() };
    let mut quorum = Quorum::open(Config::default(), key(1), 0, 1, boot, NOW);
    quorum.handle_flushed(NOW, Offset(3), 0);
    quorum.handle_snapshot_made(NOW, SNAPSHOT, 1_000);
    quorum.take_actions();
    quorum
}

/// A node of the same set that has just started, in epoch 0.
fn observer() -> Quorum {
    Quorum::open(Config::default(), key(2), 0, 1, Boot::default(), NOW)
}

fn ask(quorum: &mut Quorum, request: Request) -> Response {
    quorum.handle_request(NOW, Token(7), request);
    let answers = quorum.take_actions().into_iter().filter_map(|action| match action {
        Action::Respond { token: Token(7), response } => Some(response),
        Action::RespondRecords { token: Token(7), response, .. } => Some(Response::Fetch(response)),
        _ => None,
    });
    let answers: Vec<_> = answers.collect();
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    answer.clone()
}

fn error(answer: &Response) -> ErrorCode {
    match answer {
        Response::Vote(answer) => answer.error,
        Response::BeginQuorumEpoch(answer) | Response::EndQuorumEpoch(answer) => answer.error,
        Response::Fetch(answer) => answer.error,
        Response::FetchSnapshot(answer) => answer.error,
    }
}

fn vote() -> VoteRequest {
    let log_end = EpochEnd { epoch: EPOCH, end: Offset(3) };
    VoteRequest { epoch: LeaderEpoch(2), candidate: key(3), voter: key(1), log_end, pre_vote: false }
}

fn fetch() -> FetchRequest {
    FetchRequest {
        replica: key(2),
        epoch: EPOCH,
        fetch_offset: Offset(3),
        last_fetched_epoch: EPOCH,
        high_watermark: Offset(0),
        wait: Duration::ZERO,
    }
}

fn piece() -> FetchSnapshotRequest {
    FetchSnapshotRequest { replica: key(2), epoch: EPOCH, id: SNAPSHOT, position: 0, bytes_max: 600 }
}

fn begin(epoch: i32, leader: i32, voter: ReplicaKey) -> Request {
    Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
        epoch: LeaderEpoch(epoch),
        leader: NodeId(leader),
        voter,
    })
}

#[test]
fn votes_are_refused_with_their_reason() {
    let refused = |request: VoteRequest| error(&ask(&mut leader(), Request::Vote(request)));
    assert_eq!(refused(VoteRequest { epoch: LeaderEpoch(0), ..vote() }), ErrorCode::InvalidRequest);
    assert_eq!(refused(VoteRequest { candidate: key(-1), ..vote() }), ErrorCode::InvalidRequest);
    let start = EpochEnd { epoch: LeaderEpoch(0), end: Offset(0) };
    assert_eq!(
        refused(VoteRequest { epoch: LeaderEpoch(0), log_end: start, pre_vote: true, ..vote() }),
        ErrorCode::FencedLeaderEpoch
    );
    let other_disk = ReplicaKey::new(NodeId(1), Uuid([9; 16]));
    assert_eq!(refused(VoteRequest { voter: other_disk, ..vote() }), ErrorCode::InvalidVoterKey);
    assert_eq!(refused(vote()), ErrorCode::None);
}

#[test]
fn a_vote_is_given_once_an_epoch_and_only_for_a_log_that_reaches() {
    let granted = |quorum: &mut Quorum, request: VoteRequest| match ask(quorum, Request::Vote(request)) {
        Response::Vote(answer) => answer.granted,
        other => panic!("{other:?}"),
    };
    let mut quorum = leader();
    let shorter = EpochEnd { epoch: EPOCH, end: Offset(2) };
    assert!(!granted(&mut quorum, VoteRequest { log_end: shorter, ..vote() }));
    assert!(granted(&mut quorum, vote()));
    assert!(granted(&mut quorum, vote()), "the same candidate may ask again");
    assert!(!granted(&mut quorum, VoteRequest { candidate: key(4), ..vote() }));
    assert!(granted(&mut quorum, VoteRequest { candidate: key(4), epoch: LeaderEpoch(3), ..vote() }));
}

#[test]
fn the_vote_is_written_down_before_it_is_answered() {
    let mut quorum = leader();
    quorum.handle_request(NOW, Token(7), Request::Vote(vote()));
    let actions = quorum.take_actions();
    let persisted = actions
        .iter()
        .position(|action| matches!(action, Action::Persist(hard) if hard.voted == Some(key(3))));
    let answered = actions.iter().position(|action| matches!(action, Action::Respond { .. }));
    assert!(persisted.expect("it is written down") < answered.expect("it is answered"));
}

#[test]
fn fetches_are_refused_with_their_reason_and_without_a_high_watermark() {
    let refused = |quorum: &mut Quorum, request: FetchRequest| match ask(quorum, Request::Fetch(request)) {
        Response::Fetch(answer) => (answer.error, answer.high_watermark),
        other => panic!("{other:?}"),
    };
    let cases = [
        (
            FetchRequest { epoch: LeaderEpoch(0), last_fetched_epoch: LeaderEpoch(0), ..fetch() },
            ErrorCode::FencedLeaderEpoch,
        ),
        (FetchRequest { epoch: LeaderEpoch(2), ..fetch() }, ErrorCode::UnknownLeaderEpoch),
        (FetchRequest { fetch_offset: Offset(-1), ..fetch() }, ErrorCode::InvalidRequest),
        (FetchRequest { last_fetched_epoch: LeaderEpoch(2), ..fetch() }, ErrorCode::InvalidRequest),
        (FetchRequest { replica: key(1), ..fetch() }, ErrorCode::InvalidRequest),
    ];
    for (request, expected) in cases {
        assert_eq!(refused(&mut leader(), request), (expected, None), "{request:?}");
    }
    let of_start = FetchRequest { epoch: LeaderEpoch(0), last_fetched_epoch: LeaderEpoch(0), ..fetch() };
    let of_start = FetchRequest { replica: key(3), ..of_start };
    assert_eq!(refused(&mut observer(), of_start), (ErrorCode::NotLeaderOrFollower, None));
    assert_eq!(refused(&mut leader(), fetch()), (ErrorCode::None, Some(Offset(3))));
}

#[test]
fn a_fetch_waits_for_news_and_no_longer_than_it_may() {
    let mut quorum = leader();
    let patient = FetchRequest { high_watermark: Offset(3), wait: Duration::from_millis(100), ..fetch() };
    quorum.handle_request(NOW, Token(8), Request::Fetch(patient));
    assert_eq!(quorum.take_actions(), [], "there is nothing new");
    assert_eq!(quorum.deadline(), Some(NOW.plus(Duration::from_millis(100))));
    quorum.append(NOW, EPOCH, 2).expect("it leads");
    let answered = quorum.take_actions().into_iter().any(|action| {
        matches!(action, Action::RespondRecords { token: Token(8), start: Offset(3), end: Offset(5), .. })
    });
    assert!(answered);
    let patient = FetchRequest { fetch_offset: Offset(5), ..patient };
    quorum.handle_request(NOW, Token(9), Request::Fetch(patient));
    quorum.take_actions();
    quorum.handle_tick(NOW.plus(Duration::from_millis(100)));
    assert!(matches!(quorum.take_actions()[..], [Action::Respond { token: Token(9), .. }]));
}

#[test]
fn pieces_of_a_snapshot_are_bounded() {
    let answered = |request: FetchSnapshotRequest| match ask(&mut leader(), Request::FetchSnapshot(request)) {
        Response::FetchSnapshot(answer) => (answer.error, answer.size, answer.length),
        other => panic!("{other:?}"),
    };
    assert_eq!(answered(piece()), (ErrorCode::None, 1_000, 600));
    assert_eq!(answered(FetchSnapshotRequest { position: 900, ..piece() }), (ErrorCode::None, 1_000, 100));
    assert_eq!(
        answered(FetchSnapshotRequest { position: 1_000, ..piece() }).0,
        ErrorCode::PositionOutOfRange
    );
    assert_eq!(
        answered(FetchSnapshotRequest { position: u64::MAX, ..piece() }).0,
        ErrorCode::PositionOutOfRange
    );
    let unknown = SnapshotId { end: Offset(2), ..SNAPSHOT };
    assert_eq!(answered(FetchSnapshotRequest { id: unknown, ..piece() }).0, ErrorCode::SnapshotNotFound);
    assert_eq!(
        answered(FetchSnapshotRequest { epoch: LeaderEpoch(0), ..piece() }).0,
        ErrorCode::FencedLeaderEpoch
    );
}

#[test]
fn a_leader_makes_itself_known_to_those_that_it_means() {
    let mut quorum = observer();
    assert_eq!(error(&ask(&mut quorum, begin(4, 2, key(2)))), ErrorCode::InvalidRequest, "it does not lead");
    assert_eq!(error(&ask(&mut quorum, begin(4, 1, key(2)))), ErrorCode::None);
    assert_eq!((quorum.epoch(), quorum.leader()), (LeaderEpoch(4), Some(NodeId(1))));
    assert_eq!(error(&ask(&mut quorum, begin(3, 1, key(2)))), ErrorCode::FencedLeaderEpoch);
    assert_eq!(
        error(&ask(&mut quorum, begin(4, 3, key(2)))),
        ErrorCode::InvalidRequest,
        "one leader an epoch"
    );
    let other_disk = ReplicaKey::new(NodeId(2), Uuid([9; 16]));
    assert_eq!(error(&ask(&mut quorum, begin(5, 3, other_disk))), ErrorCode::InvalidVoterKey);
    assert_eq!(quorum.leader(), Some(NodeId(3)), "it knows now whom to follow");
    let end = EndQuorumEpochRequest { epoch: EPOCH, leader: NodeId(3), preferred: Vec::new() };
    assert_eq!(error(&ask(&mut quorum, Request::EndQuorumEpoch(end))), ErrorCode::FencedLeaderEpoch);
}

#[test]
fn a_record_without_voters_lets_nobody_be_elected() {
    let mut voters = VoterHistory::bootstrap([Voter::new(key(1))].into_iter().collect());
    voters.append(Offset(2), VoterSet::default());
    let epochs = [EpochStart { epoch: EPOCH, start: Offset(0) }];
    let log = LogView::found(Offset(0), LeaderEpoch(0), &epochs, Offset(3));
    let mut quorum =
        Quorum::open(Config::default(), key(1), 0, 1, Boot { voters, log, ..Boot::default() }, NOW);
    for seconds in 1..20 {
        quorum.handle_tick(NOW.plus(Duration::from_secs(seconds)));
        assert_ne!(quorum.role(), RoleName::Leader);
    }
    assert_eq!(quorum.epoch(), EPOCH);
}

/// Voter 2 of three, which hears from the leader, 1, in epoch 4.
fn follower() -> Quorum {
    let voters: VoterSet = [1, 2, 3].map(|id| Voter::new(key(id))).into_iter().collect();
    let boot = Boot { voters: VoterHistory::bootstrap(voters), ..Boot::default() };
    let mut quorum = Quorum::open(Config::default(), key(2), 0, 1, boot, NOW);
    quorum.handle_request(NOW, Token(1), begin(4, 1, key(2)));
    hear_leader(&mut quorum, NOW);
    quorum
}

/// The leader answers the Fetch that is under way.
fn hear_leader(quorum: &mut Quorum, now: Instant) {
    let mut asked = quorum.take_actions().into_iter().filter_map(|action| match action {
        Action::Send { to: Peer::Node(NodeId(1)), id, request: Request::Fetch(_) } => Some(id),
        _ => None,
    });
    let sent = asked.next_back();
    let current = CurrentLeader { epoch: LeaderEpoch(4), leader: Some(NodeId(1)) };
    let answer = FetchResponse {
        error: ErrorCode::None,
        current,
        high_watermark: None,
        log_start: Offset(0),
        diverging: None,
        snapshot: None,
        batches: Vec::new(),
    };
    quorum.handle_response(now, sent.expect("it fetches"), Response::Fetch(answer));
}

fn would_vote(quorum: &mut Quorum) -> bool {
    let log_end = EpochEnd { epoch: LeaderEpoch(0), end: Offset(0) };
    let request =
        VoteRequest { epoch: LeaderEpoch(4), candidate: key(3), voter: key(2), log_end, pre_vote: true };
    match ask(quorum, Request::Vote(request)) {
        Response::Vote(answer) => answer.granted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_leader_that_cannot_be_reached_is_soon_given_up() {
    let mut quorum = follower();
    assert!(!would_vote(&mut quorum), "it hears from its leader");
    quorum.handle_unreachable(NOW, NodeId(3));
    assert!(!would_vote(&mut quorum), "that one does not lead");
    quorum.handle_unreachable(NOW, NodeId(1));
    assert!(would_vote(&mut quorum));
    assert_eq!(quorum.role(), RoleName::Follower, "the others are to notice first");
    quorum.handle_tick(NOW.plus(Duration::from_millis(100)));
    assert_eq!(quorum.role(), RoleName::Prospective);
}

#[test]
fn a_leader_that_is_back_at_once_is_kept() {
    let mut quorum = follower();
    quorum.handle_unreachable(NOW, NodeId(1));
    let soon = NOW.plus(Duration::from_millis(15));
    hear_leader(&mut quorum, soon);
    assert!(!would_vote(&mut quorum));
    quorum.handle_tick(soon.plus(Duration::from_millis(100)));
    assert_eq!(quorum.role(), RoleName::Follower);
}
