//! Which partition of `__consumer_offsets` has a group (Kafka: `GroupCoordinatorService.partitionFor`).

use model::{GroupId, PartitionIndex};

/// The partition that coordinates `group_id` where the topic has `partitions`: Java's `String.hashCode`, its sign bit
/// cleared, modulo their number.
pub fn partition_for(group_id: &GroupId, partitions: i32) -> PartitionIndex {
    let hash = group_id
        .as_str()
        .encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_javas() {
        assert_eq!(partition_for(&"".into(), 50), 0);
        assert_eq!(partition_for(&"hello".into(), i32::MAX), 99_162_322);
        // "polygenelubricants".hashCode() is Integer.MIN_VALUE.
        assert_eq!(partition_for(&"polygenelubricants".into(), 50), 0);
        assert_eq!(partition_for(&"é😀".into(), i32::MAX), 233 * 961 + 0xd83d * 31 + 0xde00);
    }
}
