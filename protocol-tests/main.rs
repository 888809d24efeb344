//! Tests of the real binary: what a user and a client see of it.
//!
//! Foreign clients, tools and brokers are driven by `protocol-tests/run`; what needs only the binary itself, or raw frames,
//! is here and runs with `cargo test` too.

mod command_line;
mod life;
mod node;
