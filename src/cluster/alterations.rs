//! Partitions that this node leads, and that want another ISR: they ask the active controller together.
//!
//! All that ask at the same time share a request, and there is one request at a time: what is asked meanwhile goes with
//! the next. A request without an answer may have been carried out, or not; the controller makes sure that it is not
//! carried out later, after the next one.
//!
//! Kafka: `AlterPartitionManager`; KIP-497.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use controller::{AlterPartition, ConnectionId, NewIsr};
use env::Env;
use metadata::LeaderRecovery;
use model::{BrokerEpoch, ErrorCode, NodeId, TopicIdPartition};
use replication::{AlteredPartition, IsrChange, Replication};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::Cluster;
use crate::controller_peer::{ControllerPeer, Unanswered};
use crate::lifecycle::Standing;
use crate::wire::alter_partition::{AskedIsrs, IsrState};

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

type Answers = BTreeMap<TopicIdPartition, Result<IsrState, ErrorCode>>;

pub(crate) struct Alterations {
    env: Env,
    me: NodeId,
    replication: Arc<Replication>,
    controller: ControllerPeer,
    standing: watch::Receiver<Standing>,
}

impl Alterations {
    pub(crate) fn new(env: &Env, cluster: &Arc<Cluster>, standing: watch::Receiver<Standing>) -> Self {
        Self {
            env: env.clone(),
            me: cluster.node_id(),
            replication: cluster.replication().clone(),
            controller: ControllerPeer::new(env, cluster.clone(), "alter partition", 1),
            standing,
        }
    }

    /// Runs until the node closes.
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            () = self.alter_all() => {}
        }
    }

    async fn alter_all(&mut self) {
        loop {
            let changes = self.replication.next_isr_changes().await;
            let epoch = self.standing.borrow().epoch();
            match epoch {
                Some(epoch) => self.alter(epoch, &changes).await,
                None => self.unanswered(&changes),
            }
        }
    }

    async fn alter(&mut self, broker_epoch: BrokerEpoch, changes: &[IsrChange]) {
        let command =
            AlterPartition { broker: self.me, broker_epoch, partitions: changes.iter().map(asked).collect() };
        let asked = AskedIsrs { command, connection: ConnectionId::LOCAL };
        let deadline = self.env.clock.now().plus(ANSWER_WITHIN);
        match self.controller.ask(deadline, asked).await {
            Ok(answers) => {
                let answers: Answers = answers.into_iter().map(|answer| (answer.of, answer.result)).collect();
                for change in changes {
                    self.answered(change, &answers);
                }
            }
            Err(Unanswered::Refused(error)) => {
                debug!(?error, partitions = changes.len(), "other ISRs were refused");
                for IsrChange { id, ask } in changes {
                    self.replication.isr_altered(*id, ask.id, Err(error));
                }
            }
            Err(why) => {
                debug!(%why, partitions = changes.len(), "other ISRs were asked for in vain");
                self.unanswered(changes);
            }
        }
    }

    fn answered(&self, change: &IsrChange, answers: &Answers) {
        match answers.get(&change.id) {
            Some(result) => {
                let altered = result.as_ref().map(|state| AlteredPartition {
                    leader_epoch: state.leader_epoch,
                    partition_epoch: state.partition_epoch,
                    isr: state.isr.clone(),
                });
                self.replication.isr_altered(change.id, change.ask.id, altered.map_err(|error| *error));
            }
            None => self.unanswered(std::slice::from_ref(change)),
        }
    }

    fn unanswered(&self, changes: &[IsrChange]) {
        for IsrChange { id, ask } in changes {
            self.replication.isr_unanswered(*id, ask.id);
        }
    }
}

/// A leader that can ask has cleaned up after its election.
fn asked(change: &IsrChange) -> NewIsr {
    NewIsr {
        topic: change.id.topic_id,
        partition: change.id.partition,
        leader_epoch: change.ask.leader_epoch,
        partition_epoch: change.ask.partition_epoch,
        isr: change.ask.isr.iter().map(|member| (member.id, member.broker_epoch)).collect(),
        recovery: LeaderRecovery::Recovered,
    }
}
