//! A node with an empty metadata log and others beside it: a voter among several finds out with them what to begin with, a
//! broker alone asks the voters which cluster they are.
//!
//! The rule is the core's `Formation`. Here nodes are asked until there is an outcome. The directory id is on disk before
//! anybody hears of it: a node that dies before the cluster is made must come back as the one that was named.
//!
//! Kafka: none; there `kafka-storage format --initial-controllers` says it on every node.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use env::{Disk, Env, write_atomic};
use model::{ClusterId, DirectoryId, Limits, NodeId};
use protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};
use quorum::{Endpoint, Formation, FormationError, Introduction, Outcome, ReplicaKey, Voter, VoterSet};
use storage::LogFolder;
use tracing::{debug, info, warn};
use transport::{Peer, PeerConfig};

use crate::wire::{Address, introduction};
use crate::{BootError, metadata_log, snapshot};

/// Where the directory id stands until `meta.properties` has it.
const FILE: &str = "directory.id";
const ASK_AGAIN: Duration = Duration::from_millis(100);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Rounds until a person is told who is missing.
const PATIENT_ROUNDS: u32 = 50;

/// An empty node, and whom it may form a cluster with.
pub struct Newcomer {
    me: Voter,
    /// The voters of the configuration.
    named: Vec<NodeId>,
    others: BTreeMap<NodeId, String>,
    configured: Option<ClusterId>,
}

/// What a newcomer begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The cluster.
    pub cluster_id: ClusterId,
    /// Its first voters; empty where this node is none of them.
    pub(crate) voters: VoterSet,
}

/// Whether the metadata log in this log folder holds nothing yet.
///
/// # Errors
/// The folder cannot be read.
pub fn is_empty(disk: &dyn Disk, log_dir: &Path) -> Result<bool, BootError> {
    let path = log_dir.join(metadata_log::topic_partition().to_string());
    let found = disk.exists(&path).and_then(|exists| {
        if exists { snapshot::list(disk, &path).map(|snapshots| snapshots.is_empty()) } else { Ok(true) }
    });
    found.map_err(|cause| BootError::Io { path, cause })
}

/// Whether there is a metadata log in a log folder.
///
/// # Errors
/// The disk failed.
pub fn has_log(disk: &dyn Disk, log_dir: &Path) -> Result<bool, BootError> {
    let path = log_dir.join(metadata_log::topic_partition().to_string());
    match disk.list(&path) {
        Ok(entries) => Ok(!entries.is_empty()),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(BootError::Io { path, cause }),
    }
}

/// The directory id that a log folder will have: kept from an earlier try, or new and written down.
///
/// # Errors
/// The disk failed, or the file is not an id.
pub fn directory_id(env: &Env, log_dir: &Path) -> Result<DirectoryId, BootError> {
    let path = log_dir.join(FILE);
    let io = |cause| BootError::Io { path: path.clone(), cause };
    match env.disk.read(&path, Limits::SMALL_FILE_BYTES_MAX) {
        Ok(text) => {
            let id = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
            id.ok_or_else(|| BootError::Damaged { path, what: "is not a directory id".to_owned() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = env.rng.uuid();
            LogFolder::make(env.disk.as_ref(), log_dir).map_err(io)?;
            write_atomic(env.disk.as_ref(), &path, id.to_string().as_bytes()).map_err(io)?;
            Ok(id)
        }
        Err(cause) => Err(io(cause)),
    }
}

/// `meta.properties` has the id now.
///
/// # Errors
/// The disk failed.
pub(crate) fn forget_directory_id(disk: &dyn Disk, log_dir: &Path) -> Result<(), BootError> {
    let path = log_dir.join(FILE);
    match disk.remove_file(&path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(BootError::Io { path, cause }),
        _ => Ok(()),
    }
}

impl Newcomer {
    /// `endpoints` are this node's controller listeners; `named` the voters of the configuration, itself among them or not;
    /// `configured` the cluster that it must be, if that is said.
    pub fn new(
        key: (NodeId, DirectoryId),
        endpoints: Vec<Endpoint>,
        named: &BTreeMap<NodeId, (String, u16)>,
        configured: Option<ClusterId>,
    ) -> Self {
        let me = Voter { endpoints, ..Voter::new(ReplicaKey::new(key.0, key.1)) };
        let others = named.iter().filter(|(id, _)| **id != key.0);
        let others = others.map(|(id, (host, port))| {
            let address = Address { node: *id, host: host.clone(), port: *port };
            (*id, address.to_string())
        });
        Self { me, named: named.keys().copied().collect(), others: others.collect(), configured }
    }

    /// What this node tells who asks it while it is empty.
    pub fn introduce(&self, request: &DescribeClusterRequest) -> DescribeClusterResponse {
        let introduction = Introduction { voter: self.me.clone(), cluster: None };
        introduction::answer(request, &introduction, None)
    }

    /// Asks the others until it is clear what to begin with. Meanwhile this node must answer them.
    ///
    /// # Errors
    /// The nodes are configured to be of different clusters, or of other ids: a person must look.
    pub async fn form(&self, env: &Env) -> Result<Beginning, FormationError> {
        let named = self.named.iter().copied();
        let mut formation = Formation::new(self.me.clone(), named, self.configured.clone());
        let peers: Vec<_> = self.others.iter().map(|(id, address)| (*id, peer(env, address))).collect();
        let mut outcome = formation.begin();
        let mut round = 0;
        loop {
            if let Some(outcome) = outcome {
                return Ok(self.beginning(env, outcome));
            }
            let mut missing = Vec::new();
            for (id, peer) in &peers {
                match introduction_of(env, peer).await {
                    Some(introduction) => outcome = formation.handle_introduction(*id, introduction)?,
                    None => missing.push(id.0),
                }
                if outcome.is_some() {
                    break;
                }
            }
            round += 1;
            if round == PATIENT_ROUNDS && !missing.is_empty() {
                warn!(?missing, "voters of controller.quorum.voters have not answered yet");
            }
            env.clock.sleep(ASK_AGAIN).await;
        }
    }

    fn beginning(&self, env: &Env, outcome: Outcome) -> Beginning {
        match outcome {
            Outcome::Form(voters) => {
                let made = || ClusterId::from(env.rng.uuid().to_string());
                let cluster_id = self.configured.clone().unwrap_or_else(made);
                info!(%cluster_id, voters = voters.len(), "this node forms the cluster");
                Beginning { cluster_id, voters }
            }
            Outcome::Join(cluster) => {
                info!(cluster_id = %cluster.id, voters = cluster.voters.len(), "this node is a voter of the cluster");
                Beginning { cluster_id: cluster.id, voters: cluster.voters }
            }
            Outcome::Observe(cluster_id) => {
                if self.named.contains(&self.me.key.id) {
                    warn!(%cluster_id, "the cluster's voters do not name this node's disk: it observes until it is added");
                } else {
                    info!(%cluster_id, "this node is a broker of the cluster");
                }
                Beginning { cluster_id, voters: VoterSet::default() }
            }
        }
    }
}

async fn introduction_of(env: &Env, peer: &Peer) -> Option<Introduction> {
    let deadline = env.clock.now().plus(ANSWER_WITHIN);
    match peer.call::<DescribeClusterRequest>(deadline, |_| introduction::ask()).await {
        Ok(answer) => introduction::hear(&answer.response),
        Err(error) => {
            debug!(%error, "a voter did not introduce itself");
            None
        }
    }
}

fn peer(env: &Env, address: &str) -> Peer {
    let config = PeerConfig {
        client_id: "ottla-newcomer".to_owned(),
        frame_bytes_max: Limits::SMALL_FILE_BYTES_MAX,
        in_flight_max: 1,
        setup_timeout: ANSWER_WITHIN,
        reconnect_backoff: ASK_AGAIN,
        reconnect_backoff_max: ASK_AGAIN,
    };
    Peer::new(env, config, address, "introduction")
}
