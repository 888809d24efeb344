//! A node for tests: the real binary as a process, on a port and in a folder of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// What a node says when clients can connect.
const READY: &str = "Kafka Server started";

/// A running node. Dropped, it is killed and its folder is removed.
pub(crate) struct Node {
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// What it said until it was ready.
    pub(crate) start: Vec<String>,
    folder: TempDir,
    process: Child,
}

impl Node {
    /// Starts a node in an empty folder.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let (process, start) = launch(&folder, &address);
        Self { address, start, folder, process }
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("a process");
        self.process.wait().expect("an end");
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.process.wait().expect("an end")
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("a process");
    }

    /// Starts it again, on the same port and folder.
    pub(crate) fn restart(&mut self) {
        (self.process, self.start) = launch(&self.folder, &self.address);
    }

    /// Its log folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs another command of the binary with this node's configuration.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = ottla(name);
        command.args(settings(&self.folder, &self.address));
        command
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `ottla NAME` with an empty environment.
pub(crate) fn ottla(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
    command.arg(name).env_clear();
    command
}

fn settings(folder: &TempDir, address: &str) -> Vec<String> {
    let data = folder.path().join("data");
    let pairs = [format!("listeners=PLAINTEXT://{address}"), format!("log.dirs={}", data.display())];
    pairs.into_iter().flat_map(|pair| ["--set".to_owned(), pair]).collect()
}

fn launch(folder: &TempDir, address: &str) -> (Child, Vec<String>) {
    let mut command = ottla("serve");
    command.args(settings(folder, address)).stdout(Stdio::piped());
    let mut process = command.spawn().expect("the binary runs");
    let mut output = BufReader::new(process.stdout.take().expect("its output"));
    let start = lines_until_ready(&mut output);
    // From here on nobody reads; a full pipe would stop the node.
    let drain = move || std::io::copy(&mut output, &mut std::io::sink());
    std::thread::Builder::new().spawn(drain).expect("a thread");
    (process, start)
}

fn lines_until_ready(output: &mut BufReader<ChildStdout>) -> Vec<String> {
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains(READY)) {
        let mut line = String::new();
        let length = output.read_line(&mut line).expect("text");
        assert!(length > 0, "the node ended before it was ready; it said {lines:#?}");
        lines.push(line.trim_end().to_owned());
    }
    lines
}
