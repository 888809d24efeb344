//! The bounds of everything that a peer, a client or a file could make grow.

/// Limits that are not Kafka's configuration. Sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits;

impl Limits {
    /// Requests of one connection that were appended and wait for their answer (design: ordered point).
    pub const REQUESTS_LATER_MAX: usize = 16;
    /// Answer bytes queued for one connection before it is no longer read from.
    pub const CONNECTION_QUEUE_BYTES: usize = 16 << 20;
    /// The receive buffer of an active connection.
    pub const RECEIVE_BUFFER_BYTES: usize = 256 << 10;
    /// Tail cache of all partitions together.
    pub const TAIL_CACHE_BYTES: usize = 16 << 20;
    /// Strings, structures and tagged fields that one message may hold: several times what Kafka's largest clusters put in
    /// one. In memory each costs up to some hundred bytes, however few it takes on the wire.
    pub const MESSAGE_ELEMENTS_MAX: usize = 1 << 20;
    /// Records of a refused batch whose causes are told one by one; a batch may hold millions.
    pub const REJECTED_RECORDS_NAMED: usize = 1000;
    /// What all fetch sessions together remember; who finds no room is served without one.
    pub const FETCH_SESSIONS_BYTES: usize = 32 << 20;
    /// What a record batch may decompress to, whatever its header says.
    pub const DECOMPRESSED_BYTES_MAX: usize = 128 << 20;
    /// A file read back whole: checkpoints, properties.
    pub const SMALL_FILE_BYTES_MAX: usize = 64 << 20;
    /// An answer of one frame; records are read from files and do not count. Clients take 100 MiB unless told otherwise.
    pub const ANSWER_BYTES_MAX: usize = 256 << 20;
    /// Records of the metadata log, or a piece of a snapshot of it, in one answer; a larger batch is sent alone.
    pub const METADATA_FETCH_BYTES: usize = 1 << 20;
    /// Requests for the controller of another node that wait for its answer; a larger one is passed on alone.
    pub const FORWARDED_BYTES: usize = 32 << 20;
    /// A snapshot of the metadata, which only this cluster's own records make large.
    pub const SNAPSHOT_BYTES_MAX: usize = 1 << 30;
    /// Appended bytes after which checkpoints are written before their time, at most: what a start after a kill reads again.
    pub const RECOVERY_BYTES_MAX: u64 = 256 << 20;
    /// So many of them at least.
    pub const RECOVERY_BYTES_MIN: u64 = 64 << 20;
    /// So many more for each partition that was appended to.
    pub const RECOVERY_BYTES_PER_PARTITION: u64 = 256 << 10;
    /// Files flushed at once in one log folder.
    pub const FLUSHES_AT_ONCE: usize = 8;
    /// Bytes of a file that are kept free in a log folder so that deletes, commits and metadata go on when it is full.
    pub const DISK_RESERVE_BYTES: u64 = 8 << 20;
    /// Log files of closed segments open at once in a log folder, if the process may open so many; the others are opened when
    /// read.
    pub const OPEN_FILES_MAX: usize = 8_000;
    /// Bytes of a group's id: its records have two bytes for their number.
    pub const GROUP_ID_BYTES_MAX: usize = i16::MAX as usize;
    /// Memory that the protocols and the metadata of a group's member may take (Kafka has only the frame's limit).
    pub const GROUP_METADATA_BYTES_MAX: usize = 1 << 20;
    /// Memory that the protocols of all members of a group may take: many times what its record may hold, so that no group
    /// that can become stable is refused.
    pub const GROUP_BYTES_MAX: usize = 16 << 20;
    /// Bytes of all assignments together that a group's leader may send.
    pub const GROUP_ASSIGNMENT_BYTES_MAX: usize = 16 << 20;
    /// Members of one group that were told their id and have not come back with it.
    pub const GROUP_PENDING_MEMBERS_MAX: usize = 10_000;
}
