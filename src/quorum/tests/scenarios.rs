//! What a quorum does, told step by step.

mod simulation;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use model::{NodeId, Offset, Uuid};
use quorum::{ReplicaKey, Request, RoleName, VoterChangeError};
use simulation::network::{Body, Message};
use simulation::random::{come_to_rest, heal};
use simulation::steps::{LONG, millis};
use simulation::world::{Verdict, World};

fn voter_ids(world: &World, at: usize) -> Vec<i32> {
    world.quorum(at).voters().current().iter().map(|voter| voter.key.id.0).collect()
}

#[test]
fn five_voters_commit_with_two_of_them_down() {
    let mut world = World::new(1, 5, 0, None);
    world.led_by_first(1);
    world.crash(3);
    world.crash(4);
    world.append_many(0, 3);
    world.settle();
    assert_eq!(world.watermark(2), world.end(0));
    let before = world.watermark(0);
    world.crash(2);
    world.append_many(0, 1);
    world.run_for(millis(200));
    assert_eq!(world.watermark(0), before, "two of five commit nothing");
}

#[test]
fn all_nodes_lose_power_at_once_and_nothing_committed_is_lost() {
    let mut world = World::new(1, 3, 1, None);
    world.led_by_first(5);
    let committed = world.oracle.committed_end();
    for at in 0..4 {
        world.crash_hard(at);
    }
    heal(&mut world);
    come_to_rest(&mut world);
    assert!(world.watermark(3) > committed);
}

#[test]
fn a_leader_that_resigns_hands_over_to_the_voter_with_the_most() {
    let mut world = World::new(1, 3, 0, None);
    world.led_by_first(1);
    world.no_rule();
    world.network.cut(0, 1);
    world.append_many(0, 1);
    world.run_for(millis(100));
    world.network.heal();
    let epoch = world.epoch(0);
    world.resign(0);
    world.run_for(millis(50));
    assert_eq!(world.role(2), Some(RoleName::Leader), "{}", world.describe());
    assert_eq!(world.epoch(2).0, epoch.0 + 1);
}

#[test]
fn a_leader_takes_nothing_before_its_epoch_is_committed() {
    let mut world = World::new(1, 3, 0, None);
    world.elect_but(0, Message::is_fetch);
    world.run_for(millis(100));
    assert_eq!(world.role(0), Some(RoleName::Leader));
    assert!(!world.append(0, 1));
    assert_eq!(world.watermark(0), Offset(0));
    world.no_rule();
    world.settle();
    assert!(world.append(0, 1));
}

#[test]
fn votes_that_arrive_late_elect_a_leader_without_what_was_committed_since() {
    let mut world = World::new(2, 5, 0, None);
    world.led_by_first(1);
    world.set_rule(|message| match message.from {
        4 if message.is_vote() => Verdict::Hold,
        from if message.is_campaign() && from != 4 => Verdict::Drop,
        _ => Verdict::Pass,
    });
    world.resign(0);
    assert!(world.run_until(LONG, |world| world.role(4) == Some(RoleName::Candidate)));
    let late = world.epoch(4);
    // The voters' answers stay on the way, until another leads and has committed.
    world.set_rule(|message| match message.to {
        4 if message.is_vote_answer() => Verdict::Hold,
        4 => Verdict::Drop,
        _ => Verdict::Pass,
    });
    world.release(Message::is_vote);
    let before = world.oracle.committed_end();
    assert!(world.run_until(LONG, |world| world.oracle.committed_end() > before));
    assert_eq!((world.role(4), world.epoch(4)), (Some(RoleName::Candidate), late));
    assert!(world.end(4) <= before);
    world.release(Message::is_vote_answer);
    let elected = |world: &World| world.role(4) == Some(RoleName::Leader);
    assert!(world.run_until(millis(50), elected), "{}", world.describe());
    world.no_rule();
    world.settle();
}

#[test]
fn an_observer_follows_and_never_campaigns() {
    let mut world = World::new(1, 1, 1, None);
    world.led_by_first(3);
    world.no_rule();
    assert_eq!(world.watermark(1), world.watermark(0));
    let epoch = world.epoch(1);
    world.crash(0);
    world.run_for(Duration::from_secs(10));
    assert_eq!((world.role(1), world.epoch(1)), (Some(RoleName::Unattached), epoch));
    world.start(0);
    world.settle();
    assert_eq!(world.watermark(1), world.watermark(0), "it found the leader again");
}

#[test]
fn a_restarted_leader_resigns_before_the_others_miss_it() {
    let mut world = World::new(1, 3, 0, None);
    world.led_by_first(1);
    world.no_rule();
    let epoch = world.epoch(0);
    world.crash_hard(0);
    world.start(0);
    assert_eq!(world.role(0), Some(RoleName::Resigned));
    world.run_for(millis(100));
    assert_eq!(world.epoch(1).0, epoch.0 + 1, "no timeout was waited for: {}", world.describe());
}

#[test]
fn two_voters_that_campaign_at_once_come_to_terms() {
    for seed in 0..20 {
        let mut world = World::new(seed, 2, 0, None);
        world.settle();
        world.append_many(world.active_leaders()[0], 1);
        world.settle();
    }
}

/// Positions that are asked for, in a rule that loses the `lost`-th answer.
fn record_pieces(world: &mut World, lost: usize) -> Rc<RefCell<Vec<u64>>> {
    let positions = Rc::new(RefCell::new(Vec::new()));
    let recorded = Rc::clone(&positions);
    let answered = RefCell::new(0);
    world.set_rule(move |message| {
        if let Body::Request { request: Request::FetchSnapshot(piece), .. } = &message.body {
            recorded.borrow_mut().push(piece.position);
        }
        if let Body::Response { response: quorum::Response::FetchSnapshot(_), .. } = &message.body {
            *answered.borrow_mut() += 1;
            if *answered.borrow() == lost {
                return Verdict::Drop;
            }
        }
        Verdict::Pass
    });
    positions
}

// The third voter sleeps while the others move on and delete what it would need.
fn with_a_sleeper(world: &mut World) {
    world.led_by_first(1);
    world.crash(2);
    world.append_many(0, 10);
    world.settle();
    for at in [0, 1] {
        world.snapshot_of(at, 3_500);
        world.clean(at);
    }
    world.append_many(0, 3);
    world.settle();
    world.start(2);
}

#[test]
fn a_snapshot_is_fetched_in_pieces_and_goes_on_after_a_lost_answer() {
    let mut world = World::new(1, 3, 0, None);
    with_a_sleeper(&mut world);
    let positions = record_pieces(&mut world, 3);
    let whole = |world: &World| world.watermark(2) == world.end(0);
    assert!(world.run_until(LONG, whole), "{}", world.describe());
    assert_eq!(*positions.borrow(), [0, 1_000, 2_000, 2_000, 3_000]);
    assert_eq!(world.quorum(2).log().start(), world.quorum(0).log().start());
}

#[test]
fn another_leaders_snapshot_is_fetched_from_its_beginning() {
    let mut world = World::new(1, 3, 0, None);
    with_a_sleeper(&mut world);
    let positions = record_pieces(&mut world, usize::MAX);
    let halfway = |world: &World| positions.borrow().len() == 3 && world.is_up(2);
    assert!(world.run_until(LONG, halfway));
    world.crash(0);
    let whole = |world: &World| world.watermark(2) == world.end(1) && world.active_leaders() == [1];
    assert!(world.run_until(LONG, whole), "{}", world.describe());
    positions.borrow_mut().dedup();
    assert_eq!(*positions.borrow(), [0, 1_000, 2_000, 0, 1_000, 2_000, 3_000]);
}

#[test]
fn one_voter_grows_to_three_and_its_first_may_go() {
    let mut world = World::new(1, 1, 2, None);
    world.led_by_first(3);
    world.no_rule();
    for added in [1, 2] {
        world.add_voter(0, added);
        world.settle();
    }
    assert_eq!(world.changes, [Ok(()), Ok(())]);
    assert_eq!(voter_ids(&world, 2), [1, 2, 3]);
    let first = world.nodes[0].key;
    world.remove_voter(0, first);
    assert_eq!(world.role(0), Some(RoleName::Leader), "until that is committed");
    let is_led_by_another = |world: &World| world.active_leaders().iter().any(|at| *at != 0);
    assert!(world.run_until(LONG, is_led_by_another));
    world.settle();
    assert_eq!(world.changes[2], Ok(()));
    assert_eq!(voter_ids(&world, 0), [2, 3]);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.role(0), Some(RoleName::Follower), "it goes on as an observer");
}

#[test]
fn changes_of_voters_that_make_no_sense_are_refused() {
    let mut world = World::new(1, 1, 2, None);
    world.led_by_first(1);
    world.no_rule();
    let (first, stranger) = (world.nodes[0].key, ReplicaKey::new(NodeId(9), Uuid([9; 16])));
    world.add_voter(0, 0);
    world.remove_voter(0, stranger);
    world.remove_voter(0, first);
    world.add_voter(1, 2);
    world.crash(2);
    world.add_voter(0, 2);
    world.add_voter(0, 1);
    world.run_for(Duration::from_secs(1));
    let refusals = [
        VoterChangeError::Duplicate,
        VoterChangeError::NotFound,
        VoterChangeError::LastVoter,
        VoterChangeError::NotLeader,
        VoterChangeError::Busy,
        VoterChangeError::NotCaughtUp,
    ];
    assert_eq!(world.changes, refusals.map(Err));
}

#[test]
fn a_voter_on_a_new_disk_observes_until_it_is_added() {
    let mut world = World::new(1, 3, 0, None);
    world.led_by_first(3);
    world.no_rule();
    let lost = world.nodes[2].key;
    world.replace_disk(2);
    world.start(2);
    world.settle();
    assert_eq!(world.watermark(2), world.watermark(0), "it follows");
    world.crash(0);
    world.run_for(Duration::from_secs(5));
    assert!(world.active_leaders().is_empty(), "and gives no vote in the place of the lost one");
    world.start(0);
    world.settle();
    let leader = world.active_leaders()[0];
    world.add_voter(leader, 2);
    world.settle();
    world.remove_voter(leader, lost);
    world.settle();
    world.add_voter(leader, 2);
    world.settle();
    assert_eq!(world.changes, [Err(VoterChangeError::Duplicate), Ok(()), Ok(())]);
    world.crash(leader);
    world.settle();
}

#[test]
fn a_voter_that_holds_its_own_removal_and_the_longest_log_still_campaigns() {
    let mut world = World::new(1, 2, 0, None);
    world.led_by_first(1);
    world.no_rule();
    world.isolate(0);
    let first = world.nodes[0].key;
    world.remove_voter(0, first);
    world.run_for(millis(50));
    world.crash_hard(0);
    world.network.heal();
    world.start(0);
    world.settle();
    assert_eq!(voter_ids(&world, 1), [2]);
    assert_eq!(world.active_leaders(), [1]);
}

#[test]
fn a_removed_voter_that_missed_its_removal_disturbs_nobody() {
    let mut world = World::new(1, 4, 0, None);
    world.led_by_first(1);
    world.no_rule();
    world.crash(3);
    let fourth = world.nodes[3].key;
    world.remove_voter(0, fourth);
    world.settle();
    let epoch = world.epoch(0);
    world.network.cut(0, 3);
    world.start(3);
    world.run_for(Duration::from_secs(10));
    assert_eq!((world.epoch(0), world.epoch(3)), (epoch, epoch));
    world.network.heal();
    world.settle();
    assert_eq!(voter_ids(&world, 3), [1, 2, 3]);
}

#[test]
fn a_leader_describes_its_quorum() {
    let mut world = World::new(1, 3, 1, None);
    world.led_by_first(1);
    world.crash(2);
    world.append_many(0, 1);
    world.settle();
    let description = world.quorum(0).describe(world.now).expect("it leads");
    let ends: Vec<_> = description.voters.iter().map(|voter| voter.log_end).collect();
    let (end, before) = (world.end(0), Offset(world.end(0).0 - 2));
    assert_eq!(ends, [Some(end), Some(end), Some(before)]);
    assert_eq!(description.observers.len(), 1);
    assert_eq!(description.observers[0].key, world.nodes[3].key);
    assert!(description.voters[1].last_caught_up > description.voters[2].last_caught_up);
    assert_eq!(world.quorum(1).describe(world.now), None);
}
