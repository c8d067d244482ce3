//! One frame: 16 bytes of header, little-endian, and a body. Reading or making one needs no I/O.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | magic, 0xD1 |
//! | 1 | version, 1 |
//! | 2 | verb |
//! | 3 | flags |
//! | 4..8 | request id, chosen by the client, repeated in the answer |
//! | 8..12 | length of the body |
//! | 12..16 | CRC32C over bytes 0..12 and the body |

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};

use crate::FrameError;

/// The first byte of every frame.
pub const MAGIC: u8 = 0xD1;
/// The version of the frame that this program speaks.
pub const VERSION: u8 = 1;
/// The length of a header.
pub const HEADER_BYTES: usize = 16;

/// The most room that is offered to one read, so that several small frames come in one call.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// The room at first, and for a peer that sends little: a thousand idle connections hold four
/// megabytes, not 64.
const LEAST_READ_BYTES: usize = 4 << 10;

/// The fields of a header that its users set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What is requested or answered. Its meaning belongs to the user of the crate.
    pub verb: u8,
    /// Flags, whose meaning belongs to the user as well.
    pub flags: u8,
    /// The id that joins an answer to its request.
    pub request: u32,
}

/// A whole frame whose checksum was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The header without length and checksum.
    pub head: Head,
    /// The body, shared with the buffer that it was read into.
    pub body: Bytes,
}

/// The header of a frame whose body is these parts, one after the other. A body of more than 4 GiB
/// is refused.
pub fn header(head: Head, parts: &[&[u8]]) -> Result<[u8; HEADER_BYTES], FrameError> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(bytes).map_err(|_| FrameError::TooLong {
        bytes: bytes as u64,
        most_bytes: u64::from(u32::MAX),
    })?;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&[MAGIC, VERSION, head.verb, head.flags]);
    header[4..8].copy_from_slice(&head.request.to_le_bytes());
    header[8..12].copy_from_slice(&length.to_le_bytes());
    let crc = parts
        .iter()
        .fold(dyno_checksum::crc32c(&header[..12]), |crc, part| {
            dyno_checksum::append(crc, part)
        });
    header[12..].copy_from_slice(&crc.to_le_bytes());
    Ok(header)
}

/// Appends a whole frame to `out`.
pub fn encode(head: Head, body: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    out.extend_from_slice(&header(head, &[body])?);
    out.extend_from_slice(body);
    Ok(())
}

/// Head, length of the body, and checksum; `None` while the header is not whole. What is wrong is
/// reported as soon as its byte is there.
pub(crate) fn parse_header(
    filled: &[u8],
    most_body_bytes: usize,
) -> Result<Option<(Head, usize, u32)>, FrameError> {
    if let Some(&found) = filled.first().filter(|found| **found != MAGIC) {
        return Err(FrameError::Magic { found });
    }
    if let Some(&found) = filled.get(1).filter(|found| **found != VERSION) {
        return Err(FrameError::Version { found });
    }
    let Some(header) = filled.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let body_bytes = word(8) as usize;
    if body_bytes > most_body_bytes {
        return Err(FrameError::TooLong {
            bytes: body_bytes as u64,
            most_bytes: most_body_bytes as u64,
        });
    }
    let head = Head {
        verb: header[2],
        flags: header[3],
        request: word(4),
    };
    Ok(Some((head, body_bytes, word(12))))
}

/// Takes bytes as they come and returns frames. After an error it must not be used again, because
/// it does not know where the next frame begins.
#[derive(Debug)]
pub struct Decoder {
    /// The first `filled` bytes came from the peer. The rest is room that is zeroed once and not
    /// for each read.
    buffer: BytesMut,
    filled: usize,
    /// The room that is offered to a read now. It follows what the peer sends.
    read_bytes: usize,
    most_body_bytes: usize,
}

impl Decoder {
    /// A decoder that refuses bodies of more than `most_body_bytes`.
    pub fn new(most_body_bytes: usize) -> Decoder {
        Decoder {
            buffer: BytesMut::new(),
            filled: 0,
            read_bytes: LEAST_READ_BYTES,
            most_body_bytes,
        }
    }

    /// Refuses bodies of more than `most_body_bytes` from the next frame on.
    pub fn set_most_body_bytes(&mut self, most_body_bytes: usize) {
        self.most_body_bytes = most_body_bytes;
    }

    /// Length of the frame under way, header included; `None` while its header is not whole. What
    /// is wrong with the header is reported by [`Decoder::next_frame`].
    pub fn announced_bytes(&self) -> Option<usize> {
        let (_, body_bytes, _) = self.header().ok().flatten()?;
        Some(HEADER_BYTES + body_bytes)
    }

    /// Reads once from `source`. Returns the number of bytes, 0 at the end of the stream.
    pub fn read_from(&mut self, source: &mut impl Read) -> io::Result<usize> {
        if self.filled == 0 && self.buffer.capacity() > 2 * self.read_bytes {
            // The peer sends less than before, so the large buffer is not kept while we wait for
            // it.
            self.buffer = BytesMut::new();
        }
        let room = self.room();
        if self.buffer.len() < self.filled + room {
            self.buffer.resize(self.filled + room, 0);
        }
        let count = source.read(&mut self.buffer[self.filled..])?;
        self.filled += count;
        if count == room {
            self.read_bytes = (2 * self.read_bytes).min(READ_BYTES);
        } else if count < self.read_bytes / 8 {
            self.read_bytes = (self.read_bytes / 2).max(LEAST_READ_BYTES);
        }
        Ok(count)
    }

    /// Appends bytes that came by another way.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.truncate(self.filled);
        self.buffer.extend_from_slice(bytes);
        self.filled = self.buffer.len();
    }

    /// The next whole frame; `None` if more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((head, body_bytes, expected)) = self.header()? else {
            return Ok(None);
        };
        if self.filled < HEADER_BYTES + body_bytes {
            return Ok(None);
        }
        // The body is not copied: it keeps its part of the buffer alive for as long as the user
        // holds it.
        let header = self.buffer.split_to(HEADER_BYTES);
        let body = self.buffer.split_to(body_bytes).freeze();
        self.filled -= HEADER_BYTES + body_bytes;
        let found = dyno_checksum::append(dyno_checksum::crc32c(&header[..12]), &body);
        if found != expected {
            return Err(FrameError::Checksum {
                request: head.request,
                expected,
                found,
            });
        }
        Ok(Some(Frame { head, body }))
    }

    /// Call this at the end of the stream: it is an error if that came inside a frame.
    pub fn end(&self) -> Result<(), FrameError> {
        match self.filled {
            0 => Ok(()),
            bytes => Err(FrameError::Torn { bytes }),
        }
    }

    fn header(&self) -> Result<Option<(Head, usize, u32)>, FrameError> {
        parse_header(&self.buffer[..self.filled], self.most_body_bytes)
    }

    /// How many bytes to ask for: what the frame lacks, but never more than four times what has
    /// come, or a header that lies would cost its length in memory.
    fn room(&self) -> usize {
        let missing = match self.header() {
            Ok(Some((_, body_bytes, _))) => (HEADER_BYTES + body_bytes).saturating_sub(self.filled),
            _ => 0,
        };
        let spare = self.buffer.capacity() - self.filled;
        if missing <= self.read_bytes {
            // What is left of the allocation is used before another one is made.
            let least = missing.max(HEADER_BYTES).max(self.read_bytes / 16);
            return if spare >= least {
                spare.min(self.read_bytes)
            } else {
                self.read_bytes
            };
        }
        missing.min((3 * self.filled).max(self.read_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        verb: 4,
        flags: 1,
        request: 77,
    };

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(HEAD, body, &mut out).unwrap();
        out
    }

    fn decode(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
        let mut decoder = Decoder::new(1000);
        decoder.push(bytes);
        decoder.next_frame()
    }

    /// Computed by hand from the table in docs/formats/frames.md; the checksum by the definition of
    /// CRC32C, bit by bit.
    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let bytes = frame(b"abc");
        assert_eq!(bytes[..12], [0xD1, 1, 4, 1, 77, 0, 0, 0, 3, 0, 0, 0]);
        let mut crc = !0_u32;
        for byte in bytes[..12].iter().chain(b"abc") {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 {
                    (crc >> 1) ^ 0x82F6_3B78
                } else {
                    crc >> 1
                };
            }
        }
        assert_eq!(bytes[12..16], (!crc).to_le_bytes());
    }

    #[test]
    fn a_body_in_parts_is_the_same_frame() {
        let whole = frame(b"abcdef");
        assert_eq!(whole[..16], header(HEAD, &[b"ab", b"", b"cdef"]).unwrap());
    }

    #[test]
    fn what_is_no_frame_is_named() {
        let good = frame(b"abc");
        assert_eq!(decode(b"GET /"), Err(FrameError::Magic { found: b'G' }));
        assert_eq!(decode(&[MAGIC, 2]), Err(FrameError::Version { found: 2 }));
        assert_eq!(
            decode(&[&good[..8], &[0xFF; 8]].concat()),
            Err(FrameError::TooLong {
                bytes: 0xFFFF_FFFF,
                most_bytes: 1000
            })
        );
        for at in 2..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let found = decode(&bad);
            assert!(!matches!(found, Ok(Some(_))), "byte {at}: {found:?}");
        }
    }

    #[test]
    fn a_torn_frame_waits_and_is_an_error_at_the_end() {
        let good = frame(b"abc");
        for length in 1..good.len() {
            let mut decoder = Decoder::new(1000);
            decoder.push(&good[..length]);
            assert_eq!(decoder.next_frame(), Ok(None), "{length}");
            assert_eq!(decoder.end(), Err(FrameError::Torn { bytes: length }));
        }
    }

    #[test]
    fn a_header_that_lies_costs_no_memory() {
        let mut decoder = Decoder::new(1 << 30);
        let mut header = header(HEAD, &[b""]).unwrap();
        header[8..12].copy_from_slice(&(1_u32 << 30).to_le_bytes());
        let mut stream = &header[..];
        decoder.read_from(&mut stream).unwrap();
        assert_eq!(decoder.next_frame(), Ok(None));
        decoder.read_from(&mut stream).unwrap();
        assert!(decoder.buffer.capacity() <= 4 * READ_BYTES);
    }

    #[test]
    fn a_peer_that_sends_little_is_given_little_room() {
        let small = frame(b"abc");
        let many: Vec<u8> = small.iter().copied().cycle().take(1 << 20).collect();
        let mut decoder = Decoder::new(1000);
        let mut stream = &many[..];
        while decoder.read_from(&mut stream).unwrap() > 0 {
            while decoder.next_frame().unwrap().is_some() {}
        }
        assert_eq!(decoder.read_bytes, READ_BYTES / 2);
        let mut decoder = Decoder::new(1000);
        decoder.read_bytes = READ_BYTES;
        for _ in 0..10 {
            decoder.read_from(&mut &small[..]).unwrap();
            assert!(decoder.next_frame().unwrap().is_some());
        }
        assert!(decoder.buffer.capacity() <= 2 * LEAST_READ_BYTES);
    }

    #[test]
    fn a_large_body_comes_whole_through_small_reads() {
        let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let bytes = frame(&body);
        let mut stream = &bytes[..];
        let mut decoder = Decoder::new(4 << 20);
        let found = loop {
            if let Some(found) = decoder.next_frame().unwrap() {
                break found;
            }
            assert!(decoder.read_from(&mut stream).unwrap() > 0);
        };
        assert_eq!(found.body, body);
        assert_eq!(decoder.end(), Ok(()));
    }
}
