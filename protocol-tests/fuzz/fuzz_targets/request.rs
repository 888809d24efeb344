//! Fuzzes request frames.
#![no_main]
#[allow(dead_code, reason = "the other targets have their own programs")]
#[path = "../../../src/protocol/tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::request(bytes));
