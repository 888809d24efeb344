//! In which log folder each replica of this node lies, as the metadata must know it: when a folder fails, the controller
//! takes the replicas in it out of service, and no others.
//!
//! A broker with one folder has nothing to say: the controller knows where its replicas go. One with several chooses, and
//! says it soon after.
//!
//! Kafka: `AssignmentsManager`; KIP-858.

use std::sync::Arc;
use std::time::Duration;

use controller::AssignReplicasToDirs;
use env::Env;
use model::{DirectoryId, ErrorCode, TopicIdPartition};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::Cluster;
use crate::controller_peer::ControllerPeer;
use crate::lifecycle::Standing;

/// What changes together is told together.
const GATHER: Duration = Duration::from_millis(500);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Kafka: `AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST`.
const REPLICAS_MAX: usize = 2250;

pub(crate) struct Assignments {
    env: Env,
    cluster: Arc<Cluster>,
    controller: ControllerPeer,
    standing: watch::Receiver<Standing>,
}

impl Assignments {
    pub(crate) fn new(env: &Env, cluster: &Arc<Cluster>, standing: watch::Receiver<Standing>) -> Self {
        let controller = ControllerPeer::new(env, cluster.clone(), "assign replicas", 1);
        Self { env: env.clone(), cluster: cluster.clone(), controller, standing }
    }

    /// Runs until the node closes.
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            () = self.assign_all() => {}
        }
    }

    async fn assign_all(&mut self) {
        let mut applied = self.cluster.watch();
        while applied.changed().await.is_ok() {
            loop {
                self.env.clock.sleep(GATHER).await;
                let misplaced = self.cluster.replication().misplaced(&self.cluster.image());
                if misplaced.is_empty() || self.assign(misplaced).await {
                    break;
                }
            }
        }
    }

    /// Whether that was all, and the metadata will soon say so.
    async fn assign(&mut self, mut replicas: Vec<(DirectoryId, TopicIdPartition)>) -> bool {
        let Some(broker_epoch) = self.standing.borrow().epoch() else { return false };
        replicas.sort_unstable();
        let is_all = replicas.len() <= REPLICAS_MAX;
        replicas.truncate(REPLICAS_MAX);
        let command = AssignReplicasToDirs { broker: self.cluster.node_id(), broker_epoch, replicas };
        let deadline = self.env.clock.now().plus(ANSWER_WITHIN);
        match self.controller.ask(deadline, command).await {
            Ok(answers) => {
                for answer in answers.iter().filter(|answer| answer.error != ErrorCode::None) {
                    debug!(?answer, "the folder of a replica was not noted");
                }
                is_all
            }
            Err(why) => {
                debug!(%why, "the folders of replicas were not noted");
                false
            }
        }
    }
}
