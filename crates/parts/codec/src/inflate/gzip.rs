//! Gzip members, one behind the other (RFC 1952).

use std::io::Read;

use super::{DeflateStream, Engine, InflateError, InflateErrorKind};

const FLAG_HEADER_CRC: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const FLAGS_RESERVED: u8 = 0xe0;

/// Bytes behind the last member that are not a member. gzip ignores them; here they are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailingGarbage {
    /// Offset of the first of these bytes.
    pub offset: u64,
    /// How many bytes there are, up to the end of the reader.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    FirstHeader,
    Member,
    End,
}

/// The checksum of a member's header while it is read (RFC 1952, section 2.3.1: FHCRC).
struct Header {
    crc: crc32fast::Hasher,
}

impl Default for Header {
    fn default() -> Self {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&[0x1f, 0x8b]);
        Header { crc }
    }
}

impl Header {
    /// Adds a byte to the checksum and returns it.
    fn with(&mut self, byte: u8) -> u8 {
        self.crc.update(&[byte]);
        byte
    }

    /// The lower half of the CRC-32 of all bytes so far, the magic included.
    fn crc16(&self) -> u16 {
        self.crc.clone().finalize() as u16
    }
}

/// A gzip file of any number of members, each compared with its checksums.
pub struct GzipStream<R> {
    stream: DeflateStream<R>,
    within: Within,
    crc: crc32fast::Hasher,
    length: u32,
    members: u64,
    garbage: Option<TrailingGarbage>,
}

impl<R: Read> GzipStream<R> {
    /// A stream of the bytes that `reader` returns.
    pub fn new(reader: R, engine: Engine) -> Self {
        GzipStream {
            stream: DeflateStream::new(reader, engine),
            within: Within::FirstHeader,
            crc: crc32fast::Hasher::new(),
            length: 0,
            members: 0,
            garbage: None,
        }
    }

    /// Inflates to `out[at..]` and returns the new write position, under the same conditions as
    /// [`DeflateStream::inflate_into`]. Members follow each other without a gap.
    ///
    /// # Errors
    /// [`InflateError`]: truncated, corrupt or not gzip, with the compressed offset.
    pub fn inflate_into(&mut self, out: &mut [u8], mut at: usize) -> Result<usize, InflateError> {
        if self.within == Within::FirstHeader {
            let first = self.header_byte()?;
            let second = self.header_byte()?;
            if (first, second) != (0x1f, 0x8b) {
                return Err(self.error(InflateErrorKind::NotGzip(first, second)));
            }
            self.header_behind_magic()?;
        }
        while self.within == Within::Member {
            let now = self.stream.inflate_into(out, at)?;
            self.crc.update(&out[at..now]);
            self.length = self.length.wrapping_add((now - at) as u32);
            at = now;
            if !self.stream.finished() {
                break;
            }
            self.trailer()?;
            self.next_member()?;
        }
        Ok(at)
    }

    /// Whether all members were written.
    pub fn finished(&self) -> bool {
        self.within == Within::End
    }

    /// How many members were begun so far.
    pub fn members(&self) -> u64 {
        self.members
    }

    /// The bytes behind the last member, known once [`Self::finished`].
    pub fn garbage(&self) -> Option<TrailingGarbage> {
        self.garbage
    }

    /// Offset of the next compressed byte in the input.
    pub fn offset(&self) -> u64 {
        self.stream.offset()
    }

    fn error(&self, kind: InflateErrorKind) -> InflateError {
        InflateError {
            offset: self.stream.offset(),
            kind,
        }
    }

    fn header_byte(&mut self) -> Result<u8, InflateError> {
        self.stream.byte_behind("the gzip header")
    }

    fn header_behind_magic(&mut self) -> Result<(), InflateError> {
        let mut header = Header::default();
        let mut fixed = [0u8; 8];
        for byte in &mut fixed {
            *byte = header.with(self.header_byte()?);
        }
        let [method, flags, ..] = fixed;
        if method != 8 {
            return Err(self.error(InflateErrorKind::Header(
                "its compression method is not deflate",
            )));
        }
        if flags & FLAGS_RESERVED != 0 {
            return Err(self.error(InflateErrorKind::Header("it sets reserved flags")));
        }
        if flags & FLAG_EXTRA != 0 {
            let low = header.with(self.header_byte()?);
            let high = header.with(self.header_byte()?);
            for _ in 0..u16::from_le_bytes([low, high]) {
                header.with(self.header_byte()?);
            }
        }
        // Name and comment have no length, so they are skipped byte by byte and never kept: a
        // header without an end costs time and no memory.
        for flag in [FLAG_NAME, FLAG_COMMENT] {
            while flags & flag != 0 && header.with(self.header_byte()?) != 0 {}
        }
        if flags & FLAG_HEADER_CRC != 0 {
            let computed = header.crc16();
            let stored = u16::from_le_bytes([self.header_byte()?, self.header_byte()?]);
            if computed != stored {
                return Err(self.error(InflateErrorKind::HeaderChecksum { computed, stored }));
            }
        }
        self.stream.restart();
        self.crc = crc32fast::Hasher::new();
        self.length = 0;
        self.members += 1;
        self.within = Within::Member;
        Ok(())
    }

    fn trailer(&mut self) -> Result<(), InflateError> {
        let mut words = [0u32; 2];
        for word in &mut words {
            let mut bytes = [0u8; 4];
            for byte in &mut bytes {
                *byte = self.stream.byte_behind("the gzip trailer")?;
            }
            *word = u32::from_le_bytes(bytes);
        }
        let computed = self.crc.clone().finalize();
        if computed != words[0] {
            return Err(self.error(InflateErrorKind::Checksum {
                computed,
                stored: words[0],
            }));
        }
        if self.length != words[1] {
            let kind = InflateErrorKind::Length {
                computed: self.length,
                stored: words[1],
            };
            return Err(self.error(kind));
        }
        Ok(())
    }

    /// Continues with the next member, or ends at the end of the file or at garbage.
    fn next_member(&mut self) -> Result<(), InflateError> {
        let offset = self.stream.offset();
        if self.stream.at_end()? {
            self.within = Within::End;
            return Ok(());
        }
        let first = self.header_byte()?;
        let mut seen = 1;
        if first == 0x1f && !self.stream.at_end()? {
            let second = self.header_byte()?;
            if second == 0x8b {
                return self.header_behind_magic();
            }
            seen = 2;
        }
        self.within = Within::End;
        while !self.stream.at_end()? {
            self.stream.byte_behind("garbage")?;
            seen += 1 + self.stream.discard_unless_bits()?;
        }
        self.garbage = Some(TrailingGarbage {
            offset,
            bytes: seen,
        });
        Ok(())
    }
}
