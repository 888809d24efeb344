#![doc = include_str!("README.md")]

pub mod assemble;
pub mod config;
pub mod health;
pub mod serve;

mod announce;
mod logging;
