//! Reads a topic from its start to its end, with the limits of the Java consumer; each connection has a part of the partitions.

use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use protocol::messages::FetchRequest;
use protocol::messages::fetch_request::{FetchPartition, FetchTopic};

use crate::load::Load;
use crate::walk::Walk;
use crate::wire::{Connection, frame};

/// The last version that names topics.
const VERSION: i16 = 12;
/// `fetch.max.bytes` and `max.partition.fetch.bytes`.
const FETCH_BYTES: i32 = 50 << 20;
const PARTITION_BYTES: i32 = 1 << 20;

/// How far one partition was read.
struct Position {
    partition: i32,
    offset: i64,
    is_read: bool,
}

pub(crate) fn run(load: &Load) -> Result<()> {
    let start = Instant::now();
    let read = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..load.connections).map(|part| scope.spawn(move || read_part(load, part))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a connection's thread panicked"))
            .sum::<Result<u64>>()
    })?;
    println!("bytes={read} seconds={:.4}", start.elapsed().as_secs_f64());
    Ok(())
}

/// The bytes that one connection read.
fn read_part(load: &Load, part: usize) -> Result<u64> {
    let mut connection = Connection::open(load.target.port)?;
    let mut positions: Vec<_> = (0..load.target.partitions)
        .skip(part)
        .step_by(load.connections)
        .map(|partition| Position { partition, offset: 0, is_read: false })
        .collect();
    let mut bytes = 0;
    while !positions.is_empty() {
        connection.send(&frame(VERSION, &request(load, &positions))?)?;
        bytes += take(connection.receive()?, &mut positions)?;
        positions.retain(|position| !position.is_read);
        // Where the answer is full, the last ones got nothing: they come first in the next one.
        let half = positions.len() / 2;
        positions.rotate_left(half);
    }
    Ok(bytes)
}

fn request(load: &Load, positions: &[Position]) -> FetchRequest {
    let partitions = positions.iter().map(|position| {
        FetchPartition::default()
            .with_partition(position.partition)
            .with_fetch_offset(position.offset)
            .with_partition_max_bytes(PARTITION_BYTES)
    });
    let topic = FetchTopic::default().with_topic(load.target.name()).with_partitions(partitions.collect());
    FetchRequest::default()
        .with_max_wait_ms(500)
        .with_min_bytes(1)
        .with_max_bytes(FETCH_BYTES)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// Moves the positions behind what came.
fn take(response: &[u8], positions: &mut [Position]) -> Result<u64> {
    let mut walk = Walk(response);
    let mut bytes = 0;
    walk.i32()?;
    walk.tags()?;
    walk.i32()?;
    let error = walk.i16()?;
    ensure!(error == 0, "Fetch: error {error}");
    walk.i32()?;
    for _ in 0..walk.compact_count()? {
        walk.compact_bytes()?;
        for _ in 0..walk.compact_count()? {
            bytes += take_partition(&mut walk, positions)?;
        }
        walk.tags()?;
    }
    Ok(bytes)
}

fn take_partition(walk: &mut Walk<'_>, positions: &mut [Position]) -> Result<u64> {
    let (partition, error, high_watermark) = (walk.i32()?, walk.i16()?, walk.i64()?);
    ensure!(error == 0, "Fetch of partition {partition}: error {error}");
    walk.take(8 + 8)?; // last stable offset, log start
    for _ in 0..walk.compact_count()? {
        walk.take(8 + 8)?;
        walk.tags()?;
    }
    walk.i32()?;
    let records = walk.compact_bytes()?;
    walk.tags()?;
    let position = positions
        .iter_mut()
        .find(|position| position.partition == partition)
        .context("a partition that was not asked for")?;
    if let Some(end) = end(records)? {
        position.offset = end;
    }
    position.is_read = position.offset >= high_watermark;
    Ok(records.len() as u64)
}

/// The offset behind the last whole batch.
fn end(records: &[u8]) -> Result<Option<i64>> {
    let (mut rest, mut end) = (Walk(records), None);
    while rest.0.len() >= 12 {
        let base_offset = rest.i64()?;
        let length = usize::try_from(rest.i32()?)?;
        if rest.0.len() < length {
            break;
        }
        let mut batch = Walk(rest.take(length)?);
        batch.take(4 + 1 + 4 + 2)?; // leader epoch, magic, crc, attributes
        end = Some(base_offset + i64::from(batch.i32()?) + 1);
    }
    Ok(end)
}
