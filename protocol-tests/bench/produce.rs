//! Produces as fast as it goes: the same frame on several connections, several of them on their way on each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::load::Load;
use crate::walk::Walk;
use crate::wire::{Connection, set_correlation_id};

/// The last version that names topics.
pub(crate) const VERSION: i16 = 12;

pub(crate) fn run(load: &Load) -> Result<()> {
    let (batch, records) = load.batch();
    let partitions = load.target.partitions;
    let frame = load.target.request(&batch, 0..partitions)?;
    let step = batch.len() as u64 * partitions as u64;
    let left = AtomicU64::new(load.bytes / step);
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(load.seconds);
    let requests = thread::scope(|scope| {
        let drive = || drive(load, frame.clone(), &left, until);
        let threads: Vec<_> = (0..load.connections).map(|_| scope.spawn(drive)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a connection's thread panicked"))
            .sum::<Result<u64>>()
    })?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "bytes={} records={} seconds={seconds:.4}",
        requests * step,
        requests * records as u64 * partitions as u64
    );
    Ok(())
}

/// One connection until time or bytes are up and everything is answered. How many requests it sent.
fn drive(load: &Load, mut frame: Vec<u8>, left: &AtomicU64, until: Instant) -> Result<u64> {
    let mut connection = Connection::open(load.target.port)?;
    let (mut sent, mut answered) = (0, 0);
    loop {
        while sent - answered < load.in_flight as u64
            && Instant::now() < until
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
        {
            set_correlation_id(&mut frame, sent as i32);
            connection.send(&frame)?;
            sent += 1;
        }
        if sent == answered {
            return Ok(sent);
        }
        let response = connection.receive()?;
        let id = i32::from_be_bytes(*response.first_chunk().context("a response without a header")?);
        if id != answered as i32 {
            bail!("answer {id} instead of {answered}");
        }
        if let Some(error) = check(response)? {
            bail!("Produce: error {error}");
        }
        answered += 1;
    }
}

/// The first error of a Produce response.
pub(crate) fn check(response: &[u8]) -> Result<Option<i16>> {
    let mut walk = Walk(response);
    walk.i32()?;
    walk.tags()?;
    let mut found = None;
    for _ in 0..walk.compact_count()? {
        walk.compact_bytes()?;
        for _ in 0..walk.compact_count()? {
            walk.i32()?;
            let error = walk.i16()?;
            found = found.or((error != 0).then_some(error));
            walk.take(3 * 8)?; // base offset, append time, log start
            for _ in 0..walk.compact_count()? {
                walk.i32()?;
                walk.compact_bytes()?;
                walk.tags()?;
            }
            walk.compact_bytes()?;
            walk.tags()?;
        }
        walk.tags()?;
    }
    Ok(found)
}
