//! The world as a node sees it: time, tasks, sockets, files and chance, each behind a trait.
//!
//! Every async room is given an [`Env`] and reaches the outside only through it. `host` and `transport` are the real
//! world; `sim` is one in memory, where a seed decides everything. So the same node that runs in production runs on a
//! paused clock, loses power and sees its disk fail.
//!
//! Invariants: an `Env` belongs to one node; nothing in it reaches another node's clock, tasks or files.

mod clock;
mod disk;
mod exec;
mod net;
mod rng;

use std::pin::Pin;
use std::sync::Arc;

pub use clock::{Clock, timeout};
pub use disk::{Disk, Entry, File, FileRange, Open, is_disk_full, is_too_many_files, write_atomic};
pub use exec::{Exec, blocking, try_blocking};
pub use net::{Chunk, FrameReader, FrameWriter, Link, Listener, Net, RecvError};
pub use rng::Rng;

/// A boxed future that may move between workers.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One node's world. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Tasks, blocking work and flushes.
    pub exec: Arc<dyn Exec>,
    /// Listeners and connections.
    pub net: Arc<dyn Net>,
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Chance.
    pub rng: Arc<dyn Rng>,
}
