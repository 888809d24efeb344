//! Writes `src/protocol/generated` out of Kafka's message specifications. A tool for developers, run by hand when the
//! protocol moves to a newer Kafka; what it writes is checked in.
//!
//! The specifications are JSON files inside Kafka's jars. With those of `kafka-clients`, `kafka-metadata` and
//! `kafka-group-coordinator` in `jars`:
//!
//! ```text
//! for jar in jars/*.jar; do unzip -qqo "$jar" '*.json' -d specs; done
//! cargo run -p generator -- specs src/protocol/generated          # write
//! cargo run -p generator -- --check specs src/protocol/generated  # is it up to date?
//! ```
//!
//! Only names, types, versions, nullability, tags and defaults are taken; none of the documentation.
//!
//! * `spec`: the specifications as they stand in the files.
//! * `naming`: Kafka's names as Rust's.
//! * `tables`: the schema tables and the list of APIs.
//! * `structs`: the structs that kafka-protocol lacks, and those of the internal records.
//! * `output`: which file holds what.

mod naming;
mod output;
mod spec;
mod structs;
mod tables;

pub use output::{Output, generate};
pub use spec::Specs;
