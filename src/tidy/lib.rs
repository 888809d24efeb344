//! The rules of the house as tests: `cargo test -p tidy`.
//!
//! Each rule is one file with one function, which reads the [`Repository`] and gives back what breaks it: where, why,
//! and what to do about it. Its tests run it on the house as it stands, and on a small house that breaks it. What a rule
//! allows stands at its top, as data; a change of the house changes that in the same commit.
//!
//! Not here: what clippy says (functions of at most 70 lines, clocks, spawning, unbounded queues: clippy.toml) and what
//! the compiler says (cycles between rooms, missing docs, `unsafe`).
//!
//! After TigerBeetle's `tidy.zig` and rust-analyzer's `tidy.rs`.
#![cfg(test)]

mod dead_names;
mod file_docs;
mod file_size;
mod house;
mod image_context;
mod layers;
mod lints;
mod manifest;
mod map;
mod purity;
mod repository;
mod root_files;
mod versions;
mod wire_types;
mod words;

use repository::{Repository, SourceFile, Violation};
