//! What a node takes of the memory that it may have, for what it could also do with less of: read and receive ahead.
//!
//! On a machine of its own these are constants. In a container they follow its limit, for the kernel ends a process that
//! goes over it.

use model::Limits;
use transport::TcpConfig;

/// Of a limit, the cache of the logs' tails takes an eighth, receive buffers another, and large frames a quarter.
const TAIL_SHARE: usize = 8;
const BUFFERS_SHARE: usize = 8;
const LARGE_FRAMES_SHARE: usize = 4;

/// The memory that a node may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    limit: Option<usize>,
}

impl Memory {
    /// What the kernel lets this process have.
    pub(crate) fn of_this_process() -> Self {
        Self { limit: host::memory_limit().and_then(|bytes| usize::try_from(bytes).ok()) }
    }

    /// In bytes; `None` where nobody said one.
    pub(crate) fn limit(self) -> Option<usize> {
        self.limit
    }

    /// For the ends of all logs, which consumers read.
    pub(crate) fn tail_bytes(self) -> usize {
        self.share(TAIL_SHARE).min(Limits::TAIL_CACHE_BYTES)
    }

    /// For requests that come in.
    pub(crate) fn tcp(self) -> TcpConfig {
        let most = TcpConfig::default();
        TcpConfig {
            buffers_at_once: most
                .buffers_at_once
                .min(self.share(BUFFERS_SHARE) / Limits::RECEIVE_BUFFER_BYTES),
            large_frame_bytes_at_once: most.large_frame_bytes_at_once.min(self.share(LARGE_FRAMES_SHARE)),
        }
    }

    fn share(self, of: usize) -> usize {
        self.limit.unwrap_or(usize::MAX) / of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn without_a_limit_a_node_takes_what_is_good_for_it() {
        let (memory, most) = (Memory::default(), TcpConfig::default());
        assert_eq!(memory.tail_bytes(), Limits::TAIL_CACHE_BYTES);
        assert_eq!(memory.tcp().buffers_at_once, most.buffers_at_once);
        assert_eq!(memory.tcp().large_frame_bytes_at_once, most.large_frame_bytes_at_once);
    }

    #[test]
    fn in_a_small_container_it_takes_a_half_at_most() {
        let memory = Memory { limit: Some(64 * MIB) };
        let tcp = memory.tcp();
        assert_eq!(memory.tail_bytes(), 8 * MIB);
        assert_eq!(tcp.buffers_at_once * Limits::RECEIVE_BUFFER_BYTES, 8 * MIB);
        assert_eq!(tcp.large_frame_bytes_at_once, 16 * MIB);
    }
}
