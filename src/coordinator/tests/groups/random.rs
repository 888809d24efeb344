//! Random histories: whatever clients do, the group keeps its promises.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use coordinator::{
    Config, CoordinatorRecord, FetchOffsets, Generation, GroupState, Groups, Join, Sync, Token,
};
use model::{ErrorCode, Instant, MemberId, Uuid};
use proptest::prelude::*;

use crate::harness::{GROUP, World, commit, join, protocol, sync};

const CLIENTS: usize = 4;

/// What a client does next, or that time passes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Join(usize),
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    Commit(usize),
    /// It starts again and has forgotten its member id.
    Restart(usize),
    /// It asks for other topics from now on.
    Resubscribe(usize),
    Pass(u64),
    FailNextAppend,
    Expire,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let client = || 0..CLIENTS;
    let step = prop_oneof![
        8 => client().prop_map(Step::Join),
        6 => client().prop_map(Step::Sync),
        4 => client().prop_map(Step::Heartbeat),
        1 => client().prop_map(Step::Leave),
        3 => client().prop_map(Step::Commit),
        1 => client().prop_map(Step::Restart),
        1 => client().prop_map(Step::Resubscribe),
        4 => (1u64..4_000).prop_map(Step::Pass),
        1 => (4_000u64..40_000).prop_map(Step::Pass),
        1 => Just(Step::FailNextAppend),
        1 => Just(Step::Expire),
    ];
    proptest::collection::vec(step, 0..120)
}

#[derive(Clone, Default)]
struct Client {
    member_id: MemberId,
    generation: i32,
    subscription: u8,
    join: Option<Token>,
}

struct History {
    world: World,
    clients: Vec<Client>,
    /// When each request that waits was sent.
    sent: BTreeMap<Token, Instant>,
    leaders: BTreeMap<Generation, MemberId>,
    newest: Generation,
    ids: u8,
}

impl History {
    fn new() -> Self {
        let config = Config { initial_rebalance_delay: Duration::from_secs(1), ..Config::default() };
        Self {
            world: World::with(config),
            clients: vec![Client::default(); CLIENTS],
            sent: BTreeMap::new(),
            leaders: BTreeMap::new(),
            newest: Generation(0),
            ids: 0,
        }
    }

    /// The last two clients are static members.
    fn request(&mut self, client: usize) -> Join {
        self.ids += 1;
        let topic = format!("topic-{}", self.clients[client].subscription);
        Join {
            member_id: self.clients[client].member_id.clone(),
            group_instance_id: (client >= 2).then(|| format!("static-{client}").as_str().into()),
            protocols: vec![protocol("range", &[&topic])],
            rebalance_timeout: Duration::from_secs(20),
            fresh_id: Uuid([self.ids; 16]),
            ..join(&format!("client-{client}"))
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Join(client) => self.join(client),
            Step::Sync(client) => self.sync(client),
            Step::Heartbeat(client) => {
                let client = &self.clients[client];
                self.world.heartbeat(&client.member_id.clone(), Generation(client.generation));
            }
            Step::Leave(client) => {
                let member_id = std::mem::take(&mut self.clients[client].member_id);
                self.world.fail_append = None;
                self.world.leave(&[(&member_id, None)]);
            }
            Step::Commit(client) => {
                let client = &self.clients[client];
                let generation = Generation(client.generation);
                let commit = coordinator::Commit {
                    member_id: client.member_id.clone(),
                    generation,
                    ..commit("topic-0", 0, i64::from(self.ids))
                };
                let outcome = self.world.groups.handle_commit(commit, self.world.at);
                self.world.settle(outcome);
            }
            Step::Restart(client) => self.clients[client].member_id = MemberId::default(),
            Step::Resubscribe(client) => self.clients[client].subscription ^= 1,
            Step::Pass(millis) => self.world.pass(Duration::from_millis(millis)),
            Step::FailNextAppend => self.world.fail_append = Some(ErrorCode::CoordinatorNotAvailable),
            Step::Expire => {
                let outcome = self.world.groups.handle_expiry(self.world.at.wall);
                self.world.settle(outcome);
            }
        }
    }

    fn join(&mut self, client: usize) {
        let request = self.request(client);
        let token = self.world.join(&request);
        self.sent.insert(token, self.world.at.now);
        self.clients[client].join = Some(token);
    }

    fn sync(&mut self, client: usize) {
        let (member_id, generation) =
            (self.clients[client].member_id.clone(), Generation(self.clients[client].generation));
        let members = self.clients.iter().map(|client| client.member_id.clone());
        let assignments = members.map(|id| (id.clone(), Bytes::from(format!("{generation} {id}")))).collect();
        let token = self.world.sync(&Sync { assignments, ..sync(&member_id, generation) });
        self.sent.insert(token, self.world.at.now);
    }

    /// Clients take in what they were told.
    fn read_answers(&mut self) {
        for client in &mut self.clients {
            let Some(reply) = client.join.and_then(|token| self.world.joins.get(&token)) else { continue };
            match reply.error {
                ErrorCode::None => {
                    client.member_id = reply.member_id.clone();
                    client.generation = reply.generation.0;
                }
                ErrorCode::MemberIdRequired => client.member_id = reply.member_id.clone(),
                _ => client.member_id = MemberId::default(),
            }
            client.join = None;
        }
    }

    fn check(&mut self) {
        self.check_generations();
        self.check_waits();
        self.check_stable();
    }

    /// One leader a generation, and no generation twice. A restart of the count needs a group that was deleted.
    fn check_generations(&mut self) {
        if self.world.state() == GroupState::Dead {
            self.leaders.clear();
            self.newest = Generation(0);
        }
        for reply in self.world.news.drain(..).filter(|reply| reply.error.is_none()) {
            let is_leader = reply.leader == reply.member_id;
            assert!(reply.generation >= self.newest, "generations only grow");
            self.newest = reply.generation;
            if is_leader && !reply.skip_assignment {
                let leader = self.leaders.entry(reply.generation).or_insert_with(|| reply.leader.clone());
                assert_eq!(leader, &reply.leader, "generation {} has one leader", reply.generation);
            }
        }
    }

    /// Nobody waits for longer than an initial rebalance with all its delays, or two phases of a rebalance.
    fn check_waits(&mut self) {
        let world = &self.world;
        self.sent.retain(|token, _| !world.joins.contains_key(token) && !world.syncs.contains_key(token));
        for (token, sent) in &self.sent {
            let waited = world.at.now.since(*sent);
            assert!(waited <= Duration::from_mins(1), "{token:?} waits for {waited:?}");
        }
    }

    /// What a stable or empty group is, a restart finds again.
    fn check_stable(&self) {
        let group = self.world.groups.describe(&GROUP.into());
        if !matches!(group.state, GroupState::Stable | GroupState::Empty) {
            return;
        }
        let replayed = replay(&self.world.log);
        let all = FetchOffsets { group_id: GROUP.into(), topics: None };
        assert_eq!(replayed.fetch_offsets(&all), self.world.groups.fetch_offsets(&all));
        if group.state == GroupState::Stable {
            assert_eq!(replayed.describe(&GROUP.into()), group);
            let ids: BTreeSet<_> = group.members.iter().map(|member| &member.member_id).collect();
            assert_eq!(ids.len(), group.members.len());
        }
    }
}

fn replay(log: &[CoordinatorRecord]) -> Groups {
    let mut groups = Groups::new(Config::default());
    for record in log {
        groups.replay(record.clone());
    }
    groups
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_group_keeps_its_promises(steps in steps()) {
        let mut history = History::new();
        for step in steps {
            history.step(step);
            history.check();
            history.read_answers();
        }
        // When everybody is silent the group empties, and nobody waits.
        history.world.fail_append = None;
        history.world.pass(Duration::from_mins(10));
        history.check();
        prop_assert!(history.sent.is_empty(), "{:?}", history.sent);
        prop_assert!(matches!(history.world.state(), GroupState::Empty | GroupState::Dead));
        prop_assert_eq!(history.world.groups.deadline(), None);
    }
}
