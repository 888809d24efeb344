//! Elections that somebody asks for, and those that are tried again and again while a partition has no leader.
//!
//! Kafka: `ReplicationControlManager.electLeaders`, `maybeElectUncleanLeaders`; KIP-460.

use metadata::Topic;
use model::{NodeId, PartitionIndex, TopicIdPartition};
use protocol::records::metadata::MetadataRecord;

use crate::change::Election;
use crate::partition_changes::{Moves, Wanted};
use crate::{Controller, Decision, ElectionError, change};

/// Elections to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectLeaders {
    /// Which kind.
    pub election: ElectionType,
    /// For which partitions, by topic; `None` is for all.
    pub partitions: Option<Vec<(String, PartitionIndex)>>,
}

/// What an election is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionType {
    /// That the preferred replica leads.
    Preferred,
    /// That somebody leads at all.
    Unclean,
}

/// What came of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectedLeader {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// Why nobody was elected.
    pub result: Result<(), ElectionError>,
}

impl ElectionType {
    /// The kind of this number on the wire.
    pub fn from_code(code: i8) -> Option<Self> {
        match code {
            0 => Some(Self::Preferred),
            1 => Some(Self::Unclean),
            _ => None,
        }
    }
}

impl Controller {
    /// Decides on elections.
    pub fn elect_leaders(&self, command: &ElectLeaders) -> Decision<Vec<ElectedLeader>> {
        let mut records = Vec::new();
        let mut elect = |topic: &str, partition: PartitionIndex| ElectedLeader {
            topic: topic.to_owned(),
            partition,
            result: self.elect(command.election, topic, partition).map(|record| records.push(record)),
        };
        let reply = if let Some(named) = &command.partitions {
            once(named).map(|(topic, partition)| elect(topic, *partition)).collect()
        } else {
            let topics = self.image.topics.iter();
            let all = topics.flat_map(|topic| topic.partitions.keys().map(|index| (&topic.name, *index)));
            all.map(|(name, index)| elect(name.as_str(), index)).collect()
        };
        Decision { records, reply }
    }

    fn elect(
        &self,
        election: ElectionType,
        name: &str,
        index: PartitionIndex,
    ) -> Result<MetadataRecord, ElectionError> {
        let topic = self.image.topics.by_name(name);
        let topic = topic.ok_or_else(|| ElectionError::UnknownTopic(name.to_owned()))?;
        let unknown = || ElectionError::UnknownPartition { topic: name.to_owned(), partition: index };
        let before = topic.partitions.get(&index).ok_or_else(unknown)?;
        let (is_needed, by, failure) = match election {
            ElectionType::Preferred => (
                before.replicas.first() != Some(&before.leader),
                Election::Preferred,
                ElectionError::PreferredLeaderNotAvailable,
            ),
            ElectionType::Unclean => {
                (before.leader == NodeId::NONE, Election::Unclean, ElectionError::EligibleLeadersNotAvailable)
            }
        };
        if !is_needed {
            return Err(ElectionError::NotNeeded);
        }
        let wanted = Wanted { election: Some(by), ..before.clone().into() };
        let after = self.settled(topic, before, wanted, Moves::default());
        let of = TopicIdPartition { topic_id: topic.id, partition: index };
        change::record(of, before, &after).map(MetadataRecord::from).ok_or(failure)
    }

    /// The records that elect leaders for all partitions which have none, where that may be unclean.
    pub(crate) fn unclean_elections(&self) -> Vec<MetadataRecord> {
        self.changes(Moves::default(), |topic, _, partition| {
            let leaderless = partition.leader == NodeId::NONE;
            (leaderless && self.allows_unclean(topic)).then(|| partition.clone().into())
        })
    }

    fn allows_unclean(&self, topic: &Topic) -> bool {
        self.topic_election(topic) == Election::Unclean
    }
}

/// Each of them the first time that it is named.
fn once(named: &[(String, PartitionIndex)]) -> impl Iterator<Item = &(String, PartitionIndex)> {
    let mut seen = std::collections::BTreeSet::new();
    named.iter().filter(move |one| seen.insert(*one))
}
