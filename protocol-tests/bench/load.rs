//! What is sent: topics, batches, and how much of them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use model::Timestamp;
use protocol::StrBytes;
use protocol::batch::{BatchBuilder, Codec};
use protocol::messages::create_topics_request::CreatableTopic;
use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::{CreateTopicsRequest, DeleteTopicsRequest, ProduceRequest, TopicName};

use crate::produce;
use crate::wire::{Connection, frame};

/// What a batch grows to: the Java producer's `batch.size`.
const BATCH_BYTES: usize = 16 << 10;
const READY_WAIT: Duration = Duration::from_secs(60);

/// A topic of a broker on this machine.
#[derive(Args, Clone)]
pub(crate) struct Target {
    #[arg(long)]
    pub(crate) port: u16,
    #[arg(long, default_value = "bench")]
    pub(crate) topic: String,
    #[arg(long, default_value_t = 6)]
    pub(crate) partitions: i32,
}

/// What is written to it, or was.
#[derive(Args, Clone)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) target: Target,
    #[arg(long, default_value_t = 1024)]
    pub(crate) record_bytes: usize,
    #[arg(long, value_enum, default_value_t = Compression::None)]
    pub(crate) codec: Compression,
    #[arg(long, default_value_t = 4)]
    pub(crate) connections: usize,
    /// Requests of a connection that are not answered yet.
    #[arg(long, default_value_t = 5)]
    pub(crate) in_flight: usize,
    /// Ends after so many seconds,
    #[arg(long, default_value_t = 5.0)]
    pub(crate) seconds: f64,
    /// or after so many bytes of batches, whichever comes first.
    #[arg(long, default_value_t = 1_000_000_000)]
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Compression {
    None,
    Lz4,
}

impl Target {
    pub(crate) fn create(&self) -> Result<()> {
        let topic = CreatableTopic::default()
            .with_name(self.name())
            .with_num_partitions(self.partitions)
            .with_replication_factor(1);
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
        let mut connection = Connection::open(self.port)?;
        for topic in connection.call(7, &request)?.topics {
            if topic.error_code != 0 {
                bail!("CreateTopics: error {} {:?}", topic.error_code, topic.error_message);
            }
        }
        self.wait_until_writable(&mut connection)
    }

    pub(crate) fn wait(&self) -> Result<()> {
        self.wait_until_writable(&mut Connection::open(self.port)?)
    }

    /// Leaders are known to the broker a little later than the topic is.
    fn wait_until_writable(&self, connection: &mut Connection) -> Result<()> {
        let request = self.request(&batch(1, 100, Codec::None), 0..self.partitions)?;
        let deadline = Instant::now() + READY_WAIT;
        loop {
            connection.send(&request)?;
            match produce::check(connection.receive()?)? {
                None => return Ok(()),
                Some(error) if Instant::now() > deadline => bail!("Produce: error {error}"),
                Some(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    pub(crate) fn delete(&self) -> Result<()> {
        let request =
            DeleteTopicsRequest::default().with_topic_names(vec![self.name()]).with_timeout_ms(30_000);
        for topic in Connection::open(self.port)?.call(5, &request)?.responses {
            if topic.error_code != 0 {
                bail!("DeleteTopics: error {}", topic.error_code);
            }
        }
        Ok(())
    }

    pub(crate) fn name(&self) -> TopicName {
        TopicName(StrBytes::from_string(self.topic.clone()))
    }

    /// A Produce frame with the same batch for each of these partitions.
    pub(crate) fn request(&self, batch: &Bytes, partitions: std::ops::Range<i32>) -> Result<Vec<u8>> {
        let data = partitions
            .map(|index| PartitionProduceData::default().with_index(index).with_records(Some(batch.clone())));
        let topic = TopicProduceData::default().with_name(self.name()).with_partition_data(data.collect());
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
        frame(produce::VERSION, &request)
    }
}

impl Load {
    /// A batch that is as large as a producer's would be after compression, and how many records it has.
    pub(crate) fn batch(&self) -> (Bytes, usize) {
        let codec = match self.codec {
            Compression::None => Codec::None,
            Compression::Lz4 => Codec::Lz4,
        };
        let count = BATCH_BYTES.div_ceil(self.record_bytes + 10).max(2) - 1;
        let packed = batch(count, self.record_bytes, codec).len();
        let count = if matches!(codec, Codec::None) { count } else { count * BATCH_BYTES / packed };
        (batch(count, self.record_bytes, codec), count)
    }
}

/// A batch of records that compress to about half, as JSON of a real application does.
pub(crate) fn batch(records: usize, record_bytes: usize, codec: Codec) -> Bytes {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut builder = BatchBuilder::new().codec(codec).timestamp(Timestamp(now.as_millis() as i64));
    let mut text = Text(1);
    for _ in 0..records {
        builder.append(None, Some(&text.take(record_bytes)), &[]);
    }
    builder.build()
}

/// Half of it is the same words again and again, half is noise (xorshift).
struct Text(u64);

impl Text {
    fn take(&mut self, size: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(size + 32);
        while text.len() < size {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            text.extend_from_slice(format!("{{\"sensor\":\"{:016x}\",\"at\":", self.0).as_bytes());
        }
        text.truncate(size);
        text
    }
}
