//! A node of Ottla, for the binary and for tests that run whole nodes. What it is made of:
//!
#![doc = include_str!("README.md")]

pub mod assemble;
pub mod config;
pub mod health;
pub mod serve;

mod announce;
mod log_folders;
mod logging;
mod memory;
