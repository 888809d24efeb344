//! Producers of one partition each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::BoxFuture;
use model::{ErrorCode, ProducerEpoch, ProducerId, Sequence};
use protocol::StrBytes;
use protocol::batch::BatchBuilder;
use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::{InitProducerIdRequest, ProduceRequest, ProduceResponse, TopicName};

use crate::client::{Client, Lost, is_retriable};
use crate::ledger::Place;
use crate::simulation::Shared;

/// The newest version that names topics.
const PRODUCE: i16 = 12;
const INIT_PRODUCER_ID: i16 = 5;
/// As many as the broker remembers.
const IN_FLIGHT_MAX: usize = 5;
const TRY_AGAIN: Duration = Duration::from_millis(50);
const TIMEOUT_MS: i32 = 10_000;

/// How a producer wants to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Everything, once, in order: tries until it is acknowledged.
    Idempotent,
    /// acks=all without idempotence: tries nothing again.
    Plain,
    /// acks=1: what is acknowledged may be lost, but not once it was seen.
    Leader,
}

struct Batch {
    /// Of the first record: its number, and its sequence.
    first: u64,
    count: u64,
    bytes: Bytes,
}

/// One producer.
pub(crate) struct Producer {
    shared: Arc<Shared>,
    client: Client,
    kind: Kind,
    name: Arc<str>,
    place: Place,
    id: ProducerId,
    next: u64,
    /// Sent or to be sent, in order.
    pending: VecDeque<Batch>,
}

impl Producer {
    pub(crate) fn new(shared: &Arc<Shared>, kind: Kind, name: &str, place: Place) -> Self {
        let (shared, client) = (Arc::clone(shared), Client::new(shared));
        Self {
            shared,
            client,
            kind,
            name: name.into(),
            place,
            id: ProducerId::NONE,
            next: 0,
            pending: VecDeque::new(),
        }
    }

    /// Produces until the simulation's work is over and everything is answered.
    pub(crate) async fn run(mut self) {
        if self.kind == Kind::Idempotent {
            self.init().await;
        }
        while !self.shared.is_over() || !self.pending.is_empty() {
            if self.round().await.is_err() {
                self.client.disconnect();
                if self.kind != Kind::Idempotent {
                    self.pending.clear();
                }
                self.pause(TRY_AGAIN).await;
            }
        }
        if self.kind == Kind::Idempotent {
            self.shared.ledger().check_later(&self.name, self.next);
        }
    }

    async fn init(&mut self) {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_producer_id((-1).into())
            .with_producer_epoch(-1);
        loop {
            match self.client.call(INIT_PRODUCER_ID, &request).await {
                Ok(answer) if answer.error_code == 0 => {
                    self.id = ProducerId(answer.producer_id.0);
                    return;
                }
                Ok(answer) if !is_retriable(answer.error_code) => {
                    self.shared.violation(format!("InitProducerId was answered with {}", answer.error_code));
                    return;
                }
                Ok(_) | Err(Lost) => self.pause(TRY_AGAIN).await,
            }
        }
    }

    /// Sends all that is pending on one connection, and more as answers come, until something fails.
    async fn round(&mut self) -> Result<(), Lost> {
        let mut sent = 0;
        loop {
            self.top_up();
            while sent < self.pending.len() {
                self.send(sent).await?;
                sent += 1;
            }
            if sent == 0 {
                return Ok(());
            }
            let (_, answer) = self.client.receive::<ProduceRequest>(PRODUCE).await?;
            sent -= 1;
            self.answered(&answer)?;
            let wait = Duration::from_millis(self.shared.env.rng.below(30));
            self.pause(wait).await;
        }
    }

    fn top_up(&mut self) {
        let in_flight_max = if self.kind == Kind::Idempotent { IN_FLIGHT_MAX } else { 1 };
        while self.pending.len() < in_flight_max && !self.shared.is_over() {
            let batch = self.batch();
            self.pending.push_back(batch);
        }
    }

    fn batch(&mut self) -> Batch {
        let rng = &self.shared.env.rng;
        let (first, count) = (self.next, 1 + rng.below(4));
        let mut builder = BatchBuilder::new().timestamp(self.shared.env.clock.wall());
        if self.kind == Kind::Idempotent {
            builder = builder.producer(self.id, ProducerEpoch(0), Sequence(first as i32));
        }
        for number in first..first + count {
            // Now and then a large one, so that segments roll.
            let padding = if rng.below(20) == 0 { rng.below(60_000) } else { rng.below(100) };
            let value = format!("{} {number} {}", self.name, "x".repeat(padding as usize));
            builder.append(None, Some(value.as_bytes()), &[]);
        }
        self.next += count;
        Batch { first, count, bytes: builder.build() }
    }

    async fn send(&mut self, index: usize) -> Result<(), Lost> {
        let records = self.pending[index].bytes.clone();
        let partition = PartitionProduceData::default().with_index(self.place.1).with_records(Some(records));
        let topic = TopicProduceData::default()
            .with_name(TopicName(StrBytes::from_static_str(self.place.0)))
            .with_partition_data(vec![partition]);
        let request = ProduceRequest::default()
            .with_acks(if self.kind == Kind::Leader { 1 } else { -1 })
            .with_timeout_ms(TIMEOUT_MS)
            .with_topic_data(vec![topic]);
        self.client.send(PRODUCE, &request).await.map(drop)
    }

    /// Takes the answer to the first batch that is pending.
    fn answered(&mut self, answer: &ProduceResponse) -> Result<(), Lost> {
        let partition = &answer.responses[0].partition_responses[0];
        let code = partition.error_code;
        if code == 0 || code == ErrorCode::DuplicateSequenceNumber.code() {
            let batch = self.pending.pop_front().ok_or(Lost)?;
            self.acknowledged(&batch, (code == 0).then_some(partition.base_offset));
            return Ok(());
        }
        if !is_retriable(code) {
            let first = self.pending.front().map(|batch| batch.first);
            let text = partition.error_message.as_ref().map(ToString::to_string);
            self.shared.violation(format!("{} {first:?} was refused with {code}: {text:?}", self.name));
        }
        Err(Lost)
    }

    fn acknowledged(&self, batch: &Batch, offset: Option<i64>) {
        if self.kind == Kind::Leader {
            return;
        }
        let mut ledger = self.shared.ledger();
        for delta in 0..batch.count {
            let name = (Arc::clone(&self.name), batch.first + delta);
            ledger.acknowledged(name, self.place, offset.map(|offset| offset + delta as i64));
        }
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.shared.env.clock.sleep(wait)
    }
}
