//! A machine, a clock that stands still, and a log that takes everything, or fails when told to.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use coordinator::{
    Commit, CommitPartition, CommitTopic, Config, CoordinatorRecord, Generation, GroupState, Groups,
    Heartbeat, Join, JoinReply, Leave, LeaveReply, LeavingMember, List, Moment, Outcome, Protocol, Released,
    Sync, SyncReply, Token, TopicErrors,
};
use model::{ErrorCode, Instant, LeaderEpoch, MemberId, Offset, Timestamp, TopicId, Uuid};

pub(crate) const GROUP: &str = "group";

/// The machine in its world.
pub(crate) struct World {
    pub(crate) groups: Groups,
    pub(crate) at: Moment,
    pub(crate) log: Vec<CoordinatorRecord>,
    pub(crate) joins: BTreeMap<Token, JoinReply>,
    pub(crate) syncs: BTreeMap<Token, SyncReply>,
    /// Answers to JoinGroup in the order in which they came.
    pub(crate) news: Vec<JoinReply>,
    /// The error of the next append, if it is to fail.
    pub(crate) fail_append: Option<ErrorCode>,
    tokens: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config { initial_rebalance_delay: Duration::ZERO, ..Config::default() })
    }

    pub(crate) fn with(config: Config) -> Self {
        Self {
            groups: Groups::new(config),
            at: Moment { now: Instant(1_000_000_000), wall: Timestamp(1_000) },
            log: Vec::new(),
            joins: BTreeMap::new(),
            syncs: BTreeMap::new(),
            news: Vec::new(),
            fail_append: None,
            tokens: 0,
        }
    }

    pub(crate) fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// Appends and applies what came out.
    pub(crate) fn settle<R>(&mut self, outcome: Outcome<R>) -> Option<R> {
        if !outcome.records.is_empty()
            && let Some(error) = self.fail_append.take()
        {
            let outcome = self.groups.handle_append_failure(outcome, error, self.at);
            self.settle(outcome);
            return None;
        }
        self.release(outcome.released);
        for record in outcome.records {
            self.log.push(record.clone());
            let released = self.groups.apply(record, self.at);
            self.release(released);
        }
        Some(outcome.reply)
    }

    fn release(&mut self, released: Vec<Released>) {
        for released in released {
            let earlier = match released {
                Released::Join(token, reply) => {
                    self.news.push(reply.clone());
                    self.joins.insert(token, reply).is_some()
                }
                Released::Sync(token, reply) => self.syncs.insert(token, reply).is_some(),
            };
            assert!(!earlier, "a token is released once");
        }
    }

    /// Lets time pass, timer by timer.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.at.now.plus(time);
        while let Some(next) = self.groups.deadline().filter(|next| *next <= end) {
            self.move_to(next.max(self.at.now));
            while let Some(outcome) = self.groups.poll(self.at) {
                self.settle(outcome);
            }
        }
        self.move_to(end);
    }

    fn move_to(&mut self, now: Instant) {
        let passed = now.since(self.at.now).as_millis();
        self.at = Moment { now, wall: Timestamp(self.at.wall.0 + passed as i64) };
    }

    pub(crate) fn join(&mut self, join: &Join) -> Token {
        let token = self.token();
        let outcome = self.groups.handle_join(join, token, self.at);
        self.settle(outcome);
        token
    }

    /// What a JoinGroup was answered; panics if it still waits.
    pub(crate) fn joined(&self, token: Token) -> &JoinReply {
        &self.joins[&token]
    }

    /// A dynamic member through the two steps of KIP-394.
    pub(crate) fn join_as_new(&mut self, client: &str) -> (MemberId, Token) {
        let first = self.join(&join(client));
        let member_id = self.joined(first).member_id.clone();
        assert_eq!(self.joined(first).error, ErrorCode::MemberIdRequired);
        let token = self.join(&Join { member_id: member_id.clone(), ..join(client) });
        (member_id, token)
    }

    /// A stable group of these members; the first one leads.
    pub(crate) fn stable(&mut self, clients: &[&str]) -> (Vec<MemberId>, Generation) {
        let joins: Vec<_> = clients.iter().map(|client| self.join_as_new(client)).collect();
        self.pass(Duration::from_millis(1));
        let joined = joins.iter().map(|(_, token)| self.joined(*token).clone()).collect::<Vec<_>>();
        let generation = joined[0].generation;
        let members: Vec<MemberId> = joins.into_iter().map(|(member, _)| member).collect();
        let leader = joined[0].leader.clone();
        for member in members.iter().filter(|member| **member != leader) {
            self.sync(&sync(member, generation));
        }
        let assignments = members.iter().map(|m| (m.clone(), Bytes::from(format!("for {m}")))).collect();
        self.sync(&Sync { assignments, ..sync(&leader, generation) });
        assert_eq!(self.state(), GroupState::Stable);
        (members, generation)
    }

    pub(crate) fn sync(&mut self, sync: &Sync) -> Token {
        let token = self.token();
        let outcome = self.groups.handle_sync(sync.clone(), token, self.at);
        self.settle(outcome);
        token
    }

    pub(crate) fn synced(&self, token: Token) -> &SyncReply {
        &self.syncs[&token]
    }

    pub(crate) fn heartbeat(&mut self, member_id: &MemberId, generation: Generation) -> ErrorCode {
        let heartbeat = Heartbeat {
            group_id: GROUP.into(),
            generation,
            member_id: member_id.clone(),
            group_instance_id: None,
        };
        let outcome = self.groups.handle_heartbeat(&heartbeat, self.at);
        self.settle(outcome).expect("a heartbeat appends nothing")
    }

    pub(crate) fn leave(&mut self, members: &[(&MemberId, Option<&str>)]) -> LeaveReply {
        let leaving = |(member_id, instance): &(&MemberId, Option<&str>)| LeavingMember {
            member_id: (*member_id).clone(),
            group_instance_id: instance.map(Into::into),
        };
        let leave = Leave { group_id: GROUP.into(), members: members.iter().map(leaving).collect() };
        let outcome = self.groups.handle_leave(leave, self.at);
        self.settle(outcome).expect("the append goes well")
    }

    pub(crate) fn commit(&mut self, commit: Commit) -> Vec<TopicErrors> {
        let outcome = self.groups.handle_commit(commit, self.at);
        self.settle(outcome).expect("the append goes well")
    }

    pub(crate) fn state(&self) -> GroupState {
        self.groups.describe(&GROUP.into()).state
    }

    pub(crate) fn listed(&self) -> Vec<String> {
        self.groups.list(&List::default()).into_iter().map(|group| group.group_id.to_string()).collect()
    }
}

/// A new dynamic consumer that knows `range`.
pub(crate) fn join(client: &str) -> Join {
    let mut seed = [0; 16];
    seed[..client.len().min(16)].copy_from_slice(&client.as_bytes()[..client.len().min(16)]);
    Join {
        group_id: GROUP.into(),
        member_id: MemberId::default(),
        group_instance_id: None,
        client_id: client.into(),
        client_host: "/127.0.0.1".into(),
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range", &["topic"])],
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: Duration::from_mins(1),
        member_id_required: true,
        skip_assignment: true,
        fresh_id: Uuid(seed),
    }
}

/// A consumer's protocol with its subscription.
pub(crate) fn protocol(name: &str, topics: &[&str]) -> Protocol {
    let mut metadata = vec![0, 1];
    metadata.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        metadata.extend((topic.len() as i16).to_be_bytes());
        metadata.extend(topic.as_bytes());
    }
    Protocol { name: name.into(), metadata: metadata.into() }
}

pub(crate) fn sync(member_id: &MemberId, generation: Generation) -> Sync {
    Sync {
        group_id: GROUP.into(),
        generation,
        member_id: member_id.clone(),
        group_instance_id: None,
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: Vec::new(),
    }
}

/// A commit of one offset, by nobody in particular.
pub(crate) fn commit(topic: &str, partition: i32, offset: i64) -> Commit {
    let partition = CommitPartition {
        partition,
        offset: Offset(offset),
        leader_epoch: LeaderEpoch(3),
        metadata: "note".into(),
    };
    Commit {
        group_id: GROUP.into(),
        generation: Generation::NONE,
        member_id: MemberId::default(),
        group_instance_id: None,
        retention: None,
        knows_group_id_not_found: true,
        topics: vec![CommitTopic {
            topic: topic.into(),
            topic_id: TopicId::ZERO,
            partitions: vec![partition],
        }],
    }
}

/// The one error of a reply about one partition.
pub(crate) fn only_error(topics: &[TopicErrors]) -> ErrorCode {
    assert_eq!((topics.len(), topics[0].partitions.len()), (1, 1));
    topics[0].partitions[0].1
}
