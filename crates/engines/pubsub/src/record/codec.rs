//! Compression of a whole body. A compressed body is the length before compression, big-endian, and
//! then one LZ4 block (LZ4 block format description) or one zstd frame (RFC 8878).

use bytes::Bytes;

use super::RAW_BODY_BYTES_MAX;
use crate::error::{Code, Error, Result};

/// How a body is compressed; the number is in bits 0 and 1 of a row's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Codec {
    /// Not compressed. SQL functions read only such rows.
    #[default]
    None,
    /// One LZ4 block.
    Lz4,
    /// One zstd frame, of level 1.
    Zstd,
}

impl Codec {
    /// The number in a row's flags.
    pub fn flags(self) -> i16 {
        match self {
            Codec::None => 0,
            Codec::Lz4 => 1,
            Codec::Zstd => 2,
        }
    }

    /// Reads the number in a row's flags.
    ///
    /// # Errors
    /// `damaged` for flags that no version wrote.
    pub fn from_flags(flags: i16) -> Result<Codec> {
        match flags {
            0 => Ok(Codec::None),
            1 => Ok(Codec::Lz4),
            2 => Ok(Codec::Zstd),
            _ => Err(Error::new(
                Code::Damaged,
                format_args!("flags {flags} of a row are unknown"),
            )),
        }
    }

    /// The name in a topic's settings.
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }

    /// The codec of a name.
    ///
    /// # Errors
    /// `bad-argument` for any other than `none`, `lz4` and `zstd`.
    pub fn named(name: &str) -> Result<Codec> {
        [Codec::None, Codec::Lz4, Codec::Zstd]
            .into_iter()
            .find(|codec| codec.name() == name)
            .ok_or_else(|| {
                Error::bad_argument(format_args!(
                    "compression {name:?} is not one of none, lz4, zstd"
                ))
            })
    }
}

/// Compresses a body.
///
/// # Errors
/// `bad-argument` for more than [`RAW_BODY_BYTES_MAX`] bytes.
pub fn compress(codec: Codec, raw: &[u8]) -> Result<Vec<u8>> {
    if raw.len() > RAW_BODY_BYTES_MAX {
        let bytes = raw.len();
        return Err(Error::bad_argument(format_args!(
            "a body of {bytes} bytes is too long to compress"
        )));
    }
    let length = u32::try_from(raw.len()).unwrap_or(u32::MAX).to_be_bytes();
    let packed = match codec {
        Codec::None => return Ok(raw.to_vec()),
        Codec::Lz4 => lz4_flex::block::compress(raw),
        Codec::Zstd => zstd::bulk::compress(raw, 1).map_err(|e| {
            Error::bad_argument(format_args!("zstd refused {} bytes: {e}", raw.len()))
        })?,
    };
    Ok([&length[..], &packed].concat())
}

/// Undoes [`compress`]. It allocates no more than [`RAW_BODY_BYTES_MAX`], whatever length the bytes
/// claim.
///
/// # Errors
/// `damaged` when the bytes are not what `compress` makes.
pub fn decompress(codec: Codec, body: Bytes) -> Result<Bytes> {
    if codec == Codec::None {
        return Ok(body);
    }
    let damaged = |reason: &dyn std::fmt::Display| {
        let (bytes, name) = (body.len(), codec.name());
        Error::new(
            Code::Damaged,
            format_args!("{bytes} bytes are not a body of {name}: {reason}"),
        )
    };
    let length = body
        .first_chunk::<4>()
        .and_then(|length| usize::try_from(u32::from_be_bytes(*length)).ok())
        .ok_or_else(|| damaged(&"no length in front"))?;
    if length > RAW_BODY_BYTES_MAX {
        return Err(damaged(&format_args!("it claims to become {length} bytes")));
    }
    // The claimed length is bounded by now, so both libraries may be given it as the size of the
    // buffer that they fill.
    let packed = &body[4..];
    let raw = match codec {
        Codec::Zstd => zstd::bulk::decompress(packed, length).map_err(|e| damaged(&e))?,
        _ => lz4_flex::block::decompress(packed, length).map_err(|e| damaged(&e))?,
    };
    if raw.len() != length {
        return Err(damaged(&format_args!(
            "it became {} bytes, not {length}",
            raw.len()
        )));
    }
    Ok(raw.into())
}
