//! How long acks take at a rate that the broker can hold.
//!
//! Requests are sent when they are due, whether earlier ones are answered or not, and their time counts from then: a broker
//! that stands still for a while is late for all that was due meanwhile.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use protocol::batch::Codec;

use crate::load::{Target, batch};
use crate::produce::check;
use crate::wire::Connection;

/// Records of 1 KiB, one batch each millisecond, to the partitions in turn.
#[derive(Args)]
pub(crate) struct Rate {
    #[command(flatten)]
    target: Target,
    #[arg(long, default_value_t = 20_000)]
    records_per_second: usize,
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// As much to a bare file.
#[derive(Args)]
pub(crate) struct Sync {
    #[arg(long)]
    file: PathBuf,
    #[arg(long, default_value_t = 20_000)]
    records_per_second: usize,
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

const RECORD_BYTES: usize = 1024;
const STEP: Duration = Duration::from_millis(1);

pub(crate) fn run(rate: &Rate) -> Result<()> {
    let batch = batch(rate.records_per_second / 1000, RECORD_BYTES, Codec::None);
    let frames = (0..rate.target.partitions)
        .map(|partition| rate.target.request(&batch, partition..partition + 1))
        .collect::<Result<Vec<_>>>()?;
    let mut sender = Connection::open(rate.target.port)?;
    let receiver = sender.split()?;
    let (sent, due) = channel();
    let receiving = thread::spawn(move || receive(receiver, due));
    send(&mut sender, &frames, rate.seconds, &sent)?;
    drop(sent);
    print(receiving.join().expect("the receiving thread panicked")?);
    Ok(())
}

fn send(connection: &mut Connection, frames: &[Vec<u8>], seconds: u64, sent: &Sender<Instant>) -> Result<()> {
    let start = Instant::now();
    for (step, frame) in (0..seconds * 1000).zip(frames.iter().cycle()) {
        let due = start + STEP * step as u32;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        sent.send(due)?;
        connection.send(frame)?;
    }
    Ok(())
}

fn receive(mut connection: Connection, due: Receiver<Instant>) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for due in due {
        if let Some(error) = check(connection.receive()?)? {
            bail!("Produce: error {error}");
        }
        times.push(due.elapsed());
    }
    Ok(times)
}

pub(crate) fn fdatasync(sync: &Sync) -> Result<()> {
    let batch = batch(sync.records_per_second / 1000, RECORD_BYTES, Codec::None);
    let file = File::create(&sync.file)?;
    let start = Instant::now();
    let mut times = Vec::new();
    for step in 0.. {
        thread::sleep((start + STEP * step).saturating_duration_since(Instant::now()));
        if start.elapsed().as_secs() >= sync.seconds {
            break;
        }
        let begin = Instant::now();
        file.write_all_at(&batch, u64::from(step) * batch.len() as u64)?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    std::fs::remove_file(&sync.file)?;
    print(times);
    Ok(())
}

fn print(mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).map_or(0, Duration::as_micros);
    println!("p50_us={} p99_us={} requests={}", at(0.5), at(0.99), times.len());
}
