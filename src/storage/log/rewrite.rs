//! What a process that died may have left in memory alone is written again.
//!
//! After a failed flush the operating system calls the pages clean that it could not write: they can still be read, and the
//! next flush succeeds without them. A process that starts before the machine does cannot tell. So after an unclean stop
//! everything behind the recovery point is written once more, where it lies, and the flush that is to prove it writes it.
//!
//! Always, and not only where a mark says that a flush failed: a mark would have to be written to the disk that fails, and
//! nobody writes it where the process is killed while the flush does. The recovery point is on disk before it is needed.
//! The cost is one more write of what was appended since the last checkpoint, which recovery reads anyway. Bytes replace
//! themselves, so that a power cut meanwhile takes nothing away.
//!
//! Kafka: has no such step; KAFKA-19571 is of its kind.

use model::Offset;

use super::Log;
use crate::StorageError;

impl Log {
    /// Writes the `index`th segment again from the recovery point on; with its indexes, where it is not the active one.
    pub(super) fn rewrite(&mut self, index: usize, recovery_point: Offset) -> Result<(), StorageError> {
        let is_active = index + 1 == self.segments.len();
        let interval_bytes = self.config.index_interval_bytes;
        let Some(segment) = self.segments.get_mut(index) else { return Ok(()) };
        if recovery_point < self.log_end {
            segment.rewrite(&self.place, recovery_point, interval_bytes)?;
        }
        if !is_active {
            self.unsynced.extend(segment.complete_indexes(&self.place)?);
        }
        Ok(())
    }
}
