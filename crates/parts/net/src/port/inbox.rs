//! Bytes that have come on a polled connection, and the frames in them, without a copy for each
//! frame.

use crate::frame::parse_header;
use crate::{FrameError, HEADER_BYTES, Head};

/// The room that is offered to one read.
const READ_BYTES: usize = 64 << 10;
/// With less room than this behind them, the bytes that have come are moved to the front.
const LEAST_ROOM: usize = 8 << 10;
/// A buffer that grew beyond this for one long frame is given back once it is empty.
const KEEP_BYTES: usize = 1 << 20;

/// A whole frame whose checksum was compared. Its body lies in the connection's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRef<'a> {
    /// The header without length and checksum.
    pub head: Head,
    /// The body; it must be copied to outlive the callback.
    pub body: &'a [u8],
}

/// Takes bytes and returns frames that borrow from it. After an error it must not be used again.
#[derive(Debug)]
pub struct Inbox {
    /// What has come and is not handled yet lies in `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    most_body_bytes: usize,
}

impl Inbox {
    pub fn new(most_body_bytes: usize) -> Inbox {
        Inbox {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            most_body_bytes,
        }
    }

    /// Refuses bodies of more than this from the next frame on.
    pub fn set_most_body_bytes(&mut self, most_body_bytes: usize) {
        self.most_body_bytes = most_body_bytes;
    }

    /// Where the next bytes go; never empty. It grows with what has come, not with what a header
    /// promises.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > KEEP_BYTES {
                self.buffer = Vec::new();
            }
        }
        let filled = self.end - self.start;
        let header = parse_header(&self.buffer[self.start..self.end], self.most_body_bytes);
        let wanted = match header {
            Ok(Some((_, body_bytes, _))) => HEADER_BYTES + body_bytes,
            _ => HEADER_BYTES,
        };
        let tight = self.buffer.len() - self.end < LEAST_ROOM;
        if self.start > 0 && (tight || self.start + wanted > self.buffer.len()) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, filled);
        }
        let most = READ_BYTES.max(4 * filled);
        let length = wanted.max(READ_BYTES).min(most);
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        // This happens only if a whole frame was left in the buffer.
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end + LEAST_ROOM, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Notes that `count` bytes were put into the space.
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// The next whole frame; `None` if more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<FrameRef<'_>>, FrameError> {
        let came = &self.buffer[self.start..self.end];
        let Some((head, body_bytes, expected)) = parse_header(came, self.most_body_bytes)? else {
            return Ok(None);
        };
        let Some(frame) = came.get(..HEADER_BYTES + body_bytes) else {
            return Ok(None);
        };
        let (header, body) = frame.split_at(HEADER_BYTES);
        let found = dyno_checksum::append(dyno_checksum::crc32c(&header[..12]), body);
        if found != expected {
            return Err(FrameError::Checksum {
                request: head.request,
                expected,
                found,
            });
        }
        self.start += frame.len();
        Ok(Some(FrameRef { head, body }))
    }

    /// Memory of the buffer beyond the first [`READ_BYTES`].
    pub fn held_bytes(&self) -> usize {
        self.buffer.len().saturating_sub(READ_BYTES)
    }

    /// Gives the buffer back if it is empty.
    pub fn shrink(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.buffer = Vec::new();
        }
    }

    /// Call this at the end of the stream: it is an error if that came inside a frame.
    pub fn at_end(&self) -> Result<(), FrameError> {
        match self.end - self.start {
            0 => Ok(()),
            bytes => Err(FrameError::Torn { bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Decoder, encode};

    /// The decoder of the blocking ends, slower and older, says what is right.
    fn by_decoder(stream: &[u8]) -> (Vec<(Head, Vec<u8>)>, Option<FrameError>) {
        let mut decoder = Decoder::new(1 << 16);
        let mut found = Vec::new();
        decoder.push(stream);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => found.push((frame.head, frame.body.to_vec())),
                Ok(None) => return (found, decoder.end().err()),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    fn by_inbox(stream: &[u8], piece: usize) -> (Vec<(Head, Vec<u8>)>, Option<FrameError>) {
        let mut inbox = Inbox::new(1 << 16);
        let mut found = Vec::new();
        for mut piece in stream.chunks(piece) {
            while !piece.is_empty() {
                let space = inbox.space();
                let count = piece.len().min(space.len());
                space[..count].copy_from_slice(&piece[..count]);
                inbox.filled(count);
                piece = &piece[count..];
                loop {
                    match inbox.next_frame() {
                        Ok(Some(frame)) => found.push((frame.head, frame.body.to_vec())),
                        Ok(None) => break,
                        Err(error) => return (found, Some(error)),
                    }
                }
            }
        }
        let end = inbox.at_end().err();
        (found, end)
    }

    proptest! {
        #[test]
        fn it_gives_what_the_decoder_gives(
            bodies in proptest::collection::vec((0_usize..40_000, any::<u8>()), 0..6),
            piece in 1_usize..100_000,
            damage in proptest::option::of((any::<prop::sample::Index>(), 1_u8..)),
        ) {
            let mut stream = Vec::new();
            for (request, (length, byte)) in bodies.iter().enumerate() {
                let head = Head { verb: *byte, flags: 1, request: request as u32 };
                encode(head, &vec![*byte; *length], &mut stream).unwrap();
            }
            if let Some((at, change)) = damage.filter(|_| !stream.is_empty()) {
                let at = at.index(stream.len());
                stream[at] ^= change;
            }
            prop_assert_eq!(by_inbox(&stream, piece), by_decoder(&stream));
        }
    }

    #[test]
    fn a_header_that_lies_costs_no_memory() {
        let mut inbox = Inbox::new(1 << 30);
        let head = Head {
            verb: 1,
            flags: 0,
            request: 1,
        };
        let mut header = crate::header(head, &[]).unwrap();
        header[8..12].copy_from_slice(&(1_u32 << 30).to_le_bytes());
        inbox.space()[..16].copy_from_slice(&header);
        inbox.filled(16);
        assert_eq!(inbox.next_frame(), Ok(None));
        assert!(inbox.space().len() <= READ_BYTES);
    }
}
