//! Bytes that no client sends. The broker may close the connection or answer; it lives on, its memory stays bounded, and
//! the next good client is served.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use protocol::tables::APIS;

use crate::peer::{Outcome, Peer, connect, frame};
use crate::value::{Value, encode};

/// What the broker's resident memory may grow by, at any time.
const GROWTH_BYTES_MAX: u64 = 96 << 20;
const RANDOM_FRAMES: u64 = 3000;
const HALF_OPEN: usize = 300;
const REACTION_WITHIN: Duration = Duration::from_secs(5);
/// No answer within this time is as good as a close: the frame was not complete.
const PATIENCE: Duration = Duration::from_millis(300);

type Attack = fn(SocketAddr) -> io::Result<()>;

const ATTACKS: &[(&str, Attack)] = &[
    ("http_is_closed", http_is_closed),
    ("tls_is_closed", tls_is_closed),
    ("impossible_lengths_are_closed", impossible_lengths_are_closed),
    ("unknown_apis_are_closed", unknown_apis_are_closed),
    ("every_cut_of_a_frame", every_cut_of_a_frame),
    ("random_bytes", random_bytes),
    ("random_bodies", random_bodies),
    ("flipped_bits", flipped_bits),
    ("huge_counts", huge_counts),
    ("half_open_connections", half_open_connections),
    ("large_frames_that_never_come", large_frames_that_never_come),
    ("a_reader_that_never_reads", a_reader_that_never_reads),
];

/// Runs every attack against the broker with that process id; returns how many it did not bear.
pub(crate) fn run(address: SocketAddr, pid: u32) -> u32 {
    let before = begin_peak(pid).unwrap_or(0);
    let mut failures = 0;
    for (name, attack) in ATTACKS {
        let outcome = attack(address).map_err(|error| error.to_string());
        let outcome = outcome.and_then(|()| serves(address)).and_then(|()| is_bounded(pid, before));
        match outcome {
            Ok(()) => println!("ok hostile/{name}"),
            Err(why) => {
                failures += 1;
                println!("FAIL hostile/{name} {why}");
            }
        }
    }
    failures
}

/// A good client gets its answer.
fn serves(address: SocketAddr) -> Result<(), String> {
    let mut peer = Peer::new("ottla", address);
    let everything = Value::Struct(vec![("Topics", Value::Null)]);
    match peer.ask(3, 12, &everything, 0) {
        Ok(Outcome::Answer(_)) => Ok(()),
        other => Err(format!("a good client after it: {other:?}")),
    }
}

fn is_bounded(pid: u32, before: u64) -> Result<(), String> {
    let peak = peak_bytes(pid).map_err(|error| error.to_string())?;
    let growth = peak.saturating_sub(before);
    if growth <= GROWTH_BYTES_MAX { Ok(()) } else { Err(format!("memory grew by {} MiB", growth >> 20)) }
}

/// The resident memory now, from which on the kernel counts its peak: what an attack held is gone when it has ended.
fn begin_peak(pid: u32) -> io::Result<u64> {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?;
    peak_bytes(pid)
}

fn peak_bytes(pid: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other("no VmHWM"))
}

/// Sends bytes; an error if the broker neither closes nor answers in time.
fn is_answered_or_closed(address: SocketAddr, bytes: &[u8]) -> io::Result<bool> {
    let mut connection = connect(address)?;
    connection.set_read_timeout(Some(REACTION_WITHIN))?;
    // The broker may close before all is written.
    let _ = connection.write_all(bytes);
    reaction(&mut connection)
}

/// Whether something came, or (`false`) the end.
fn reaction(connection: &mut TcpStream) -> io::Result<bool> {
    match connection.read(&mut [0; 512]) {
        Ok(0) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_closed(address: SocketAddr, bytes: &[u8], what: &str) -> io::Result<()> {
    match is_answered_or_closed(address, bytes) {
        Ok(false) => Ok(()),
        Ok(true) => Err(io::Error::other(format!("{what} was answered"))),
        Err(error) => Err(io::Error::other(format!("{what}: {error}"))),
    }
}

fn http_is_closed(address: SocketAddr) -> io::Result<()> {
    is_closed(address, b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET")?;
    is_closed(address, b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "POST")
}

fn tls_is_closed(address: SocketAddr) -> io::Result<()> {
    // Handshake record of TLS 1.0 to 1.3, 512 bytes long, with a ClientHello of 508 bytes.
    let mut hello = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    hello.resize(517, 0x5a);
    is_closed(address, &hello, "a TLS hello")
}

fn impossible_lengths_are_closed(address: SocketAddr) -> io::Result<()> {
    for length in [-1, i32::MIN, i32::MAX, 1 << 30] {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend([0; 64]);
        is_closed(address, &bytes, &format!("length {length}"))?;
    }
    Ok(())
}

fn unknown_apis_are_closed(address: SocketAddr) -> io::Result<()> {
    for (key, version) in
        [(-1, 0), (4, 0), (95, 0), (9999, 0), (i16::MAX, 0), (3, 99), (3, -1), (0, 2), (58, 0)]
    {
        is_closed(address, &frame(key, version, 1, 1, &[0; 8]), &format!("key {key} version {version}"))?;
    }
    Ok(())
}

fn every_cut_of_a_frame(address: SocketAddr) -> io::Result<()> {
    let whole = metadata_frame();
    for end in 0..whole.len() {
        let mut connection = connect(address)?;
        connection.write_all(&whole[..end])?;
    }
    // The same cuts, with a length that says that this was all.
    for end in 4..whole.len() {
        let mut bytes = whole[..end].to_vec();
        bytes[..4].copy_from_slice(&(end as i32 - 4).to_be_bytes());
        is_closed(address, &bytes, &format!("a frame of {} bytes", end - 4))?;
    }
    Ok(())
}

fn random_bytes(address: SocketAddr) -> io::Result<()> {
    for seed in 0..RANDOM_FRAMES / 10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let body: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
        let mut bytes = (body.len() as i32).to_be_bytes().to_vec();
        bytes.extend(body);
        is_closed(address, &bytes, &format!("random bytes of seed {seed}"))?;
    }
    Ok(())
}

fn random_bodies(address: SocketAddr) -> io::Result<()> {
    for seed in 0..RANDOM_FRAMES {
        let mut random = fastrand::Rng::with_seed(seed);
        let api = &APIS[random.usize(..APIS.len())];
        let version = random.i16(api.versions.min..=api.versions.max);
        let body: Vec<u8> = (0..random.usize(..120)).map(|_| random.u8(..)).collect();
        let bytes = frame(api.key, version, 1, api.request_header_version(version), &body);
        reacts(address, &bytes, api.name, seed)?;
    }
    Ok(())
}

fn flipped_bits(address: SocketAddr) -> io::Result<()> {
    let good: Vec<_> = crate::corpus::corpus().into_iter().map(|good| (good.key, good.request)).collect();
    for seed in 0..RANDOM_FRAMES {
        let mut random = fastrand::Rng::with_seed(seed);
        let (key, json) = &good[random.usize(..good.len())];
        let api = protocol::tables::api(*key).ok_or_else(|| io::Error::other("no such API"))?;
        let version = random.i16(api.versions.min..=api.stable_versions().max);
        let mut body = encode(api.request, version, &crate::request::request(api.request, json));
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..body.len().max(1));
            if let Some(byte) = body.get_mut(at) {
                *byte ^= 1 << random.u8(..8);
            }
        }
        let bytes = frame(*key, version, 1, api.request_header_version(version), &body);
        reacts(address, &bytes, api.name, seed)?;
    }
    Ok(())
}

/// Anything but silence is right; silence too, where the broker may be waiting for others (JoinGroup, Fetch, acks=0).
fn reacts(address: SocketAddr, bytes: &[u8], api: &str, seed: u64) -> io::Result<()> {
    let mut connection = connect(address)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let _ = connection.write_all(bytes);
    match reaction(&mut connection) {
        Err(error) if !matches!(api, "JoinGroup" | "SyncGroup" | "Fetch" | "Produce") => {
            Err(io::Error::other(format!("{api} of seed {seed}: {error}")))
        }
        _ => Ok(()),
    }
}

/// Counts that the frame has no room for, where each API has its first array.
fn huge_counts(address: SocketAddr) -> io::Result<()> {
    for count in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0x7f, 0xff, 0xff, 0xff], &[0, 0xff, 0xff, 0xff]] {
        for api in APIS.iter().filter(|api| api.broker) {
            let version = api.stable_versions().max.max(api.versions.min);
            let mut body = count.to_vec();
            body.resize(40, 0xff);
            reacts(
                address,
                &frame(api.key, version, 1, api.request_header_version(version), &body),
                api.name,
                0,
            )?;
        }
    }
    Ok(())
}

fn half_open_connections(address: SocketAddr) -> io::Result<()> {
    let whole = metadata_frame();
    let mut open = Vec::new();
    for index in 0..HALF_OPEN {
        let mut connection = connect(address)?;
        connection.write_all(&whole[..index % whole.len()])?;
        open.push(connection);
    }
    serves(address).map_err(io::Error::other)
}

fn large_frames_that_never_come(address: SocketAddr) -> io::Result<()> {
    let mut open = Vec::new();
    for _ in 0..HALF_OPEN {
        let mut connection = connect(address)?;
        connection.write_all(&(90_i32 << 20).to_be_bytes())?;
        connection.write_all(&[0, 0, 0, 9])?;
        open.push(connection);
    }
    serves(address).map_err(io::Error::other)
}

/// Thousands of requests on one connection whose answers nobody takes.
fn a_reader_that_never_reads(address: SocketAddr) -> io::Result<()> {
    let mut connection = connect(address)?;
    connection.set_write_timeout(Some(Duration::from_secs(2)))?;
    let whole = frame(18, 0, 1, 1, &[]);
    let many = whole.repeat(1000);
    for _ in 0..500 {
        match connection.write_all(&many) {
            Ok(()) => {}
            // The broker takes no more, or has had enough: both bound its memory.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(_) => break,
        }
    }
    serves(address).map_err(io::Error::other)
}

fn metadata_frame() -> Vec<u8> {
    let api = protocol::tables::api(3).expect("Metadata");
    frame(3, 12, 1, 2, &encode(api.request, 12, &Value::Struct(vec![("Topics", Value::Null)])))
}
