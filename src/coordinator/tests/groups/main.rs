//! The group machine on virtual time: replies and records.

mod harness;
mod join;
mod leave;
mod load;
mod offsets;
mod random;
mod static_members;
mod sync;
