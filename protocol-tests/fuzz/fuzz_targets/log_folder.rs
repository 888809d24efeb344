//! Fuzzes the files of a log folder.
#![no_main]
#[allow(dead_code, reason = "the other targets have their own programs")]
#[path = "../../../src/storage/tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::log_folder(bytes));
