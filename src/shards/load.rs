//! Reading a machine out of its log.
//!
//! Records of a transaction count when its marker says so, and those of kinds of groups that are not served here are
//! left alone. Anything else that is not understood ends the load: a coordinator that has forgotten something would lie.
//!
//! Kafka: `CoordinatorLoaderImpl`.

use std::collections::BTreeMap;

use coordinator::{Config, CoordinatorRecord, Groups};
use model::{ErrorCode, Limits, Offset, ProducerId};
use protocol::batch::{Batch, BatchError, Record, batches};
use protocol::records::{ControlRecord, RecordError};
use thiserror::Error;
use tracing::debug;

use crate::log::ShardLog;

/// The machine could not be read.
#[derive(Debug, Error)]
pub(crate) enum LoadError {
    #[error("the log cannot be read: {0:?}")]
    Log(ErrorCode),
    #[error("a batch at or after offset {offset} is malformed: {error}")]
    Batch { offset: Offset, error: BatchError },
    #[error("the record at offset {offset} is malformed: {error}")]
    Record { offset: Offset, error: RecordError },
    #[error("the log ends at offset {offset}, before its end at {end}")]
    Short { offset: Offset, end: Offset },
}

/// The machine that all records of the log make.
pub(crate) async fn load(log: &dyn ShardLog, config: Config) -> Result<(Groups, Offset), LoadError> {
    let (start, end) = log.range().map_err(LoadError::Log)?;
    let mut loader = Loader { groups: Groups::new(config), open: BTreeMap::new(), next: start };
    while loader.next < end {
        let bytes = log.read(loader.next).await.map_err(LoadError::Log)?;
        let before = loader.next;
        loader.take(&bytes)?;
        if loader.next == before {
            return Err(LoadError::Short { offset: before, end });
        }
    }
    Ok((loader.groups, loader.next))
}

struct Loader {
    groups: Groups,
    /// Records of transactions that have not ended yet.
    open: BTreeMap<ProducerId, Vec<CoordinatorRecord>>,
    next: Offset,
}

impl Loader {
    fn take(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        for batch in batches(bytes) {
            match batch {
                Ok(batch) => self.take_batch(&batch)?,
                // The read stopped here; the next one begins here.
                Err(BatchError::Incomplete { .. }) => return Ok(()),
                Err(error) => return Err(LoadError::Batch { offset: self.next, error }),
            }
        }
        Ok(())
    }

    fn take_batch(&mut self, batch: &Batch<'_>) -> Result<(), LoadError> {
        let malformed = |error| LoadError::Batch { offset: batch.header.base_offset, error };
        batch.verify_crc().map_err(malformed)?;
        let records = batch.records(Limits::DECOMPRESSED_BYTES_MAX).map_err(malformed)?;
        for record in &records {
            let record = record.map_err(malformed)?;
            // A batch may begin before the offset that was asked for.
            if record.offset >= self.next {
                self.take_record(batch, &record)
                    .map_err(|error| LoadError::Record { offset: record.offset, error })?;
            }
        }
        self.next = batch.header.next_offset();
        Ok(())
    }

    fn take_record(&mut self, batch: &Batch<'_>, record: &Record<'_>) -> Result<(), RecordError> {
        let key = record.key.unwrap_or_default();
        if batch.header.is_control() {
            return self.take_marker(batch.header.producer_id, key, record.value);
        }
        let record = match CoordinatorRecord::decode(key, record.value) {
            Err(RecordError::UnknownType(record_type)) => {
                debug!(record_type, "a record of another kind of group was left alone");
                return Ok(());
            }
            decoded => decoded?,
        };
        if batch.header.is_transactional() {
            self.open.entry(batch.header.producer_id).or_default().push(record);
        } else {
            self.groups.replay(record);
        }
        Ok(())
    }

    fn take_marker(
        &mut self,
        producer: ProducerId,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), RecordError> {
        let records = self.open.remove(&producer).unwrap_or_default();
        if matches!(ControlRecord::decode(key, value.unwrap_or_default())?, ControlRecord::Commit(_)) {
            for record in records {
                self.groups.replay(record);
            }
        }
        Ok(())
    }
}
