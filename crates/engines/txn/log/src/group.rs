//! The bytes of a group, which is what one write carries: a header and records.
//! docs/formats/txn-log.md has the table of fields.

use dyno_io::AlignedBuffer;

use crate::position::{BLOCK_BYTES, Lsn, crc_seed, u32_at, u64_at};

const MAGIC: u32 = u32::from_le_bytes(*b"DyGr");
pub(crate) const HEADER_BYTES: usize = 64;
/// Checksum and length of a record.
pub(crate) const FRAME_BYTES: usize = 8;

/// The log that a group belongs to, and the opening in which it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub identity: u64,
    pub epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Records,
    /// The rest of the segment is unused, and the log continues in the next one.
    Skip,
}

/// The header of a group, which has a checksum of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub at: Lsn,
    pub epoch: u64,
    /// What was durable when the group was written. A reader that finds less than this before the
    /// group has found damage, because durable bytes are never written again.
    pub durable: Lsn,
    pub identity: u64,
    pub body_bytes: u32,
    pub records: u32,
    pub kind: Kind,
}

impl Header {
    pub fn write(&self, into: &mut [u8]) {
        into[..HEADER_BYTES].fill(0);
        into[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        into[8..16].copy_from_slice(&self.at.0.to_le_bytes());
        into[16..24].copy_from_slice(&self.epoch.to_le_bytes());
        into[24..32].copy_from_slice(&self.durable.0.to_le_bytes());
        into[32..40].copy_from_slice(&self.identity.to_le_bytes());
        into[40..44].copy_from_slice(&self.body_bytes.to_le_bytes());
        into[44..48].copy_from_slice(&self.records.to_le_bytes());
        into[48] = match self.kind {
            Kind::Records => 1,
            Kind::Skip => 2,
        };
        let crc = dyno_checksum::crc32c(&into[8..HEADER_BYTES]);
        into[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the header at the front of `bytes`, if there is a whole one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        if u32_at(bytes, 0) != MAGIC || u32_at(bytes, 4) != dyno_checksum::crc32c(&bytes[8..]) {
            return None;
        }
        let kind = match bytes[48] {
            1 => Kind::Records,
            2 => Kind::Skip,
            _ => return None,
        };
        Some(Self {
            at: Lsn(u64_at(bytes, 8)),
            epoch: u64_at(bytes, 16),
            durable: Lsn(u64_at(bytes, 24)),
            identity: u64_at(bytes, 32),
            body_bytes: u32_at(bytes, 40),
            records: u32_at(bytes, 44),
            kind,
        })
    }

    /// The length of the group with its padding: where the next group begins after this one.
    pub fn span(&self) -> usize {
        (HEADER_BYTES + self.body_bytes as usize).next_multiple_of(BLOCK_BYTES)
    }
}

/// What is wrong in a group, and the offset of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub offset: usize,
    pub what: &'static str,
}

/// Checks the records and the padding of a group whose header is `header`; `bytes` is its span.
pub(crate) fn check_body(header: &Header, bytes: &[u8]) -> Result<(), Flaw> {
    let end = HEADER_BYTES + header.body_bytes as usize;
    let mut at = HEADER_BYTES;
    // The count is not trusted: each round consumes a frame, so a wrong count ends at `end`.
    for _ in 0..header.records {
        let flaw = |what| Err(Flaw { offset: at, what });
        let Some(record) = frame(bytes, at, end) else {
            return flaw("a record is longer than its group");
        };
        let place = header.at.0 + at as u64;
        let seed = crc_seed(place, header.epoch, header.identity);
        let crc = dyno_checksum::append(seed, &bytes[at + 4..record.1]);
        if crc != u32_at(bytes, at) {
            return flaw("a record's checksum is wrong");
        }
        at = record.1;
    }
    if at != end {
        let what = "a group has other records than its header says";
        return Err(Flaw { offset: at, what });
    }
    // No checksum covers the padding, and every flipped bit must be found.
    match bytes[end..].iter().position(|&byte| byte != 0) {
        Some(past) => Err(Flaw {
            offset: end + past,
            what: "the padding of a group is not empty",
        }),
        None => Ok(()),
    }
}

/// First byte and end of the payload of the record at `at`, unless it goes beyond `end`.
pub(crate) fn frame(bytes: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
    let first = at + FRAME_BYTES;
    if first > end {
        return None;
    }
    let past = first.checked_add(u32_at(bytes, at + 4) as usize)?;
    (past <= end).then_some((first, past))
}

/// A group that records are appended to, in the buffer that will be written.
#[derive(Debug)]
pub(crate) struct Open {
    pub buffer: AlignedBuffer,
    pub at: Lsn,
    life: Life,
    filled: usize,
    /// The most bytes that the group may have, header included.
    room: usize,
    records: u32,
}

impl Open {
    pub fn new(buffer: AlignedBuffer, at: Lsn, life: Life, room: u64) -> Self {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Self {
            room: room.min(buffer.len()),
            buffer,
            at,
            life,
            filled: HEADER_BYTES,
            records: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Whether it has the bytes of a whole block.
    pub fn fills_block(&self) -> bool {
        self.filled >= BLOCK_BYTES
    }

    pub fn fits(&self, record: &[u8]) -> bool {
        self.filled + FRAME_BYTES + record.len() <= self.room
    }

    /// Appends a record for which [`Open::fits`] returned true. Returns its end.
    pub fn push(&mut self, record: &[u8]) -> Lsn {
        let (at, first) = (self.filled, self.filled + FRAME_BYTES);
        let end = first + record.len();
        self.buffer[at + 4..first].copy_from_slice(&(record.len() as u32).to_le_bytes());
        self.buffer[first..end].copy_from_slice(record);
        let place = self.at.0 + at as u64;
        let seed = crc_seed(place, self.life.epoch, self.life.identity);
        let crc = dyno_checksum::append(seed, &self.buffer[at + 4..end]);
        self.buffer[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        self.filled = end;
        self.records += 1;
        self.end()
    }

    /// The end of the last record, or the beginning of the group while it is empty.
    pub fn end(&self) -> Lsn {
        match self.records {
            0 => self.at,
            _ => Lsn(self.at.0 + self.filled as u64),
        }
    }

    /// Writes the header and the padding into the buffer. Returns how many bytes to write.
    pub fn seal(&mut self, durable: Lsn) -> usize {
        let header = Header {
            at: self.at,
            epoch: self.life.epoch,
            durable,
            identity: self.life.identity,
            body_bytes: (self.filled - HEADER_BYTES) as u32,
            records: self.records,
            kind: Kind::Records,
        };
        header.write(&mut self.buffer);
        // The buffer is used again, so bytes of an earlier group may be behind the last record.
        self.buffer[self.filled..header.span()].fill(0);
        header.span()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Life = Life {
        identity: 7,
        epoch: 3,
    };

    fn sealed(records: &[&[u8]]) -> (Header, Vec<u8>) {
        let buffer = AlignedBuffer::zeroed(2 * BLOCK_BYTES);
        let mut group = Open::new(buffer, Lsn(8192), LIFE, 1 << 20);
        for record in records {
            assert!(group.fits(record));
            group.push(record);
        }
        let span = group.seal(Lsn(4096));
        let bytes = group.buffer[..span].to_vec();
        (Header::read(&bytes).expect("a header"), bytes)
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let (header, bytes) = sealed(&[b"one", b"", b"three"]);
        assert_eq!(check_body(&header, &bytes), Ok(()));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let found = Header::read(&bad).is_none_or(|h| check_body(&h, &bad).is_err());
                assert!(found, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn a_record_of_another_place_or_life_does_not_pass() {
        let (header, bytes) = sealed(&[b"one"]);
        let elsewhere = Header {
            at: Lsn(12288),
            ..header
        };
        assert!(check_body(&elsewhere, &bytes).is_err());
        let later = Header { epoch: 4, ..header };
        assert!(check_body(&later, &bytes).is_err());
    }
}
