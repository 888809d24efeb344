//! What a start asks of the disk for each log.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

mod common;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use common::*;
use env::{Disk, Entry, File, Open};
use model::{BrokerEpoch, Offset};
use sim::SimDisk;
use storage::{LogConfig, LogFolder, TailBudget};

/// A disk that notes what is asked of it.
struct Noting {
    disk: SimDisk,
    asked: Mutex<Vec<String>>,
}

impl Noting {
    fn note(&self, what: &str, path: &Path) {
        let name = path.strip_prefix(FOLDER).unwrap_or(path).display();
        self.asked.lock().unwrap().push(format!("{what} {name}"));
    }
}

impl Disk for Noting {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        self.note("open", path);
        self.disk.open(path, how)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.note("create", path);
        self.disk.create_dir_all(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.note("list", folder);
        self.disk.list(folder)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.note("length", path);
        self.disk.length(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.note("exists", path);
        self.disk.exists(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.note("remove", path);
        self.disk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.note("remove", path);
        self.disk.remove_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("rename", from);
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        self.note("sync", folder);
        self.disk.sync_dir(folder)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.free_bytes(path)
    }

    fn total_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.total_bytes(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.disk.lock(path)
    }
}

/// Lists the folder and opens its log, as a start does. What was asked of the disk for that; where the log ends; whether
/// anything is to be flushed.
fn start(disk: SimDisk) -> (Vec<String>, Offset, bool) {
    let noting = Arc::new(Noting { disk, asked: Mutex::default() });
    let folder = LogFolder::open(noting.clone(), Path::new(FOLDER), &identity(), TailBudget::new(0)).unwrap();
    noting.asked.lock().unwrap().clear();
    folder.partitions().unwrap();
    assert!(folder.has_partition(&topic_partition()));
    let mut log = folder.open_log(&topic_partition(), topic_id(), LogConfig::default(), NOW).unwrap();
    let asked = noting.asked.lock().unwrap().clone();
    (asked, log.log_end(), log.flush_job().is_some())
}

/// A log of `batches`, all on disk.
fn flushed(batches: usize) -> Node {
    let mut node = Node::new(LogConfig::default());
    for _ in 0..batches {
        append(&mut node.log, &records(2));
    }
    flush(&mut node.log);
    node.checkpoint(Offset(batches as i64 * 2));
    node
}

fn closed(mut node: Node) -> SimDisk {
    node.log.close().unwrap();
    let row = node.log.checkpoint(node.log.log_end()).unwrap().run().unwrap();
    node.folder.close(&[row], BrokerEpoch(7)).unwrap();
    node.disk.kill()
}

const EMPTY: [&str; 5] = [
    "list ",
    "open topic-0/partition.metadata",
    "list topic-0",
    "length topic-0/00000000000000000000.log",
    "open topic-0/00000000000000000000.log",
];

#[test]
fn an_empty_log_is_listed_and_opened_however_the_node_ended() {
    for disk in [closed(flushed(0)), flushed(0).disk.kill()] {
        let (asked, end, is_to_be_flushed) = start(disk);
        assert_eq!(asked, EMPTY);
        assert_eq!((end, is_to_be_flushed), (Offset(0), false));
    }
}

#[test]
fn no_batch_and_no_index_is_read_of_a_log_that_was_closed_in_order() {
    let (asked, end, is_to_be_flushed) = start(closed(flushed(100)));
    let small = ["open topic-0/leader-epoch-checkpoint", "open topic-0/00000000000000000200.snapshot"];
    assert_eq!(asked, [&EMPTY[..], &small[..]].concat());
    assert_eq!((end, is_to_be_flushed), (Offset(200), false));
}

#[test]
fn a_killed_log_without_a_tail_is_not_flushed_again() {
    let (asked, end, is_to_be_flushed) = start(flushed(100).disk.kill());
    assert!(!asked.iter().any(|asked| asked.starts_with("sync") || asked.starts_with("rename")), "{asked:?}");
    assert_eq!((end, is_to_be_flushed), (Offset(200), false));
}
