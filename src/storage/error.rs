//! What can go wrong, one enum an operation, and Kafka's code for each.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use model::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use protocol::batch::{BatchError, CodecError};

use crate::RejectedRecords;

/// Why a log or its folder cannot do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// The folder failed once and is not used any more.
    #[error(
        "log folder {folder} is offline: {path}: {cause}; check the disk and its mount, then restart the broker"
    )]
    Offline {
        /// The log folder.
        folder: PathBuf,
        /// The file that failed.
        path: PathBuf,
        /// What the operating system said.
        cause: String,
    },
    /// No space is left; it heals by itself.
    #[error("the disk of log folder {folder} is full; free space, and writing goes on by itself")]
    DiskFull {
        /// The log folder.
        folder: PathBuf,
    },
    /// The operation failed, and may succeed later: too many open files, for example.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: Arc<io::Error>,
    },
    /// A file says something that cannot be, and nothing can repair it.
    #[error("{path}: {what}; move the partition's folder away, so that it is replicated again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An offset that the log does not have.
    #[error("offset {offset} is not between the log start {log_start} and the log end {log_end}")]
    OutOfRange {
        /// What was asked for.
        offset: Offset,
        /// The first offset, inclusive.
        log_start: Offset,
        /// The last offset, exclusive.
        log_end: Offset,
    },
    /// The folder belongs to another topic of the same name.
    #[error("{path} belongs to the topic with id {found}, not {expected}")]
    InconsistentTopicId {
        /// The partition's folder.
        path: PathBuf,
        /// What its `partition.metadata` says.
        found: model::TopicId,
        /// What was asked for.
        expected: model::TopicId,
    },
}

impl StorageError {
    /// Whether it passes by itself, so that the same may be tried again: no space, no memory, too many open files.
    pub fn passes(&self) -> bool {
        match self {
            Self::DiskFull { .. } => true,
            Self::Io { cause, .. } => {
                env::is_too_many_files(cause) || cause.kind() == io::ErrorKind::OutOfMemory
            }
            Self::Offline { .. }
            | Self::Damaged { .. }
            | Self::OutOfRange { .. }
            | Self::InconsistentTopicId { .. } => false,
        }
    }
}

/// Goes on without what there was no space for.
pub(crate) fn unless_full<T: Default>(result: Result<T, StorageError>) -> Result<T, StorageError> {
    match result {
        Err(StorageError::DiskFull { .. }) => Ok(T::default()),
        result => result,
    }
}

impl From<&StorageError> for ErrorCode {
    fn from(error: &StorageError) -> Self {
        match error {
            StorageError::Offline { .. }
            | StorageError::DiskFull { .. }
            | StorageError::Io { .. }
            | StorageError::Damaged { .. } => Self::KafkaStorageError,
            StorageError::OutOfRange { .. } => Self::OffsetOutOfRange,
            StorageError::InconsistentTopicId { .. } => Self::InconsistentTopicId,
        }
    }
}

/// Why nothing was appended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppendError {
    /// The bytes are not whole record batches.
    #[error("the record batch is corrupt: {0}")]
    Corrupt(BatchError),
    /// A batch that no broker may accept from this origin.
    #[error("{0}")]
    InvalidRecord(String),
    /// Records that the topic does not take.
    #[error("{} records of the batch are not such as the topic takes", .0.count)]
    RejectedRecords(RejectedRecords),
    /// A batch is larger than `max.message.bytes`.
    #[error("a record batch of {size} bytes is larger than max.message.bytes = {size_max}")]
    TooLarge {
        /// Bytes of the batch.
        size: usize,
        /// The limit.
        size_max: usize,
    },
    /// All batches together are larger than a segment.
    #[error("{size} bytes of record batches are more than segment.bytes = {size_max}")]
    LargerThanSegment {
        /// Bytes of all batches.
        size: usize,
        /// The limit.
        size_max: u64,
    },
    /// A timestamp is out of the topic's bounds, or of the wrong type.
    #[error("{0}")]
    InvalidTimestamp(String),
    /// Message format 0 or 1.
    #[error("message format {magic} is no longer supported; use a client of Kafka 0.11 or newer")]
    UnsupportedMagic {
        /// The magic byte.
        magic: i8,
    },
    /// The codec is none of Kafka's, or did not make these records.
    #[error(transparent)]
    Codec(CodecError),
    /// The batch is not the producer's next.
    #[error(
        "producer {producer_id}: sequence {sequence} is out of order at offset {offset}; the last was {last}"
    )]
    OutOfOrderSequence {
        /// Who sent it.
        producer_id: ProducerId,
        /// The batch's first sequence.
        sequence: Sequence,
        /// The last one that was appended; -1 is none in this epoch.
        last: Sequence,
        /// Where the batch would have gone.
        offset: Offset,
    },
    /// The producer was fenced by a newer epoch.
    #[error("producer {producer_id} has epoch {epoch}, but epoch {current} is known")]
    InvalidProducerEpoch {
        /// Who sent it.
        producer_id: ProducerId,
        /// The batch's epoch.
        epoch: ProducerEpoch,
        /// The newest epoch.
        current: ProducerEpoch,
    },
    /// A follower was sent something that does not continue its log.
    #[error("offset {offset} does not continue the log that ends at {log_end}")]
    OffsetsOutOfOrder {
        /// The batch's base offset.
        offset: Offset,
        /// The log end offset.
        log_end: Offset,
    },
    /// The log knows of a newer leader: who appends is not the leader any more.
    #[error("leader epoch {epoch} is older than the log's latest epoch {latest}")]
    FencedLeaderEpoch {
        /// The appender's epoch.
        epoch: LeaderEpoch,
        /// The log's.
        latest: LeaderEpoch,
    },
    /// Offsets are used up.
    #[error("the partition has no offsets left")]
    OffsetsExhausted,
    /// The folder.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<&AppendError> for ErrorCode {
    fn from(error: &AppendError) -> Self {
        match error {
            AppendError::Corrupt(_) => Self::CorruptMessage,
            AppendError::RejectedRecords(records) => records.code(),
            AppendError::InvalidRecord(_) => Self::InvalidRecord,
            AppendError::TooLarge { .. } => Self::MessageTooLarge,
            AppendError::LargerThanSegment { .. } => Self::RecordListTooLarge,
            AppendError::InvalidTimestamp(_) => Self::InvalidTimestamp,
            AppendError::UnsupportedMagic { .. } => Self::UnsupportedForMessageFormat,
            AppendError::Codec(error) => (*error).into(),
            AppendError::OutOfOrderSequence { .. } => Self::OutOfOrderSequenceNumber,
            AppendError::InvalidProducerEpoch { .. } => Self::InvalidProducerEpoch,
            AppendError::FencedLeaderEpoch { .. } => Self::NotLeaderOrFollower,
            AppendError::OffsetsOutOfOrder { .. } | AppendError::OffsetsExhausted => Self::UnknownServerError,
            AppendError::Storage(error) => error.into(),
        }
    }
}

impl From<BatchError> for AppendError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::UnsupportedMagic { magic } => Self::UnsupportedMagic { magic },
            BatchError::Codec(error) => Self::Codec(error),
            BatchError::InvalidRecordCount { .. }
            | BatchError::InvalidRecord { .. }
            | BatchError::LeftOver { .. } => Self::InvalidRecord(error.to_string()),
            error => Self::Corrupt(error),
        }
    }
}

/// Why nothing was read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// The offset is not in the log.
    #[error("offset {offset} is not between the log start {log_start} and the log end {log_end}")]
    OutOfRange {
        /// What was asked for.
        offset: Offset,
        /// The first offset, inclusive.
        log_start: Offset,
        /// The last offset, exclusive.
        log_end: Offset,
    },
    /// The folder.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<&ReadError> for ErrorCode {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::OutOfRange { .. } => Self::OffsetOutOfRange,
            ReadError::Storage(error) => error.into(),
        }
    }
}

/// Why a log folder cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FolderError {
    /// Another process has it.
    #[error("log folder {folder} is used by another process; stop it, or give this broker its own log.dirs")]
    Locked {
        /// The log folder.
        folder: PathBuf,
    },
    /// It is of another cluster.
    #[error(
        "Invalid cluster.id in: {folder}/meta.properties. Expected {expected}, but read {found}: the folder belongs to another \
         cluster. Set CLUSTER_ID={found} or leave CLUSTER_ID out, or use another folder in log.dirs"
    )]
    OtherCluster {
        /// The log folder.
        folder: PathBuf,
        /// What `meta.properties` says.
        found: model::ClusterId,
        /// What the broker is.
        expected: model::ClusterId,
    },
    /// The folders are of two clusters.
    #[error(
        "Invalid cluster.id in: {folder}/meta.properties. Expected {expected} as in {other}, but read {found}: log.dirs has \
         folders of two clusters. Take one of the two out of log.dirs"
    )]
    TwoClusters {
        /// The log folder.
        folder: PathBuf,
        /// What its `meta.properties` says.
        found: model::ClusterId,
        /// A log folder before it.
        other: PathBuf,
        /// What that one's `meta.properties` says.
        expected: model::ClusterId,
    },
    /// Partitions without the metadata that knows them.
    #[error(
        "log folder {folder} has partitions, but {metadata} has no metadata log (__cluster_metadata-0), without which nobody \
         knows what they are. Restore it there, or set metadata.log.dir to the log folder that has it; to begin anew, move \
         the partitions away"
    )]
    NoMetadata {
        /// The log folder with partitions.
        folder: PathBuf,
        /// The log folder where the metadata log should be.
        metadata: PathBuf,
    },
    /// It is of another node.
    #[error(
        "log folder {folder} belongs to node {found}, not {expected}; set node.id={found} or use an empty folder"
    )]
    OtherNode {
        /// The log folder.
        folder: PathBuf,
        /// What `meta.properties` says.
        found: model::NodeId,
        /// What the broker is.
        expected: model::NodeId,
    },
    /// `meta.properties` cannot be understood.
    #[error("{path}: {what}; restore the file, or move the folder away")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The disk failed.
    #[error("log folder {folder}: {path}: {cause}; check the disk, its mount and the permissions")]
    Io {
        /// The log folder.
        folder: PathBuf,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: String,
    },
}

impl From<&FolderError> for ErrorCode {
    fn from(error: &FolderError) -> Self {
        match error {
            FolderError::Locked { .. }
            | FolderError::Damaged { .. }
            | FolderError::NoMetadata { .. }
            | FolderError::Io { .. } => Self::KafkaStorageError,
            FolderError::OtherCluster { .. } | FolderError::TwoClusters { .. } => Self::InconsistentClusterId,
            FolderError::OtherNode { .. } => Self::InvalidRegistration,
        }
    }
}
