//! Writes the first inputs of the corpus: a message of every API in its newest and its oldest version, a record of every
//! type, and what Kafka itself wrote.

use std::fs;
use std::io::Result;
use std::path::Path;

use fastrand::Rng;
use protocol::batch::batches;
use protocol::schema::Versions;
use protocol::tables::APIS;

#[path = "../../src/protocol/tests/common/mod.rs"]
mod common;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/protocol/tests/golden/");

fn main() -> Result<()> {
    messages()?;
    kafka_batches()?;
    kafka_records("cluster-metadata.log")?;
    kafka_records("bootstrap.checkpoint")?;
    kafka_records("consumer-offsets.log")?;
    let state = r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;
    write("quorum_state", "kafka", state.as_bytes())
}

fn messages() -> Result<()> {
    let mut random = Rng::with_seed(1);
    for api in APIS {
        let Versions { min, max } = api.stable_versions();
        for version in [min, max] {
            let name = format!("{}-{version}", api.name);
            let start = [api.key.to_be_bytes(), version.to_be_bytes()].concat();
            let mut request = [&start[..], &[0, 0, 0, 1, 0, 1, b'c']].concat();
            request.extend((1..api.request_header_version(version)).map(|_| 0));
            request.extend(common::random_message(api.request, version, &mut random));
            write("request", &name, &request)?;
            let body = common::random_message(api.response, version, &mut random);
            write("response", &name, &[start, body].concat())?;
        }
    }
    Ok(())
}

fn kafka_batches() -> Result<()> {
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        write("batches", codec, &fs::read(format!("{GOLDEN}{codec}.batches"))?)?;
    }
    Ok(())
}

fn kafka_records(file: &str) -> Result<()> {
    let log = fs::read(format!("{GOLDEN}{file}"))?;
    for batch in batches(&log) {
        let batch = batch.expect("a batch of Kafka's");
        for record in &batch.records(1 << 20).expect("records of Kafka's") {
            let record = record.expect("a record of Kafka's");
            let name = format!("{file}-{}", record.offset);
            let value = record.value.unwrap_or_default();
            let key = record.key.unwrap_or_default();
            let both = [&[key.len() as u8], key, value].concat();
            match (batch.header.is_control(), key) {
                (true, _) => write("control_record", &name, &both)?,
                (false, []) => write("metadata_record", &name, value)?,
                (false, _) => write("offsets_record", &name, &both)?,
            }
        }
    }
    Ok(())
}

fn write(target: &str, name: &str, input: &[u8]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), input)
}
