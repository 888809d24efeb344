//! Who votes: voters by (id, directory id), sets of them, and which set counts at which offset.
//!
//! A voter whose disk came back empty has another directory id and is not that voter. A set counts from the
//! moment its record is appended, and no longer when that record is cut away.
//!
//! Kafka: `ReplicaKey`, `VoterSet`, `VoterSetHistory`, KIP-853.

use std::collections::BTreeMap;
use std::fmt;

use model::{DirectoryId, NodeId, Offset};

/// A replica of the metadata log: a node on a certain disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ReplicaKey {
    /// `node.id`.
    pub id: NodeId,
    /// `directory.id` of its metadata log folder; zero where it is not known (kraft.version 0).
    pub directory: DirectoryId,
}

impl ReplicaKey {
    /// Puts the two together.
    pub fn new(id: NodeId, directory: DirectoryId) -> Self {
        Self { id, directory }
    }

    /// Whether both may be the same replica: directory ids count where both are known.
    pub fn is_same(&self, other: &Self) -> bool {
        let unknown = self.directory.is_zero() || other.directory.is_zero();
        self.id == other.id && (unknown || self.directory == other.directory)
    }
}

impl fmt::Debug for ReplicaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id, self.directory)
    }
}

/// Where a voter listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The listener's name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A voter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Voter {
    /// Who it is.
    pub key: ReplicaKey,
    /// Where its controller listeners are.
    pub endpoints: Vec<Endpoint>,
    /// The lowest kraft.version that it can do.
    pub kraft_version_min: i16,
    /// The highest kraft.version that it can do.
    pub kraft_version_max: i16,
}

impl Voter {
    /// A voter without endpoints, for kraft.version 0 and 1.
    pub fn new(key: ReplicaKey) -> Self {
        Self { key, endpoints: Vec::new(), kraft_version_min: 0, kraft_version_max: 1 }
    }
}

/// A set of voters, each id once. The empty set elects nobody.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct VoterSet(BTreeMap<NodeId, Voter>);

impl FromIterator<Voter> for VoterSet {
    fn from_iter<T: IntoIterator<Item = Voter>>(voters: T) -> Self {
        Self(voters.into_iter().map(|voter| (voter.key.id, voter)).collect())
    }
}

impl VoterSet {
    /// The voters in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Voter> {
        self.0.values()
    }

    /// How many voters there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of them decide.
    pub fn majority(&self) -> usize {
        self.0.len() / 2 + 1
    }

    /// The voter of this id.
    pub fn get(&self, id: NodeId) -> Option<&Voter> {
        self.0.get(&id)
    }

    /// Whether this very replica is a voter.
    pub fn contains(&self, key: &ReplicaKey) -> bool {
        self.0.get(&key.id).is_some_and(|voter| voter.key.is_same(key))
    }

    /// The set with `voter` in the place of whoever had its id.
    #[must_use]
    pub fn with(&self, voter: Voter) -> Self {
        let mut set = self.clone();
        set.0.insert(voter.key.id, voter);
        set
    }

    /// The set without the voter of this id.
    #[must_use]
    pub fn without(&self, id: NodeId) -> Self {
        let mut set = self.clone();
        set.0.remove(&id);
        set
    }
}

/// Which set of voters counts at which offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct VoterHistory {
    base: VoterSet,
    base_is_logged: bool,
    records: Vec<(Offset, VoterSet)>,
}

impl VoterHistory {
    /// A history that begins with a set that no log holds yet: the first leader writes it down.
    pub fn bootstrap(voters: VoterSet) -> Self {
        Self { base: voters, base_is_logged: false, records: Vec::new() }
    }

    /// A history that begins with a snapshot's set; or with the static voters of kraft.version 0, which no record
    /// ever names.
    pub fn of_snapshot(voters: VoterSet) -> Self {
        Self { base: voters, base_is_logged: true, records: Vec::new() }
    }

    /// The set that counts now.
    pub fn current(&self) -> &VoterSet {
        self.records.last().map_or(&self.base, |(_, voters)| voters)
    }

    /// The set that counts for a snapshot of the records before `end`.
    pub fn before(&self, end: Offset) -> &VoterSet {
        self.records.iter().rev().find(|(offset, _)| *offset < end).map_or(&self.base, |(_, voters)| voters)
    }

    /// The offset of the record that the current set comes from; none where it is in a snapshot or nowhere.
    pub fn current_offset(&self) -> Option<Offset> {
        self.records.last().map(|(offset, _)| *offset)
    }

    /// Whether the log or a snapshot other than the first holds the current set.
    pub fn is_logged(&self) -> bool {
        self.base_is_logged || !self.records.is_empty()
    }

    /// A voters record was appended, or found in the log, at `offset`.
    ///
    /// # Panics
    /// Where offsets do not grow.
    pub fn append(&mut self, offset: Offset, voters: VoterSet) {
        assert!(self.current_offset().is_none_or(|last| last < offset), "voters at {offset} come late");
        self.records.push((offset, voters));
    }

    pub(crate) fn truncate(&mut self, to: Offset) {
        self.records.retain(|(offset, _)| *offset < to);
    }

    /// Records before `start` are in a snapshot now.
    pub(crate) fn advance_start(&mut self, start: Offset) {
        if self.records.iter().any(|(offset, _)| *offset < start) {
            self.base = self.before(start).clone();
            self.base_is_logged = true;
            self.records.retain(|(offset, _)| *offset >= start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: i32, directory: u8) -> ReplicaKey {
        ReplicaKey::new(NodeId(id), model::Uuid([directory; 16]))
    }

    fn set(ids: &[i32]) -> VoterSet {
        ids.iter().map(|id| Voter::new(key(*id, 1))).collect()
    }

    #[test]
    fn a_voter_on_another_disk_is_not_that_voter() {
        assert!(set(&[1, 2]).contains(&key(1, 1)));
        assert!(!set(&[1, 2]).contains(&key(1, 2)));
        assert!(set(&[1, 2]).contains(&key(1, 0)), "an unknown directory is not held against it");
    }

    #[test]
    fn a_majority_is_more_than_half() {
        let majorities: Vec<_> = [&[1][..], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4], &[1, 2, 3, 4, 5]]
            .iter()
            .map(|ids| set(ids).majority())
            .collect();
        assert_eq!(majorities, [1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_truncated_voters_record_no_longer_counts() {
        let mut history = VoterHistory::bootstrap(set(&[1]));
        assert!(!history.is_logged());
        history.append(Offset(2), set(&[1]));
        history.append(Offset(9), set(&[1, 2]));
        assert_eq!(history.current(), &set(&[1, 2]));
        assert_eq!(history.before(Offset(9)), &set(&[1]));
        history.truncate(Offset(9));
        assert_eq!(history.current(), &set(&[1]));
        history.truncate(Offset(0));
        assert!(!history.is_logged());
    }

    #[test]
    fn the_set_of_a_snapshot_outlives_its_record() {
        let mut history = VoterHistory::bootstrap(set(&[1]));
        history.append(Offset(9), set(&[1, 2]));
        history.append(Offset(20), set(&[1, 2, 3]));
        history.advance_start(Offset(15));
        assert_eq!(history.before(Offset(16)), &set(&[1, 2]));
        assert_eq!(history.current(), &set(&[1, 2, 3]));
    }
}
