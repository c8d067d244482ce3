//! Positions in the log, and where they lie in segments.

use std::fmt;

/// The log writes whole blocks of this size. A segment's header has a block for itself.
pub const BLOCK_BYTES: usize = dyno_io::ALIGNMENT_BYTES;

/// A position in the log: bytes since its beginning, including headers and padding. Positions only
/// grow, even when files are recycled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}", self.0)
    }
}

/// How positions map to segments: segment n holds the positions from n times its length on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub segment_bytes: u64,
}

impl Layout {
    pub fn index(self, at: Lsn) -> u64 {
        at.0 / self.segment_bytes
    }

    pub fn offset(self, at: Lsn) -> u64 {
        at.0 % self.segment_bytes
    }

    pub fn start(self, index: u64) -> Lsn {
        Lsn(index.saturating_mul(self.segment_bytes))
    }

    /// Where the first group of a segment begins.
    pub fn first_group(self, index: u64) -> Lsn {
        Lsn(self.start(index).0.saturating_add(BLOCK_BYTES as u64))
    }

    /// The same position, or the first group of the segment that it begins.
    pub fn past_header(self, at: Lsn) -> Lsn {
        at.max(self.first_group(self.index(at)))
    }
}

/// Seeds a checksum with where its bytes belong, so that the same bytes at another position, or of
/// another epoch or log, do not pass.
pub(crate) fn crc_seed(place: u64, epoch: u64, identity: u64) -> u32 {
    // The rotations keep small numbers in different bits, so that a higher epoch at a lower
    // position does not give the same seed.
    let mut mixed = place ^ epoch.rotate_left(40) ^ identity.rotate_left(21);
    mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

/// Reads a little-endian number. Returns 0 if it would end after `bytes`; callers check the length
/// of a header or frame before they read its fields.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    u32::from_le_bytes(found.unwrap_or_default())
}

/// The same as [`u32_at`] for eight bytes.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    u64::from_le_bytes(found.unwrap_or_default())
}
