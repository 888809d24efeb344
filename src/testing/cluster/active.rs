//! The controller on the node that leads the quorum, and what it will answer once that is committed.

use std::collections::BTreeMap;

use controller::{AlterPartition, Config, Controller, NewIsr};
use metadata::config::BrokerConfig;
use metadata::{Image, LeaderRecovery};
use model::{ClusterId, ErrorCode, Instant, LeaderEpoch, NodeId, Offset, TopicId};
use protocol::records::metadata::MetadataRecord;
use replica::AlteredPartition;

use super::mail::{Letter, Mail};
use super::replica_world::world::Request;

/// A controller in one epoch of the quorum.
pub(crate) struct Active {
    pub(crate) controller: Controller,
    pub(crate) epoch: LeaderEpoch,
    /// What is said when everything before the offset is committed.
    replies: Vec<(Offset, Mail)>,
    /// The connection that each process of a broker used last.
    connections: BTreeMap<(usize, u64), u64>,
}

pub(crate) fn cluster_id() -> ClusterId {
    ClusterId::from("simulated")
}

fn config(node: NodeId) -> Config {
    let mut broker = BrokerConfig::default();
    for (key, value) in [("broker.session.timeout.ms", "2000"), ("min.insync.replicas", "2")] {
        broker.set(key, value).expect("a key of the table");
    }
    Config { node, cluster_id: cluster_id(), broker }
}

impl Active {
    pub(crate) fn new(node: NodeId, image: Image, epoch: LeaderEpoch, now: Instant) -> Self {
        let controller = Controller::new(image, config(node), now);
        Self { controller, epoch, replies: Vec::new(), connections: BTreeMap::new() }
    }

    /// These records were appended, up to this offset.
    pub(crate) fn appended(&mut self, records: &[MetadataRecord], end: Offset) {
        let (image, _) = self.controller.image().apply(records, end).expect("a decision fits its image");
        self.controller.advance(image);
    }

    /// Says it when all that was decided so far is committed: a refusal, too, speaks of what is not committed yet.
    pub(crate) fn reply(&mut self, mail: Mail) {
        self.replies.push((self.controller.image().end(), mail));
    }

    /// What may be said now.
    pub(crate) fn take_replies(&mut self, committed: Offset) -> Vec<Mail> {
        let (due, later) =
            std::mem::take(&mut self.replies).into_iter().partition(|(end, _)| *end <= committed);
        self.replies = later;
        let due: Vec<(Offset, Mail)> = due;
        due.into_iter().map(|(_, mail)| mail).collect()
    }

    /// Whether a request came on the latest connection of its sender: what came on an older one was given up.
    pub(crate) fn is_latest(&mut self, request: &Request) -> bool {
        let latest = self.connections.entry((request.from, request.life)).or_default();
        *latest = request.connection.max(*latest);
        *latest == request.connection
    }

    /// Decides on a leader's request.
    pub(crate) fn alter(
        &self,
        topic: TopicId,
        partition: usize,
        sender: NodeId,
        request: &Request,
    ) -> (Vec<MetadataRecord>, Result<AlteredPartition, ErrorCode>) {
        let asked = &request.asked;
        let wanted = NewIsr {
            topic,
            partition: partition as i32,
            leader_epoch: asked.leader_epoch,
            partition_epoch: asked.partition_epoch,
            isr: asked.isr.iter().map(|member| (member.id, member.broker_epoch)).collect(),
            recovery: LeaderRecovery::Recovered,
        };
        let command =
            AlterPartition { broker: sender, broker_epoch: request.broker_epoch, partitions: vec![wanted] };
        let decision = self.controller.alter_partition(&command);
        let answer = match decision.reply {
            Err(error) => Err(ErrorCode::from(&error)),
            Ok(mut partitions) => match partitions.remove(0).result {
                Err(error) => Err(error.into()),
                Ok(partition) => Ok(AlteredPartition {
                    leader_epoch: partition.leader_epoch,
                    partition_epoch: partition.partition_epoch,
                    isr: partition.isr,
                }),
            },
        };
        (decision.records, answer)
    }
}

/// The answer to a leader's request.
pub(crate) fn altered(
    at: usize,
    partition: usize,
    request: &Request,
    answer: Result<AlteredPartition, ErrorCode>,
) -> Mail {
    let letter = Letter::Altered { partition, life: request.life, id: request.asked.id, answer };
    Mail { from: at, to: request.from, letter }
}
