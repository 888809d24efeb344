//! The first start of several voters with empty folders and no format step.
//!
//! Each node that `controller.quorum.voters` names asks all the others who they are. Only when *all* have
//! answered and *all* are empty does the one with the lowest id make the cluster: an id for it, and the set
//! of voters with everybody's directory id. The others find that when they ask again, and take it if it names
//! their own directory; a node that it does not name, for its disk was replaced, observes until it is added.
//! A node that was already part of a cluster is never asked to vote in another one.
//!
//! Pure, and without time: the driver asks those in [`Formation::to_ask`] again and again, and hands in what
//! they say, until there is an [`Outcome`].

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterId, NodeId};

use crate::{Voter, VoterSet};

/// What a node says of itself when it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Who it is, its directory id among it.
    pub voter: Voter,
    /// The cluster that it is part of; none where its folder is empty.
    pub cluster: Option<Cluster>,
}

/// A cluster that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its id.
    pub id: ClusterId,
    /// Its first voters.
    pub voters: VoterSet,
}

/// What an empty node is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Make a cluster id; write both down, durably, before anybody is told; start as a voter.
    Form(VoterSet),
    /// Write this down and start as a voter of it.
    Join(Cluster),
    /// Start as an observer of the cluster of this id.
    Observe(ClusterId),
}

/// Why an empty node cannot go on: a person must look.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormationError {
    /// The configuration asks for another cluster.
    #[error("node {node} is of cluster {found}, not of the configured {configured}")]
    OtherCluster {
        /// Who said so.
        node: NodeId,
        /// Its cluster.
        found: ClusterId,
        /// The one that the configuration names.
        configured: ClusterId,
    },
    /// Somebody answers under an id that it does not have.
    #[error("the node at the address of voter {named} calls itself {answered}")]
    OtherNode {
        /// The id that was asked.
        named: NodeId,
        /// The id in the answer.
        answered: NodeId,
    },
}

/// The forming of a cluster, as one empty node sees it.
#[derive(Clone, Debug)]
pub struct Formation {
    me: Voter,
    configured: Option<ClusterId>,
    named: BTreeSet<NodeId>,
    empty: BTreeMap<NodeId, Voter>,
}

impl Formation {
    /// An empty node begins. `named` are the ids in `controller.quorum.voters`, its own among them or not;
    /// `configured` is the cluster id that the configuration asks for, if it does.
    pub fn new(me: Voter, named: impl IntoIterator<Item = NodeId>, configured: Option<ClusterId>) -> Self {
        Self { me, configured, named: named.into_iter().collect(), empty: BTreeMap::new() }
    }

    /// What this node answers when it is asked while it is empty.
    pub fn introduction(&self) -> Introduction {
        Introduction { voter: self.me.clone(), cluster: None }
    }

    /// Whom to ask, all of them, until there is an outcome.
    pub fn to_ask(&self) -> impl Iterator<Item = NodeId> {
        self.named.iter().copied().filter(|id| *id != self.me.key.id)
    }

    /// What can be decided without asking anybody: a voter that is named alone forms the cluster.
    pub fn begin(&self) -> Option<Outcome> {
        self.form()
    }

    /// `asked` has answered.
    ///
    /// # Errors
    /// Where the answer shows that nodes are configured to belong to different clusters.
    pub fn handle_introduction(
        &mut self,
        asked: NodeId,
        introduction: Introduction,
    ) -> Result<Option<Outcome>, FormationError> {
        let answered = introduction.voter.key.id;
        if answered != asked {
            return Err(FormationError::OtherNode { named: asked, answered });
        }
        if let Some(cluster) = introduction.cluster {
            return self.join(asked, cluster).map(Some);
        }
        self.empty.insert(asked, introduction.voter);
        Ok(self.form())
    }

    fn join(&self, node: NodeId, cluster: Cluster) -> Result<Outcome, FormationError> {
        if let Some(configured) = self.configured.as_ref().filter(|configured| **configured != cluster.id) {
            let configured = configured.clone();
            return Err(FormationError::OtherCluster { node, found: cluster.id, configured });
        }
        let named = cluster.voters.contains(&self.me.key);
        Ok(if named { Outcome::Join(cluster) } else { Outcome::Observe(cluster.id) })
    }

    fn form(&self) -> Option<Outcome> {
        let all_are_empty = self.to_ask().all(|id| self.empty.contains_key(&id));
        let is_lowest = self.named.first() == Some(&self.me.key.id);
        let voters = || self.empty.values().chain([&self.me]).cloned().collect();
        (all_are_empty && is_lowest).then(|| Outcome::Form(voters()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplicaKey;

    const NAMED: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

    fn voter(id: i32, directory: u8) -> Voter {
        Voter::new(ReplicaKey::new(NodeId(id), model::Uuid([directory; 16])))
    }

    fn empty(id: i32) -> Introduction {
        Introduction { voter: voter(id, 1), cluster: None }
    }

    fn of_cluster(id: i32, name: &str, voters: &[Voter]) -> Introduction {
        let cluster = Cluster { id: name.into(), voters: voters.iter().cloned().collect() };
        Introduction { voter: voter(id, 1), cluster: Some(cluster) }
    }

    #[test]
    fn a_voter_that_is_named_alone_forms_the_cluster() {
        let formation = Formation::new(voter(1, 1), [NodeId(1)], None);
        assert_eq!(formation.begin(), Some(Outcome::Form([voter(1, 1)].into_iter().collect())));
    }

    #[test]
    fn the_lowest_forms_the_cluster_when_all_are_empty() {
        let mut formation = Formation::new(voter(1, 1), NAMED, None);
        assert_eq!(formation.begin(), None);
        assert_eq!(formation.handle_introduction(NodeId(2), empty(2)), Ok(None), "one has not answered");
        let all = [voter(1, 1), voter(2, 1), voter(3, 1)].into_iter().collect();
        assert_eq!(formation.handle_introduction(NodeId(3), empty(3)), Ok(Some(Outcome::Form(all))));
    }

    #[test]
    fn a_node_that_is_not_named_never_forms_the_cluster() {
        let mut formation = Formation::new(voter(0, 1), NAMED, None);
        assert_eq!(formation.begin(), None);
        for id in [1, 2, 3] {
            assert_eq!(formation.handle_introduction(NodeId(id), empty(id)), Ok(None));
        }
    }

    #[test]
    fn others_wait_for_the_lowest_and_take_what_names_them() {
        let mut formation = Formation::new(voter(2, 1), NAMED, None);
        assert_eq!(formation.handle_introduction(NodeId(1), empty(1)), Ok(None));
        assert_eq!(formation.handle_introduction(NodeId(3), empty(3)), Ok(None));
        let all = [voter(1, 1), voter(2, 1), voter(3, 1)];
        let outcome = formation.handle_introduction(NodeId(1), of_cluster(1, "a", &all));
        let cluster = Cluster { id: "a".into(), voters: all.into_iter().collect() };
        assert_eq!(outcome, Ok(Some(Outcome::Join(cluster))));
    }

    #[test]
    fn a_voter_whose_disk_was_replaced_only_observes() {
        let mut formation = Formation::new(voter(1, 2), NAMED, None);
        let all = [voter(1, 1), voter(2, 1), voter(3, 1)];
        let outcome = formation.handle_introduction(NodeId(2), of_cluster(2, "a", &all));
        assert_eq!(outcome, Ok(Some(Outcome::Observe("a".into()))));
    }

    #[test]
    fn another_cluster_than_the_configured_one_is_refused() {
        let mut formation = Formation::new(voter(2, 1), NAMED, Some("b".into()));
        let refused = formation.handle_introduction(NodeId(1), of_cluster(1, "a", &[voter(2, 1)]));
        let (found, configured) = ("a".into(), "b".into());
        assert_eq!(refused, Err(FormationError::OtherCluster { node: NodeId(1), found, configured }));
    }

    #[test]
    fn an_answer_under_another_id_is_refused() {
        let mut formation = Formation::new(voter(1, 1), NAMED, None);
        let refused = formation.handle_introduction(NodeId(2), empty(3));
        assert_eq!(refused, Err(FormationError::OtherNode { named: NodeId(2), answered: NodeId(3) }));
    }
}
