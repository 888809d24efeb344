//! The floor: what any broker has to do for a Produce request with acks=all, and nothing else.
//!
//! It receives the request, checks the CRC of each batch, appends the batch to the file of its partition, flushes (one flush of a
//! file at a time, who comes meanwhile joins the next; eight threads) and answers. It knows no topics, no offsets, no
//! epochs, no producers and no readers, and trusts its client.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Result, ensure};
use bytes::Bytes;
use clap::Args;
use protocol::batch::Codec;
use protocol::encode_response;
use protocol::messages::ProduceResponse;
use protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};

use crate::load::batch;
use crate::walk::Walk;
use crate::wire::Connection;

const FLUSH_THREADS: usize = 8;
const PRODUCE: i16 = 0;
/// Base offset, length, leader epoch, magic, CRC: the CRC is of what follows.
const CRC_AT: usize = 17;
const CRC_END: usize = 21;

#[derive(Args)]
pub(crate) struct Floor {
    #[arg(long)]
    port: u16,
    #[arg(long)]
    folder: PathBuf,
}

/// A bare loop that appends batches: what this machine charges for keeping bytes.
#[derive(Args)]
pub(crate) struct Append {
    #[arg(long)]
    file: PathBuf,
    #[arg(long)]
    bytes: u64,
}

/// One partition.
struct Log {
    file: File,
    state: Mutex<State>,
    flushed: Condvar,
}

#[derive(Default)]
struct State {
    written: u64,
    flushed: u64,
    is_queued: bool,
}

/// All partitions, and those that wait for a flush.
struct Logs {
    folder: PathBuf,
    logs: Mutex<HashMap<i32, Arc<Log>>>,
    dirty: Mutex<VecDeque<Arc<Log>>>,
    more: Condvar,
}

/// A request that is written and not yet flushed.
struct Written {
    response: Bytes,
    ends: Vec<(Arc<Log>, u64)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Floor {
    pub(crate) fn serve(&self) -> Result<()> {
        let logs = Arc::new(Logs {
            folder: self.folder.clone(),
            logs: Mutex::default(),
            dirty: Mutex::default(),
            more: Condvar::new(),
        });
        for _ in 0..FLUSH_THREADS {
            let logs = logs.clone();
            thread::spawn(move || logs.flush_all());
        }
        for stream in TcpListener::bind(("127.0.0.1", self.port))?.incoming() {
            let (stream, logs) = (stream?, logs.clone());
            thread::spawn(move || connection(stream, &logs));
        }
        Ok(())
    }
}

/// Requests are read and written by one thread and answered by another.
fn connection(stream: TcpStream, logs: &Logs) -> Result<()> {
    let mut reading = Connection::over(stream)?;
    let writing = reading.split()?;
    let (written, answers) = channel();
    thread::spawn(move || answer(writing, answers));
    loop {
        written.send(logs.write(reading.receive()?)?)?;
    }
}

fn answer(mut connection: Connection, answers: Receiver<Written>) -> Result<()> {
    for written in answers {
        for (log, end) in written.ends {
            let mut state = lock(&log.state);
            while state.flushed < end {
                state = log.flushed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        connection.send(&written.response)?;
    }
    Ok(())
}

impl Logs {
    /// Appends every batch of a Produce request.
    fn write(&self, request: &[u8]) -> Result<Written> {
        let mut walk = Walk(request);
        let (api_key, version, correlation_id) = (walk.i16()?, walk.i16()?, walk.i32()?);
        ensure!(api_key == PRODUCE, "the floor knows Produce only");
        let client_id_bytes = walk.i16()?;
        walk.take(client_id_bytes as usize)?;
        walk.tags()?;
        walk.compact_bytes()?;
        walk.take(2 + 4)?; // acks, timeout
        let mut response = ProduceResponse::default();
        let mut ends = Vec::new();
        for _ in 0..walk.compact_count()? {
            walk.compact_bytes()?;
            let mut topic = TopicProduceResponse::default();
            for _ in 0..walk.compact_count()? {
                let (index, records) = (walk.i32()?, walk.compact_bytes()?);
                walk.tags()?;
                ends.push(self.append(index, records)?);
                topic.partition_responses.push(PartitionProduceResponse::default().with_index(index));
            }
            walk.tags()?;
            response.responses.push(topic);
        }
        Ok(Written { response: encode_response(correlation_id, api_key, version, &response)?, ends })
    }

    fn append(&self, partition: i32, records: &[u8]) -> Result<(Arc<Log>, u64)> {
        let crc = u32::from_be_bytes(records[CRC_AT..CRC_END].try_into()?);
        ensure!(crc32c::crc32c(&records[CRC_END..]) == crc, "a batch is damaged");
        let log = self.log(partition)?;
        let mut state = lock(&log.state);
        log.file.write_all_at(records, state.written)?;
        state.written += records.len() as u64;
        let end = state.written;
        let was_queued = std::mem::replace(&mut state.is_queued, true);
        drop(state);
        if !was_queued {
            lock(&self.dirty).push_back(log.clone());
            self.more.notify_one();
        }
        Ok((log, end))
    }

    fn log(&self, partition: i32) -> Result<Arc<Log>> {
        let mut logs = lock(&self.logs);
        if let Some(log) = logs.get(&partition) {
            return Ok(log.clone());
        }
        let file = File::create(self.folder.join(format!("{partition}.log")))?;
        let log = Arc::new(Log { file, state: Mutex::default(), flushed: Condvar::new() });
        logs.insert(partition, log.clone());
        Ok(log)
    }

    fn flush_all(&self) -> Result<()> {
        loop {
            let mut dirty = lock(&self.dirty);
            while dirty.is_empty() {
                dirty = self.more.wait(dirty).unwrap_or_else(PoisonError::into_inner);
            }
            let log = dirty.pop_front();
            drop(dirty);
            if let Some(log) = log {
                self.flush(&log)?;
            }
        }
    }

    /// One flush of one file; it goes to the end of the queue if it was written to meanwhile.
    fn flush(&self, log: &Arc<Log>) -> Result<()> {
        let end = lock(&log.state).written;
        log.file.sync_data()?;
        let mut state = lock(&log.state);
        state.flushed = end;
        state.is_queued = state.written > end;
        log.flushed.notify_all();
        if state.is_queued {
            drop(state);
            lock(&self.dirty).push_back(log.clone());
            self.more.notify_one();
        }
        Ok(())
    }
}

/// The CPU time is read from outside.
pub(crate) fn append(append: &Append) -> Result<()> {
    let batch = batch(15, 1024, Codec::None);
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(&append.file)?;
    let mut written = 0;
    while written < append.bytes {
        file.write_all_at(&batch, written)?;
        written += batch.len() as u64;
    }
    std::fs::remove_file(&append.file)?;
    println!("bytes={written}");
    Ok(())
}
