//! The programs that `run` measures with: a load generator of raw frames, and the floor.
//!
//! The generator makes its batches once and sends them over and over, several requests at a time on each connection, so
//! that little of the machine's time is its own. It prints one line of `name=value` pairs.

mod consume;
mod floor;
mod latency;
mod load;
mod produce;
mod walk;
mod wire;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Load on one broker, measured from outside.
#[derive(Parser)]
enum Command {
    /// Makes a topic, and waits until every partition can be written to.
    Create(load::Target),
    /// Waits until every partition of a topic can be written to.
    Wait(load::Target),
    /// Deletes a topic.
    Delete(load::Target),
    /// Produces with acks=all as fast as it goes.
    Produce(load::Load),
    /// Reads a topic from its start.
    Consume(load::Load),
    /// Produces at a fixed rate and measures each answer from the moment when its request was due.
    Latency(latency::Rate),
    #[command(flatten)]
    Alone(Alone),
}

/// What needs no broker.
#[derive(Subcommand)]
enum Alone {
    /// Appends to a file and syncs it, at the rate of `latency`.
    Fdatasync(latency::Sync),
    /// Appends as many bytes to a file as it is told, and prints the CPU time of that.
    Append(floor::Append),
    /// Serves Produce requests and nothing else.
    Floor(floor::Floor),
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Create(target) => target.create(),
        Command::Wait(target) => target.wait(),
        Command::Delete(target) => target.delete(),
        Command::Produce(load) => produce::run(&load),
        Command::Consume(load) => consume::run(&load),
        Command::Latency(rate) => latency::run(&rate),
        Command::Alone(Alone::Fdatasync(sync)) => latency::fdatasync(&sync),
        Command::Alone(Alone::Append(append)) => floor::append(&append),
        Command::Alone(Alone::Floor(floor)) => floor.serve(),
    }
}
