//! Names of files and folders, as Kafka has them.
//!
//! ```text
//! topic-3/                                  a partition
//! topic-3/00000000000000001234.log          its segment that begins with offset 1234
//! topic-3/00000000000000001234.log.swap     with a suffix: a step of compaction or deletion that was cut off
//! topic-3.6f0c…-delete/                     a partition that is being deleted
//! topic-3.6f0c…-stray/                      one that the cluster does not know any more, left to an operator
//! ```
//!
//! Kafka: `LogFileUtils`, `LocalLog`.

use std::path::{Path, PathBuf};

use model::{Offset, TopicId, TopicPartition};

/// The lock of a log folder.
pub(crate) const LOCK: &str = ".lock";
/// What a file name may have, with all its suffixes.
const NAME_BYTES_MAX: usize = 255;

/// A file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    ProducerSnapshot,
}

/// What a cut-off step left behind a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffix {
    Deleted,
    Cleaned,
    Swap,
    Temporary,
}

/// A name in a partition's folder, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentFile {
    pub(crate) base_offset: Offset,
    pub(crate) kind: FileKind,
    pub(crate) suffix: Option<Suffix>,
}

impl FileKind {
    const ALL: [Self; 5] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TransactionIndex, Self::ProducerSnapshot];

    fn extension(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::ProducerSnapshot => ".snapshot",
        }
    }

    /// Where this file of the segment is.
    pub(crate) fn path(self, folder: &Path, base_offset: Offset) -> PathBuf {
        folder.join(format!("{base_offset:020}{}", self.extension(), base_offset = base_offset.0))
    }
}

impl SegmentFile {
    /// Understands a name; none where it is no segment's file.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (digits, rest) = name.split_at_checked(20)?;
        if !digits.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let base_offset = Offset(digits.parse().ok()?);
        let kind = FileKind::ALL.into_iter().find(|kind| {
            rest.strip_prefix(kind.extension()).is_some_and(|end| end.is_empty() || end.starts_with('.'))
        })?;
        let suffix = match rest.strip_prefix(kind.extension())? {
            "" => None,
            ".deleted" => Some(Suffix::Deleted),
            ".cleaned" => Some(Suffix::Cleaned),
            ".swap" => Some(Suffix::Swap),
            ".tmp" => Some(Suffix::Temporary),
            _ => return None,
        };
        Some(Self { base_offset, kind, suffix })
    }
}

/// What a folder in a log folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartitionFolder {
    Partition(TopicPartition),
    Deleted,
    Stray,
    Future,
}

impl PartitionFolder {
    /// Understands a name; none where it is no partition's folder.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (front, last) = name.rsplit_once('-')?;
        match last {
            "delete" if front.contains('.') => Some(Self::Deleted),
            "stray" if front.contains('.') => Some(Self::Stray),
            "future" if front.contains('.') => Some(Self::Future),
            _ if front.is_empty() || !last.bytes().all(|c| c.is_ascii_digit()) => None,
            _ => Some(Self::Partition(TopicPartition::new(front, last.parse().ok()?))),
        }
    }
}

/// What the folder of a partition is renamed to before it is removed.
pub(crate) fn deleted_name(topic_partition: &TopicPartition, topic_id: TopicId) -> String {
    renamed(topic_partition, topic_id, "delete")
}

/// What the folder of a partition is renamed to that the cluster does not know any more.
pub(crate) fn stray_name(topic_partition: &TopicPartition, topic_id: TopicId) -> String {
    renamed(topic_partition, topic_id, "stray")
}

fn renamed(topic_partition: &TopicPartition, topic_id: TopicId, suffix: &str) -> String {
    let id = format!("{:032x}", u128::from_be_bytes(topic_id.0));
    let end = format!("-{}.{id}-{suffix}", topic_partition.partition);
    let topic = topic_partition.topic.as_str();
    let length = topic.len().min(NAME_BYTES_MAX - end.len());
    format!("{}{end}", topic.get(..length).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_file_is_named_by_its_base_offset() {
        let path = FileKind::TimeIndex.path(Path::new("/d/t-0"), Offset(1234));
        assert_eq!(path, Path::new("/d/t-0/00000000000000001234.timeindex"));
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let expected = SegmentFile { base_offset: Offset(1234), kind: FileKind::TimeIndex, suffix: None };
        assert_eq!(SegmentFile::parse(name), Some(expected));
    }

    #[test]
    fn leftovers_are_told_by_their_suffix() {
        for (end, suffix) in [
            ("log.deleted", Suffix::Deleted),
            ("index.cleaned", Suffix::Cleaned),
            ("log.swap", Suffix::Swap),
            ("snapshot.tmp", Suffix::Temporary),
        ] {
            let file = SegmentFile::parse(&format!("00000000000000000007.{end}")).unwrap();
            assert_eq!((file.base_offset, file.suffix), (Offset(7), Some(suffix)));
        }
    }

    #[test]
    fn other_names_are_no_segment_files() {
        for name in [
            "leader-epoch-checkpoint",
            "partition.metadata",
            "0.log",
            "99999999999999999999.log",
            "00000000000000000000-0000000001.checkpoint",
            "00000000000000000000.logs",
            "0000000000000000000é.log",
            "",
        ] {
            assert_eq!(SegmentFile::parse(name), None, "{name}");
        }
    }

    #[test]
    fn folders_are_partitions_or_on_their_way_out() {
        let parse = PartitionFolder::parse;
        assert_eq!(parse("a-b.c-12"), Some(PartitionFolder::Partition(TopicPartition::new("a-b.c", 12))));
        assert_eq!(parse("a-0.0123-delete"), Some(PartitionFolder::Deleted));
        assert_eq!(parse("a-0.0123-stray"), Some(PartitionFolder::Stray));
        for name in ["a", "-0", "a-", "a-x", "a-99999999999", "lost+found"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn the_longest_topic_can_be_renamed_for_deletion() {
        let topic = TopicPartition::new("t".repeat(249).as_str(), 0);
        let name = deleted_name(&topic, model::Uuid([7; 16]));
        assert_eq!(name.len(), NAME_BYTES_MAX);
        assert_eq!(PartitionFolder::parse(&name), Some(PartitionFolder::Deleted));
    }
}
