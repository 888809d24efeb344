//! What can go wrong.

use std::path::PathBuf;

use env::{is_disk_full, is_too_many_files};
use model::ErrorCode;
use storage::{AppendError, ReadError};
use thiserror::Error;

/// A decision was not made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClusterError {
    /// This node's controller is not active.
    #[error("this node is not the active controller; ask again")]
    NotController,
    /// The node is ending.
    #[error("this node is shutting down")]
    Closing,
    /// There was no active controller for too long, or it did not answer. It may have done what it was asked for.
    #[error("the active controller did not answer in time; ask again")]
    TimedOut,
    /// The active controller is another version.
    #[error("the active controller does not serve this API at this version")]
    Unsupported,
    /// What would only grow is refused.
    #[error(
        "The disk of a log folder is full, and what is left is kept for deletes, commits and the cluster itself. Delete topics \
         or records, shorten retention or free space otherwise, and ask again."
    )]
    DiskFull,
}

impl From<ClusterError> for ErrorCode {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::NotController | ClusterError::Closing => Self::NotController,
            ClusterError::TimedOut => Self::RequestTimedOut,
            ClusterError::Unsupported => Self::UnsupportedVersion,
            ClusterError::DiskFull => Self::KafkaStorageError,
        }
    }
}

/// The node cannot start.
#[derive(Debug, Error)]
pub enum BootError {
    /// A file of the metadata log's folder cannot be read or written.
    #[error("{path}: {cause}; check the disk, its mount and the permissions")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The log.
    #[error(transparent)]
    Storage(#[from] storage::StorageError),
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] storage::ReadError),
    /// A file says what cannot be.
    #[error("{path}: {what}; restore the metadata log's folder from a backup, or start with an empty one")]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl FatalError {
    /// Whether it passes by itself, so that the same may be tried again: no space, or too many open files.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Storage(error)
            | Self::Append(AppendError::Storage(error))
            | Self::Read(ReadError::Storage(error)) => error.passes(),
            Self::Io { cause, .. } => is_disk_full(cause) || is_too_many_files(cause),
            Self::Append(_) | Self::Read(_) | Self::Apply(_) => false,
        }
    }
}

/// The node cannot go on: what it promised is in doubt. The process ends.
#[derive(Debug, Error)]
pub enum FatalError {
    /// The metadata log's disk failed.
    #[error("the metadata log failed: {0}")]
    Storage(#[from] storage::StorageError),
    /// The metadata log could not be appended to.
    #[error("the metadata log failed: {0}")]
    Append(#[from] storage::AppendError),
    /// The metadata log could not be read.
    #[error("the metadata log failed: {0}")]
    Read(#[from] storage::ReadError),
    /// `quorum-state` or a snapshot could not be written.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The metadata log holds what this version cannot apply.
    #[error("the metadata log holds what cannot be applied: {0}")]
    Apply(String),
}
