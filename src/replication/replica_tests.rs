//! Partitions with several replicas: brokers in a simulated network, and a controller that does what a test tells it.

mod brokers;
mod serving;

use std::time::Duration;

use brokers::Brokers;
use model::Offset;
use sim::{Kind, LinkSpeed, World};

use crate::*;

fn scene(count: i32) -> (World, Brokers) {
    scene_of(count, &[("min.insync.replicas", "2")])
}

fn scene_of(count: i32, configs: &[(&str, &str)]) -> (World, Brokers) {
    let world = World::new(17);
    let brokers = Brokers::new(&world, count, configs);
    (world, brokers)
}

/// Cuts a broker off from the others, or ends that.
fn cut(world: &World, brokers: &Brokers, id: i32, is_cut: bool) {
    let act = if is_cut { World::cut } else { World::mend };
    for other in brokers.nodes.iter().filter(|other| other.name() != brokers.node(id).name()) {
        act(world, brokers.node(id), other);
        act(world, other, brokers.node(id));
    }
}

#[test]
fn a_follower_catches_up_and_its_log_is_the_leaders() {
    let (world, brokers) = scene(2);
    world.run(async {
        brokers.start_all().await;
        for value in ["a", "b", "c"] {
            brokers.produce(1, value, 5).await.expect("committed");
        }
        brokers.sleep(1).await;
        assert_eq!((brokers.shape(1), brokers.shape(2)), ([0, 3, 3], [0, 3, 3]));
        assert_eq!(brokers.log(1), brokers.log(2));
    });
}

#[test]
fn a_record_is_committed_when_every_replica_in_sync_has_it() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        cut(&world, &brokers, 3, true);
        assert_eq!(brokers.produce(1, "b", 1).await, Err(CommitError::TimedOut));
        cut(&world, &brokers, 3, false);
        assert_eq!(brokers.produce(1, "c", 5).await, Ok(Offset(3)));
    });
}

#[test]
fn a_record_is_not_committed_before_the_follower_has_flushed_it() {
    let (world, brokers) = scene(2);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        brokers.node(2).set_disk_latency(Duration::from_secs(2)..Duration::from_secs(3));
        assert_eq!(brokers.produce(1, "b", 1).await, Err(CommitError::TimedOut));
        assert_eq!(brokers.produce(1, "c", 9).await, Ok(Offset(3)));
    });
}

#[test]
fn a_follower_that_lags_leaves_the_isr_and_joins_again_when_it_has_caught_up() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        cut(&world, &brokers, 3, true);
        assert_eq!(brokers.produce(1, "b", 10).await, Ok(Offset(2)));
        assert_eq!(brokers.isr(), [1, 2]);
        cut(&world, &brokers, 3, false);
        brokers.sleep(40).await;
        assert_eq!(brokers.isr(), [1, 2, 3]);
        assert_eq!(brokers.log(1), brokers.log(3));
    });
}

#[test]
fn a_follower_that_is_slow_but_catches_up_stays_in_sync() {
    let (world, brokers) = scene(2);
    world.run(async {
        brokers.start_all().await;
        let second = Duration::from_millis(300);
        let slow = LinkSpeed { latency: second..second * 2, ..LinkSpeed::default() };
        world.set_speed(brokers.node(1), brokers.node(2), slow);
        for value in 0..30 {
            brokers.produce(1, &value.to_string(), 5).await.expect("committed");
        }
        assert_eq!(brokers.isr(), [1, 2]);
    });
}

#[test]
fn a_new_leaders_log_is_followed_and_what_diverges_is_cut() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        cut(&world, &brokers, 1, true);
        assert_eq!(brokers.produce(1, "lost", 1).await, Err(CommitError::TimedOut));
        brokers.elect(&[2, 3]);
        assert_eq!(brokers.produce(2, "b", 5).await, Ok(Offset(2)));
        cut(&world, &brokers, 1, false);
        brokers.sleep(40).await;
        assert_eq!(brokers.isr(), [1, 2, 3]);
        assert_eq!(brokers.log(1), brokers.log(2));
        assert_eq!(brokers.log(3), brokers.log(2));
    });
}

#[test]
fn a_cut_that_finds_too_many_open_files_is_tried_again_and_nothing_is_acknowledged_before() {
    for opened in 0..8 {
        let (world, brokers) = scene(3);
        world.run(async {
            brokers.start_all().await;
            brokers.produce(1, "a", 5).await.expect("committed");
            brokers.kill(1);
            brokers.elect(&[2, 3]);
            brokers.start(1).await;
            brokers.sleep(5).await;
            brokers.elect(&[1, 2, 3]);
            brokers.leads(1).await;
            cut(&world, &brokers, 1, true);
            assert_eq!(brokers.produce(1, "lost", 1).await, Err(CommitError::TimedOut));
            brokers.node(1).disk().fail(Kind::Open, "/d/orders-0", opened, u64::MAX);
            brokers.elect(&[2, 3]);
            cut(&world, &brokers, 1, false);
            assert_eq!(brokers.produce(2, "b", 5).await, Ok(Offset(2)));
            brokers.sleep(20).await;
            brokers.node(1).disk().heal();
            brokers.sleep(20).await;
            assert_eq!((brokers.isr(), brokers.log(1)), (vec![1, 2, 3], brokers.log(2)), "opened {opened}");
        });
    }
}

#[test]
fn who_waits_at_a_leader_that_is_one_no_more_is_told() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        cut(&world, &brokers, 1, true);
        let elect = async {
            brokers.sleep(1).await;
            brokers.elect(&[2, 3]);
        };
        let (told, ()) = tokio::join!(biased; brokers.produce(1, "lost", 60), elect);
        assert_eq!(told, Err(CommitError::Partition(PartitionError::NotLeader)));
    });
}

#[test]
fn what_was_committed_survives_the_power_loss_of_the_leader() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        for value in ["a", "b"] {
            brokers.produce(1, value, 5).await.expect("committed");
        }
        brokers.power_loss(1);
        brokers.elect(&[2, 3]);
        assert_eq!(brokers.produce(2, "c", 5).await, Ok(Offset(3)));
        assert_eq!(brokers.start(1).await, 0, "nothing is lost");
        brokers.sleep(40).await;
        assert_eq!(brokers.log(1), brokers.log(2));
        assert_eq!(brokers.shape(1), [0, 3, 3]);
    });
}

#[test]
fn a_follower_whose_disk_is_empty_gets_all_again() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        for value in ["a", "b"] {
            brokers.produce(1, value, 5).await.expect("committed");
        }
        brokers.power_loss(3);
        brokers.node(3).replace_disk();
        brokers.elect(&[1, 2]);
        brokers.start(3).await;
        brokers.sleep(10).await;
        assert_eq!(brokers.isr(), [1, 2, 3]);
        assert_eq!(brokers.log(3), brokers.log(1));
    });
}

#[test]
fn a_follower_behind_what_its_leader_has_deleted_begins_anew_there() {
    let (world, brokers) = scene_of(2, &[("retention.ms", "1000")]);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        brokers.kill(2);
        brokers.elect(&[1]);
        brokers.produce(1, "b", 5).await.expect("committed");
        brokers.sleep(200).await;
        assert_eq!(brokers.shape(1), [2, 2, 2]);
        brokers.start(2).await;
        brokers.sleep(10).await;
        assert_eq!((brokers.shape(2), brokers.isr()), ([2, 2, 2], vec![1, 2]));
        assert_eq!(brokers.produce(1, "c", 5).await, Ok(Offset(3)));
    });
}

#[test]
fn where_a_topic_caches_writes_a_follower_that_lost_some_says_so_before_it_takes_part() {
    let (world, brokers) = scene_of(2, &[("write.caching", "true")]);
    world.run(async {
        brokers.start_all().await;
        for value in 0..50 {
            brokers.produce(1, &value.to_string(), 5).await.expect("committed");
        }
        brokers.sleep(20).await;
        brokers.power_loss(2);
        brokers.elect(&[1]);
        assert_eq!(brokers.start(2).await, 1, "its checkpoint knows of more than its log holds");
        brokers.sleep(10).await;
        assert_eq!((brokers.log(2), brokers.isr()), (brokers.log(1), vec![1, 2]));
    });
}

#[test]
fn a_leader_that_was_killed_does_not_go_on_in_its_old_epoch() {
    let (world, brokers) = scene(2);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        brokers.kill(1);
        brokers.start(1).await;
        brokers.sleep(5).await;
        let partition = brokers.partition(1).expect("it runs");
        assert_eq!(partition.offsets(), Err(PartitionError::NotLeader));
        brokers.elect(&[1, 2]);
        assert_eq!(brokers.produce(1, "b", 5).await, Ok(Offset(2)));
    });
}

#[test]
fn a_leader_that_lost_power_and_leads_again_is_asked_at_once() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        brokers.power_loss(1);
        brokers.elect(&[2, 3]);
        brokers.produce(2, "b", 5).await.expect("committed");
        brokers.start(1).await;
        brokers.sleep(3).await;
        assert_eq!(brokers.isr(), [1, 2, 3]);
        brokers.elect(&[1, 2, 3]);
        assert_eq!(brokers.produce(1, "c", 1).await, Ok(Offset(3)));
    });
}

#[test]
fn a_commit_takes_a_round_trip_and_a_new_leader_commits_within_a_moment() {
    let (world, brokers) = scene(3);
    world.run(async {
        brokers.start_all().await;
        brokers.produce(1, "a", 5).await.expect("committed");
        for leader in [1, 2, 3, 1] {
            brokers.elect(&[leader, 1 + leader % 3, 1 + (leader + 1) % 3]);
            let begun = world.elapsed();
            brokers.produce(leader, "b", 5).await.expect("committed");
            let took = world.elapsed().saturating_sub(begun);
            assert!(took < Duration::from_millis(200), "after an election: {took:?}");
            let begun = world.elapsed();
            brokers.produce(leader, "c", 5).await.expect("committed");
            let took = world.elapsed().saturating_sub(begun);
            assert!(took < Duration::from_millis(20), "a commit: {took:?}");
        }
    });
}

/// What may happen to the brokers between two records.
async fn happen(world: &World, brokers: &Brokers) {
    let id = 1 + world.below(3) as i32;
    let others: Vec<_> = brokers.isr().into_iter().filter(|other| *other != id).collect();
    let elects = |brokers: &Brokers| {
        if brokers.isr().contains(&id) {
            brokers.elect(&others);
        }
    };
    match world.below(10) {
        0 => cut(world, brokers, id, true),
        1 | 2 | 8 | 9 => world.mend_all(),
        3 if brokers.runs(id) && !others.is_empty() => {
            brokers.kill(id);
            elects(brokers);
        }
        4 if brokers.runs(id) && !others.is_empty() => {
            brokers.power_loss(id);
            elects(brokers);
        }
        5 | 6 if !brokers.runs(id) => drop(brokers.start(id).await),
        7 if brokers.isr().contains(&id) => {
            let isr: Vec<_> = std::iter::once(id).chain(others).collect();
            brokers.elect(&isr);
        }
        _ => {}
    }
}

#[test]
fn whatever_happens_nothing_that_was_committed_is_lost_and_the_logs_become_one() {
    for seed in 0..6 {
        let world = World::new(seed);
        let brokers = Brokers::new(&world, 3, &[("min.insync.replicas", "2")]);
        world.run(async {
            brokers.start_all().await;
            let mut committed = Vec::new();
            for step in 0..60 {
                happen(&world, &brokers).await;
                let value = format!("<{seed}.{step}>");
                match brokers.produce(brokers.leader(), &value, 1).await {
                    Ok(_) => committed.push(value),
                    Err(_) => brokers.sleep(1).await,
                }
            }
            world.mend_all();
            for id in 1..=3 {
                if !brokers.runs(id) {
                    brokers.start(id).await;
                }
            }
            brokers.sleep(60).await;
            assert_eq!(brokers.isr().len(), 3, "seed {seed}");
            brokers.produce(brokers.leader(), "end", 5).await.expect("committed");
            let log = brokers.log(1);
            assert!(log == brokers.log(2) && log == brokers.log(3), "seed {seed}");
            let text = String::from_utf8_lossy(&log);
            assert!(!committed.is_empty(), "seed {seed}");
            for value in &committed {
                assert_eq!(text.matches(value.as_str()).count(), 1, "seed {seed}: {value}");
            }
        });
    }
}
