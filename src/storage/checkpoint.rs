//! Text files that hold a small table: `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`,
//! `replication-offset-checkpoint` (high watermarks) and, of one partition, `leader-epoch-checkpoint`.
//!
//! ```text
//! 0                 version
//! 2                 lines that follow
//! topic 0 1234      topic, partition, offset; of epochs: epoch, start offset
//! topic 1 99
//! ```
//!
//! Kafka: `CheckpointFile`, `OffsetCheckpointFile`, `LeaderEpochCheckpointFile`.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use model::{Offset, TopicPartition};

/// Offsets by partition.
pub(crate) type Offsets = BTreeMap<TopicPartition, Offset>;

pub(crate) const RECOVERY_POINT: &str = "recovery-point-offset-checkpoint";
pub(crate) const LOG_START: &str = "log-start-offset-checkpoint";
pub(crate) const HIGH_WATERMARK: &str = "replication-offset-checkpoint";

const VERSION: &str = "0";

/// The text of a table.
pub(crate) fn encode<T: Display>(lines: impl ExactSizeIterator<Item = T>) -> String {
    let mut text = format!("{VERSION}\n{}\n", lines.len());
    for line in lines {
        writeln!(text, "{line}").expect("a string takes all that is written to it");
    }
    text
}

/// The lines of a table, each understood by `parse_line`.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn parse<T>(bytes: &[u8], parse_line: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not text".to_owned())?;
    let mut lines = text.lines();
    match lines.next() {
        Some(VERSION) => {}
        Some(version) => return Err(format!("has the unknown version {version:?}")),
        None => return Err("is empty".to_owned()),
    }
    let count: usize =
        lines.next().and_then(|line| line.parse().ok()).ok_or("does not say how many lines it has")?;
    let rows = lines
        .map(|line| parse_line(line).ok_or_else(|| format!("has the malformed line {line:?}")))
        .collect::<Result<Vec<T>, String>>()?;
    if rows.len() != count {
        return Err(format!("says it has {count} lines, but has {}", rows.len()));
    }
    Ok(rows)
}

/// The text of a checkpoint of offsets.
pub(crate) fn encode_offsets(offsets: &[(&TopicPartition, Offset)]) -> String {
    encode(offsets.iter().map(|(partition, offset)| {
        format!("{} {} {offset}", partition.topic.as_str(), partition.partition, offset = offset.0)
    }))
}

/// Reads a checkpoint of offsets.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn parse_offsets(bytes: &[u8]) -> Result<Offsets, String> {
    Ok(parse(bytes, offset_line)?.into_iter().collect())
}

fn offset_line(line: &str) -> Option<(TopicPartition, Offset)> {
    let mut words = line.split_ascii_whitespace();
    let partition = TopicPartition::new(words.next()?, words.next()?.parse().ok()?);
    let offset: i64 = words.next()?.parse().ok()?;
    (words.next().is_none() && offset >= 0).then_some((partition, Offset(offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_go_both_ways_in_kafkas_text() {
        let (a, b) = (TopicPartition::new("a", 0), TopicPartition::new("b.c", 12));
        let text = encode_offsets(&[(&a, Offset(5)), (&b, Offset(i64::MAX))]);
        assert_eq!(text, "0\n2\na 0 5\nb.c 12 9223372036854775807\n");
        let offsets = parse_offsets(text.as_bytes()).unwrap();
        assert_eq!((offsets.len(), offsets[&a], offsets[&b]), (2, Offset(5), Offset(i64::MAX)));
    }

    #[test]
    fn a_cut_or_damaged_checkpoint_is_an_error() {
        let text = b"0\n2\na 0 5\nb 1 7\n";
        // The last newline may be missing, and the last digit cannot be missed.
        for end in 0..text.len() - 2 {
            assert!(parse_offsets(&text[..end]).is_err(), "cut at {end}");
        }
        for damaged in
            ["1\n0\n", "0\n1\na 0\n", "0\n1\na 0 -5\n", "0\n1\na 0 5 6\n", "0\n1\n\0\0\0\n", "0\n9\n"]
        {
            assert!(parse_offsets(damaged.as_bytes()).is_err(), "{damaged:?}");
        }
        assert!(parse_offsets(&[0xff; 64]).is_err());
    }
}
