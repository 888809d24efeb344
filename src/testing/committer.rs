//! A group without members that commits rising offsets, and asks for what it committed.

use std::sync::Arc;
use std::time::Duration;

use protocol::StrBytes;
use protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use protocol::messages::{
    FindCoordinatorRequest, GroupId, OffsetCommitRequest, OffsetFetchRequest, TopicName,
};

use crate::client::{Client, Lost, is_retriable};
use crate::ledger::Place;
use crate::simulation::{PLACES, Shared};

/// The newest version for one key.
const FIND_COORDINATOR: i16 = 3;
/// The newest version that names topics.
const OFFSET_COMMIT: i16 = 9;
/// The newest version for one group.
const OFFSET_FETCH: i16 = 7;
const TRY_AGAIN: Duration = Duration::from_millis(200);
const PLACE: Place = PLACES[0];

/// One group.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    client: Client,
    group: Arc<str>,
    /// The highest offset that it tried to commit.
    attempted: i64,
}

impl Committer {
    pub(crate) fn new(shared: &Arc<Shared>, group: &str) -> Self {
        Self { shared: Arc::clone(shared), client: Client::new(shared), group: group.into(), attempted: -1 }
    }

    /// Commits and asks until the simulation's work is over, and asks once more.
    pub(crate) async fn run(mut self) {
        let mut is_asked_last = false;
        while !is_asked_last {
            let is_over = self.shared.is_over();
            if self.round(is_over).await.is_ok() {
                is_asked_last = is_over;
            } else {
                self.client.disconnect();
                self.shared.env.clock.sleep(TRY_AGAIN).await;
            }
        }
    }

    async fn round(&mut self, is_over: bool) -> Result<(), Lost> {
        self.find().await?;
        loop {
            self.fetch().await?;
            if is_over {
                return Ok(());
            }
            for _ in 0..5 {
                self.commit().await?;
                let wait = Duration::from_millis(self.shared.env.rng.below(100));
                self.shared.env.clock.sleep(wait).await;
            }
            if self.shared.is_over() {
                return Ok(());
            }
        }
    }

    async fn find(&mut self) -> Result<(), Lost> {
        let request =
            FindCoordinatorRequest::default().with_key(StrBytes::from_string(self.group.to_string()));
        let answer = self.client.call(FIND_COORDINATOR, &request).await?;
        self.checked("FindCoordinator", answer.error_code)
    }

    async fn commit(&mut self) -> Result<(), Lost> {
        self.attempted += 1;
        let partition = OffsetCommitRequestPartition::default()
            .with_partition_index(PLACE.1)
            .with_committed_offset(self.attempted)
            .with_committed_leader_epoch(-1);
        let topic = OffsetCommitRequestTopic::default().with_name(topic()).with_partitions(vec![partition]);
        let request = OffsetCommitRequest::default()
            .with_group_id(self.group_id())
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![topic]);
        let answer = self.client.call(OFFSET_COMMIT, &request).await?;
        self.checked("OffsetCommit", answer.topics[0].partitions[0].error_code)?;
        self.shared.ledger().committed(&self.group, PLACE, self.attempted);
        Ok(())
    }

    async fn fetch(&mut self) -> Result<(), Lost> {
        let topic =
            OffsetFetchRequestTopic::default().with_name(topic()).with_partition_indexes(vec![PLACE.1]);
        let request =
            OffsetFetchRequest::default().with_group_id(self.group_id()).with_topics(Some(vec![topic]));
        let answer = self.client.call(OFFSET_FETCH, &request).await?;
        self.checked("OffsetFetch", answer.error_code)?;
        let partition = &answer.topics[0].partitions[0];
        self.checked("OffsetFetch", partition.error_code)?;
        self.shared.ledger().fetched(&self.group, PLACE, partition.committed_offset, self.attempted);
        Ok(())
    }

    fn checked(&self, api: &str, code: i16) -> Result<(), Lost> {
        if code != 0 && !is_retriable(code) {
            self.shared.violation(format!("{api} was answered with {code}"));
        }
        if code == 0 { Ok(()) } else { Err(Lost) }
    }

    fn group_id(&self) -> GroupId {
        GroupId(StrBytes::from_string(self.group.to_string()))
    }
}

fn topic() -> TopicName {
    TopicName(StrBytes::from_static_str(PLACE.0))
}
