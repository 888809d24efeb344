//! A consumer of all partitions, from the start on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use protocol::StrBytes;
use protocol::batch::batches;
use protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use protocol::messages::fetch_response::PartitionData;
use protocol::messages::{FetchRequest, TopicName};

use crate::client::{Client, Lost, is_retriable};
use crate::ledger::{Ledger, Place};
use crate::simulation::{PLACES, Shared};

/// The newest version that names topics.
const FETCH: i16 = 12;
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Several batches of several partitions.
const MIN_BYTES_MAX: u64 = 2048;
/// The observer that reads all when nothing happens any more.
pub(crate) const FINAL: u64 = 0;
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// One consumer.
pub(crate) struct Consumer {
    shared: Arc<Shared>,
    client: Client,
    /// The next offset of each partition.
    positions: BTreeMap<Place, i64>,
    /// Its number among all observers.
    observer: u64,
}

impl Consumer {
    pub(crate) fn new(shared: &Arc<Shared>, observer: u64) -> Self {
        let positions = PLACES.iter().map(|place| (*place, 0)).collect();
        Self { shared: Arc::clone(shared), client: Client::new(shared), positions, observer }
    }

    /// Reads until the simulation's work is over; begins again from the start now and then.
    pub(crate) async fn run(mut self) {
        while !self.shared.is_over() {
            let wait_ms = self.shared.env.rng.below(500) as i32;
            if self.fetch(wait_ms).await.is_err() {
                self.client.disconnect();
                self.shared.env.clock.sleep(TRY_AGAIN).await;
            }
            if self.shared.env.rng.below(200) == 0 {
                self.positions.values_mut().for_each(|position| *position = 0);
            }
        }
    }

    /// Reads everything up to the high watermarks; false where the broker does not answer for a long time.
    pub(crate) async fn read_to_end(mut self) -> bool {
        let mut failures = 0;
        while failures < 100 {
            match self.fetch(0).await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(Lost) => {
                    failures += 1;
                    self.client.disconnect();
                    self.shared.env.clock.sleep(TRY_AGAIN).await;
                }
            }
        }
        false
    }

    /// One Fetch of all partitions; gives back whether all are read to their end.
    async fn fetch(&mut self, wait_ms: i32) -> Result<bool, Lost> {
        let request = self.request(wait_ms);
        let answer = self.client.call(FETCH, &request).await?;
        let mut at_end = true;
        let mut failed = answer.error_code != 0;
        for (topic, partitions) in answer.responses.iter().map(|each| (&each.topic, &each.partitions)) {
            for data in partitions {
                let place =
                    PLACES.iter().find(|place| place.0 == &***topic && place.1 == data.partition_index);
                let place = *place.expect("a partition that was asked for");
                match data.error_code {
                    0 => at_end &= self.take(place, data),
                    code if is_retriable(code) => failed = true,
                    code => {
                        let position = self.positions[&place];
                        self.shared
                            .violation(format!("a Fetch of {place:?} at {position} was refused with {code}"));
                        failed = true;
                    }
                }
            }
        }
        if failed { Err(Lost) } else { Ok(at_end) }
    }

    fn request(&self, wait_ms: i32) -> FetchRequest {
        let partition = |(place, position): (&Place, &i64)| {
            let partition = FetchPartition::default()
                .with_partition(place.1)
                .with_fetch_offset(*position)
                .with_log_start_offset(-1)
                .with_partition_max_bytes(BATCH_BYTES_MAX as i32);
            FetchTopic::default()
                .with_topic(TopicName(StrBytes::from_static_str(place.0)))
                .with_partitions(vec![partition])
        };
        FetchRequest::default()
            .with_max_wait_ms(wait_ms)
            .with_min_bytes(1 + self.shared.env.rng.below(MIN_BYTES_MAX) as i32)
            .with_max_bytes(BATCH_BYTES_MAX as i32)
            .with_session_epoch(-1)
            .with_topics(self.positions.iter().map(partition).collect())
    }

    /// Takes one partition's answer; gives back whether there is nothing more.
    fn take(&mut self, place: Place, data: &PartitionData) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut ledger = shared.ledger();
        ledger.bounds(self.observer, place, data.log_start_offset, data.high_watermark);
        let position = self.positions.entry(place).or_default();
        for batch in batches(data.records.as_deref().unwrap_or_default()) {
            // The last batch may be cut off.
            let Ok(batch) = batch else { break };
            if let Err(error) = batch.verify_crc() {
                ledger.violation(format!("a batch of {place:?}: {error}"));
            }
            let records = batch.records(BATCH_BYTES_MAX).expect("records in the batch");
            for record in records.iter().map(|record| record.expect("a record")) {
                if record.offset.0 >= *position {
                    see(&mut ledger, place, *position, record.offset.0, record.value.unwrap_or_default());
                    *position = record.offset.0 + 1;
                }
            }
        }
        let at_end = *position >= data.high_watermark;
        if at_end && self.shared.is_over() && self.observer == FINAL {
            ledger.end(place, data.high_watermark);
        }
        at_end
    }
}

/// A record at `offset`, where `position` was the next.
fn see(ledger: &mut Ledger, place: Place, position: i64, offset: i64, value: &[u8]) {
    if offset != position {
        ledger.violation(format!("{place:?}: {offset} follows where {position} was next"));
    }
    let mut words = value.split(|byte| *byte == b' ').map(String::from_utf8_lossy);
    let name = words.next().unwrap_or_default();
    match words.next().and_then(|number| number.parse().ok()) {
        Some(number) => ledger.seen(place, offset, (name.as_ref().into(), number)),
        None => ledger.violation(format!("{place:?} offset {offset} is nobody's record")),
    }
}
