//! `Env` for real, but for sockets, which are `transport`'s: the system's clocks, a tokio runtime, files by rustix,
//! the kernel's randomness.
//!
//! Invariants: a write returns when all of it is in the page cache, a sync when all of it is on the device; nothing
//! that can wait for the device runs on an async worker but `File::write_at`, which is meant to (a hop to another thread
//! costs several times what the write does).

mod clock;
mod disk;
mod exec;
mod limit;
mod memory;
mod pages;
mod rng;

pub use clock::HostClock;
pub use disk::HostDisk;
pub use exec::HostExec;
pub use limit::raise_open_files;
pub use memory::memory_limit;
pub use pages::allow_huge_pages;
pub use rng::HostRng;
