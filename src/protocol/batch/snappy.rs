//! Snappy as Kafka's clients write it: blocks in xerial's framing, or one raw block (older librdkafka, Sarama).
//!
//! ```text
//! 8 bytes magic, version i32, oldest version that can read it i32, then blocks: size i32, raw snappy
//! ```

use std::io;

use super::{Codec, CodecError, cursor::Cursor};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
/// What a block holds: snappy-java's default.
const BLOCK_BYTES: usize = 32 << 10;
/// No element of a snappy block makes more of its bytes than a copy: 64 out of 3.
const GROWTH_MAX: usize = 22;

const CORRUPT: CodecError = CodecError::Corrupt { codec: Codec::Snappy };

pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = [MAGIC, VERSIONS].concat();
    let mut encoder = snap::raw::Encoder::new();
    for block in bytes.chunks(BLOCK_BYTES) {
        let block = encoder.compress_vec(block)?;
        out.extend_from_slice(&(block.len() as u32).to_be_bytes());
        out.extend_from_slice(&block);
    }
    Ok(out)
}

pub(super) fn decompress(bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, CodecError> {
    let mut out = Vec::new();
    let Some(blocks) = bytes.strip_prefix(&MAGIC) else {
        append_block(&mut out, bytes, bytes_max)?;
        return Ok(out);
    };
    let mut cursor = Cursor::new(blocks);
    let _versions: [u8; 8] = cursor.array().ok_or(CORRUPT)?;
    while cursor.left() > 0 {
        let size = u32::from_be_bytes(cursor.array().ok_or(CORRUPT)?);
        let block = cursor.take(size as usize).ok_or(CORRUPT)?;
        append_block(&mut out, block, bytes_max)?;
    }
    Ok(out)
}

// A raw block says how long it becomes; that is believed only as far as its bytes can make it true.
fn append_block(out: &mut Vec<u8>, block: &[u8], bytes_max: usize) -> Result<(), CodecError> {
    let size = snap::raw::decompress_len(block).map_err(|_| CORRUPT)?;
    if size > block.len().saturating_mul(GROWTH_MAX) {
        return Err(CORRUPT);
    }
    let start = out.len();
    if size > bytes_max - start {
        return Err(CodecError::TooLarge { bytes_max });
    }
    out.resize(start + size, 0);
    let space = out.get_mut(start..).unwrap_or_default();
    snap::raw::Decoder::new().decompress(block, space).map_err(|_| CORRUPT)?;
    Ok(())
}
