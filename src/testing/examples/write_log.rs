//! Writes a log folder with one partition, for `kafka-dump-log` and other readers of Kafka's files:
//! `cargo run -p testing --example write_log -- FOLDER`.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use host::HostDisk;
use model::{
    BrokerEpoch, LeaderEpoch, NodeId, ProducerEpoch, ProducerId, Sequence, Timestamp, TopicPartition, Uuid,
};
use protocol::batch::{BatchBuilder, Codec};
use storage::{Log, LogConfig, LogFolder, MetaProperties, Origin, TailBudget};

const START: Timestamp = Timestamp(1_790_000_000_000);

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("the folder to write is missing")?;
    let identity = MetaProperties {
        cluster_id: "AAAAAAAAAAAAAAAAAAAAAQ".into(),
        node_id: NodeId(1),
        directory_id: Some(Uuid([7; 16])),
    };
    let folder = LogFolder::open(Arc::new(HostDisk), Path::new(&path), &identity, TailBudget::new(0))?;
    let topic_partition = TopicPartition::new("ottla", 0);
    let config = LogConfig { segment_bytes: 40_000, index_interval_bytes: 1000, ..LogConfig::default() };
    let mut log = folder.open_log(&topic_partition, Uuid([8; 16]), config, START)?;
    for n in 0..120 {
        append(&mut log, n)?;
    }
    log.close()?;
    let row = log.checkpoint(log.log_end())?.run()?;
    folder.close(&[row], BrokerEpoch(1))?;
    Ok(())
}

fn append(log: &mut Log, n: i32) -> Result<()> {
    let now = Timestamp(START.0 + i64::from(n) * 100);
    let codec = Codec::ALL[n as usize % Codec::ALL.len()];
    let producer = (ProducerId(i64::from(n % 3)), ProducerEpoch(0), Sequence(n / 3 * 10));
    let mut builder =
        BatchBuilder::new().timestamp(now).codec(codec).producer(producer.0, producer.1, producer.2);
    for record in 0..10 {
        let (key, value) = (format!("key-{record}"), format!("value-{n}-{record}").repeat(10));
        builder.append(Some(key.as_bytes()), Some(value.as_bytes()), &[(b"n", Some(b"1")), (b"n", None)]);
    }
    log.append_as_leader(&builder.build(), LeaderEpoch(n / 50), now, Origin::Client)?;
    Ok(())
}
