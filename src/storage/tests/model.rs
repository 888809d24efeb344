//! Whatever is done to a log, it is what a plain list of batches says, also after a stop, a kill and a power cut.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

mod common;

use std::collections::BTreeMap;

use common::*;
use model::{LeaderEpoch, Offset, ProducerId};
use proptest::prelude::*;
use protocol::batch::batches;
use sim::SimDisk;
use storage::{CheckpointJob, FlushJob, LogConfig, Maintained, Origin};

#[derive(Clone, Debug)]
enum Step {
    Append { count: usize, producer: Option<i64> },
    NewEpoch,
    Flush,
    BeginFlush,
    EndFlush,
    Read { at: f64, bytes_max: usize },
    Truncate { at: f64 },
    TruncateFully { ahead: i64 },
    AdvanceLogStart { at: f64 },
    Maintain,
    RemoveFiles,
    Checkpoint,
    BeginCheckpoint,
    EndCheckpoint,
    Restart,
    Kill,
    PowerLoss,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1usize..6, proptest::option::of(0i64..3)).prop_map(|(count, producer)| Step::Append { count, producer }),
        2 => Just(Step::NewEpoch),
        3 => Just(Step::Flush),
        2 => Just(Step::BeginFlush),
        2 => Just(Step::EndFlush),
        3 => (0.0..1.0, 1usize..1500).prop_map(|(at, bytes_max)| Step::Read { at, bytes_max }),
        2 => (0.0..1.1).prop_map(|at| Step::Truncate { at }),
        1 => (-20i64..5).prop_map(|ahead| Step::TruncateFully { ahead }),
        1 => (0.0..1.0).prop_map(|at| Step::AdvanceLogStart { at }),
        2 => Just(Step::Maintain),
        1 => Just(Step::RemoveFiles),
        2 => Just(Step::Checkpoint),
        2 => Just(Step::BeginCheckpoint),
        2 => Just(Step::EndCheckpoint),
        1 => Just(Step::Restart),
        2 => Just(Step::Kill),
        2 => Just(Step::PowerLoss),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Batch {
    first: i64,
    last: i64,
    epoch: i32,
    producer: Option<(i64, i32)>,
}

/// The log, and what it should be.
struct World {
    node: Option<Node>,
    batches: Vec<Batch>,
    end: i64,
    epoch: i32,
    job: Option<FlushJob>,
    checkpoint: Option<CheckpointJob>,
    maintained: Option<Maintained>,
}

impl World {
    fn new(seed: u64, tail_bytes: usize) -> Self {
        let config = LogConfig { retention_bytes: 2500, retention_ms: -1, ..small_segments() };
        let node = Node::on(SimDisk::new(seed), config, tail_bytes);
        Self {
            node: Some(node),
            batches: Vec::new(),
            end: 0,
            epoch: 0,
            job: None,
            checkpoint: None,
            maintained: None,
        }
    }

    fn node(&mut self) -> &mut Node {
        self.node.as_mut().unwrap()
    }

    fn at(&mut self, part: f64) -> Offset {
        let start = self.node().log.log_start().0;
        Offset(start + ((self.end - start) as f64 * part) as i64)
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Append { count, producer } => self.append(count, producer),
            Step::NewEpoch => {
                self.epoch += 1;
                let (epoch, end) = (LeaderEpoch(self.epoch), Offset(self.end));
                self.node().log.assign_epoch(epoch, end).unwrap();
            }
            Step::Flush => {
                let end = Offset(self.end);
                assert_eq!(flush(&mut self.node().log), end);
            }
            Step::BeginFlush => self.job = self.job.take().or(self.node().log.flush_job()),
            Step::EndFlush => self.end_flush(),
            Step::Read { at, bytes_max } => self.read(at, bytes_max),
            Step::Truncate { at } => self.truncate(at),
            Step::TruncateFully { ahead } => self.truncate_fully(ahead),
            Step::AdvanceLogStart { at } => {
                let to = self.at(at).min(self.node().log.flushed_end());
                self.node().log.advance_log_start(to).unwrap();
            }
            Step::Maintain => {
                let flushed = self.node().log.flushed_end();
                self.maintained = Some(self.node().log.maintain(NOW, flushed).unwrap());
                assert!(self.node().log.log_start() <= flushed);
            }
            Step::RemoveFiles => {
                self.maintained.take().map(Maintained::remove_files).transpose().unwrap();
            }
            Step::Checkpoint => {
                // One after the other.
                self.checkpoint = None;
                let flushed = self.node().log.flushed_end();
                self.node().checkpoint(flushed);
            }
            Step::BeginCheckpoint => {
                let flushed = self.node().log.flushed_end();
                self.checkpoint = Some(self.node().log.checkpoint(flushed).unwrap());
            }
            Step::EndCheckpoint => {
                if let Some(job) = self.checkpoint.take() {
                    self.node().folder.checkpoint(&[job.run().unwrap()]).unwrap();
                }
            }
            Step::Restart => self.restart(Node::restart, Offset(self.end)),
            Step::Kill => self.restart(Node::kill, Offset(self.end)),
            Step::PowerLoss => {
                let flushed = self.node().log.flushed_end();
                self.restart(Node::power_loss, flushed);
            }
        }
        self.check();
    }

    fn last_sequence(&self, producer: i64) -> i32 {
        let of_it = |batch: &&Batch| batch.producer.is_some_and(|(id, _)| id == producer);
        self.batches.iter().rev().find(of_it).and_then(|batch| batch.producer).map_or(-1, |(_, last)| last)
    }

    fn append(&mut self, count: usize, producer: Option<i64>) {
        let next = producer.map(|id| (id, self.last_sequence(id) + 1));
        let bytes = match next {
            Some((id, sequence)) => produced(id, 0, sequence, count),
            None => records(count),
        };
        let epoch = LeaderEpoch(self.epoch);
        let (first, last) = (self.end, self.end + count as i64 - 1);
        let appended = self.node().log.append_as_leader(&bytes, epoch, NOW, Origin::Client).unwrap();
        assert_eq!((appended.base_offset.0, appended.last_offset.0), (first, last));
        let producer = next.map(|(id, sequence)| (id, sequence + count as i32 - 1));
        self.batches.push(Batch { first, last, epoch: self.epoch, producer });
        self.end = last + 1;
        if next.is_some() {
            let again = self.node().log.append_as_leader(&bytes, epoch, NOW, Origin::Client).unwrap();
            assert_eq!(again.duplicate_of, Some((Offset(first), Offset(last))));
        }
    }

    fn end_flush(&mut self) {
        let Some(job) = self.job.take() else { return };
        let before = self.node().log.flushed_end();
        let result = job.files.iter().try_for_each(|file| file.sync());
        let after = self.node().log.flush_done(&job, result).unwrap();
        let counts = job.truncations == self.node().log.truncations();
        assert_eq!(after, if counts { before.max(job.end) } else { before });
    }

    fn read(&mut self, at: f64, bytes_max: usize) {
        let (from, end) = (self.at(at), Offset(self.end));
        let slice = self.node().log.read(from, bytes_max, end, true).unwrap();
        let read = offsets_of(&slice);
        let expected = self.batches.iter().filter(|batch| batch.last >= from.0).map(|b| (b.first, b.last));
        assert_eq!(read, expected.take(read.len()).collect::<Vec<_>>());
        assert!(from == end || !read.is_empty(), "at least one batch");
        assert!(read.len() == 1 || bytes_of(&slice).len() <= bytes_max);
    }

    fn truncate(&mut self, at: f64) {
        let to = self.at(at);
        self.node().log.truncate_to(to, NOW).unwrap();
        self.batches.retain(|batch| batch.last < to.0);
        let inside = self.node().log.log_end();
        assert!(inside <= to.min(Offset(self.end)));
        self.end = inside.0;
        self.epoch += 1;
    }

    fn truncate_fully(&mut self, ahead: i64) {
        let start = Offset((self.end + ahead).max(0));
        self.node().log.truncate_fully_and_start_at(start, NOW).unwrap();
        self.batches.clear();
        self.end = start.0;
    }

    /// Each of a producer's last batches is known again, after whatever happened.
    fn check_windows(&mut self) {
        let start = self.node().log.log_start().0;
        for id in 0..3 {
            let of_it = |batch: &&Batch| batch.producer.is_some_and(|(by, _)| by == id);
            let window: Vec<Batch> = self.batches.iter().rev().filter(of_it).take(5).cloned().collect();
            for batch in window.iter().take_while(|batch| batch.first >= start) {
                let (count, (_, last)) = (batch.last - batch.first + 1, batch.producer.unwrap());
                let again = produced(id, 0, last + 1 - count as i32, count as usize);
                let known = append(&mut self.node().log, &again).duplicate_of;
                assert_eq!(known, Some((Offset(batch.first), Offset(batch.last))), "of producer {id}");
            }
        }
    }

    fn restart(&mut self, how: fn(Node) -> Node, kept: Offset) {
        (self.job, self.checkpoint, self.maintained) = (None, None, None);
        let node = how(self.node.take().unwrap());
        let end = node.log.log_end();
        assert!(end >= kept && end <= Offset(self.end), "{kept} <= {end} <= {}", self.end);
        assert!(node.log.flushed_end() <= end);
        self.batches.retain(|batch| batch.last < end.0);
        self.end = end.0;
        self.node = Some(node);
        self.check_windows();
    }

    fn check(&mut self) {
        let (end, batches) = (self.end, self.batches.clone());
        let log = &self.node().log;
        assert_eq!(log.log_end(), Offset(end));
        assert!(log.log_start() <= log.log_end() && log.flushed_end() <= log.log_end());
        let start = log.log_start().0;
        let visible: Vec<_> = batches.iter().filter(|batch| batch.last >= start).collect();
        assert_eq!(all_offsets(log), visible.iter().map(|b| (b.first, b.last)).collect::<Vec<_>>());
        let mut last_sequences = BTreeMap::new();
        for batch in visible {
            let at = Offset(batch.first.max(start));
            assert_eq!(log.epoch_at(at), Some(LeaderEpoch(batch.epoch)), "epoch at {at}");
            last_sequences.extend(batch.producer);
        }
        let known: BTreeMap<_, _> =
            log.producers().iter().map(|p| (p.producer_id, p.last_sequence().0)).collect();
        for (id, last) in last_sequences {
            assert_eq!(known.get(&ProducerId(id)), Some(&last), "last sequence of producer {id}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_what_a_plain_list_says(
        seed in any::<u64>(),
        tail_bytes in prop_oneof![Just(0usize), Just(4000), Just(1 << 20)],
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new(seed, tail_bytes);
        for step in steps {
            world.run(step);
        }
    }
}

#[test]
fn a_slice_holds_the_bytes_that_were_appended() {
    let mut node = Node::without_tail(small_segments());
    let sent = records(3);
    append(&mut node.log, &sent);
    let read = bytes_of(&node.log.read(Offset(0), 1 << 20, Offset(3), true).unwrap());
    let batch = batches(&read).next().unwrap().unwrap();
    assert_eq!(batch.header.leader_epoch, LeaderEpoch(1));
    assert_eq!(batch.bytes[16..], sent[16..], "only offset and epoch are set");
}
