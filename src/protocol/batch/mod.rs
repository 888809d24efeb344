//! Record batches, version 2: the unit in which records travel, are replicated and lie on disk.
//!
//! Bytes in are bytes on disk are bytes out: a batch is never taken apart and encoded again on the hot path. So this
//! module is views over bytes: [`BatchHeader`] reads the header, [`batches`] walks a run of batches, the setters change
//! in place the few fields that a broker owns, and [`Batch::records`] looks inside where somebody must. Only
//! [`BatchBuilder`] makes batches, for what Ottla itself writes.
//!
//! ```text
//!  at  bytes  field                                        under the CRC
//!   0      8  base offset
//!   8      4  length: bytes of all that follows
//!  12      4  partition leader epoch
//!  16      1  magic: 2
//!  17      4  CRC-32C of everything behind it
//!  21      2  attributes: bits 0-2 codec, 3 log append time,      x
//!             4 transactional, 5 control, 6 delete horizon
//!  23      4  last offset delta                                   x
//!  27      8  base timestamp                                      x
//!  35      8  max timestamp                                       x
//!  43      8  producer id                                         x
//!  51      2  producer epoch                                      x
//!  53      4  base sequence                                       x
//!  57      4  record count                                        x
//!  61         records, one after the other; compressed as one     x
//!
//!  record: size varint, attributes i8, timestamp delta varlong, offset delta varint, key, value, header count varint,
//!          headers; key, value and a header's value: size varint, bytes (below 0: null); a header's key: never null
//! ```
//!
//! Invariants: no input makes anything here panic, or allocate more than the cap it was given; the header, the CRC and
//! the walk over records that are not compressed allocate nothing.
//!
//! Kafka: `DefaultRecordBatch`, `DefaultRecord`, `ByteBufferLogInputStream`, `MemoryRecordsBuilder`; KIP-98, KIP-82, KIP-110.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod attributes;
mod builder;
mod codec;
mod cursor;
mod error;
mod header;
mod iterate;
mod records;
mod setters;
mod snappy;
mod verify;

pub use attributes::{Attributes, TimestampType};
pub use builder::BatchBuilder;
pub use codec::{Codec, compress, decompress};
pub use error::{BatchError, CodecError, RecordFault};
pub use header::{BatchHeader, HEADER_BYTES};
pub use iterate::{Batch, Batches, batches};
pub use records::{Headers, Record, RecordIter, Records};
pub use setters::{set_base_offset, set_leader_epoch, set_log_append_time};
