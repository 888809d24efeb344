//! The five ways in which the records of a batch are compressed.
//!
//! What comes out is read as a stream and cut off at a cap: nothing is reserved because compressed bytes say that they
//! will grow, apart from a codec's own window of at most 8 MiB (lz4) or what zstd needs to look back.
//!
//! Kafka: `CompressionType`, `GzipCompression`, `SnappyCompression`, `Lz4BlockInputStream`, `ZstdCompression`.

use std::fmt;
use std::io::{self, Read, Write};

use super::{CodecError, snappy};

/// How records are compressed; the numbers are those of the batch's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// gzip members.
    Gzip,
    /// Raw snappy blocks in the framing of xerial's snappy-java.
    Snappy,
    /// An lz4 frame with independent blocks.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

/// The largest window that a zstd frame may ask for, as a power of two: the library's own default, and so Kafka's.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Kafka's default levels.
const ZSTD_LEVEL: i32 = 3;

impl Codec {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec of this number.
    ///
    /// # Errors
    /// [`CodecError::Unknown`] from 5 on.
    pub(crate) fn from_id(id: u8) -> Result<Self, CodecError> {
        Self::ALL.get(usize::from(id)).copied().ok_or(CodecError::Unknown { id })
    }

    /// Its number in a batch's attributes.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The codec of this name, as `compression.type` has it; `none` for records that are not compressed.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// Its name in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Compresses `bytes` as Kafka's Java client does at its default level.
pub fn compress(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let compressed = match codec {
        Codec::None => Ok(bytes.to_vec()),
        Codec::Gzip => gzip(bytes),
        Codec::Snappy => snappy::compress(bytes),
        Codec::Lz4 => lz4(bytes),
        Codec::Zstd => zstd::stream::encode_all(bytes, ZSTD_LEVEL),
    };
    compressed.expect("compressing from memory into memory does not fail")
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

// Kafka reads only independent blocks, and writes those of 64 KiB.
fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let frame = lz4_flex::frame::FrameInfo::new()
        .block_mode(lz4_flex::frame::BlockMode::Independent)
        .block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Decompresses `bytes` into at most `bytes_max` bytes.
///
/// # Errors
/// [`CodecError::TooLarge`] where more would come out, [`CodecError::Corrupt`] where the codec did not make it.
pub fn decompress(codec: Codec, bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, CodecError> {
    match codec {
        Codec::None => read_all(codec, bytes, bytes_max),
        Codec::Gzip => read_all(codec, flate2::read::MultiGzDecoder::new(bytes), bytes_max),
        Codec::Snappy => snappy::decompress(bytes, bytes_max),
        Codec::Lz4 => read_all(codec, lz4_flex::frame::FrameDecoder::new(bytes), bytes_max),
        Codec::Zstd => {
            read_all(codec, zstd_reader(bytes).map_err(|_| CodecError::Corrupt { codec })?, bytes_max)
        }
    }
}

fn zstd_reader(bytes: &[u8]) -> io::Result<impl Read> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(decoder)
}

fn read_all(codec: Codec, reader: impl Read, bytes_max: usize) -> Result<Vec<u8>, CodecError> {
    let mut out = Vec::new();
    let one_too_many = (bytes_max as u64).saturating_add(1);
    let read = reader.take(one_too_many).read_to_end(&mut out).map_err(|_| CodecError::Corrupt { codec })?;
    if read > bytes_max { Err(CodecError::TooLarge { bytes_max }) } else { Ok(out) }
}
