//! The sending side of a polled connection: straight into the ring or the socket's buffer, and what
//! does not fit waits in a bounded backlog.

use std::time::Duration;

use super::clock::{CoarseInstant, coarse_now};
use super::link::{Link, LinkError};
use crate::frame::header;
use crate::{FrameError, HEADER_BYTES, Head};

/// A ring shows the peer what was written at the latest after this much, so that both work at once.
const PUBLISH_BYTES: usize = 8 << 10;
/// A backlog that grew beyond this is given back once it is empty.
const KEEP_BYTES: usize = 1 << 20;

/// A frame that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer reads too slowly: the backlog is full. Nothing was sent; flush, and try again
    /// later.
    #[error("the peer does not read: {bytes} bytes wait for it, at most {most_bytes} may")]
    Full {
        /// What waits.
        bytes: usize,
        /// The bound.
        most_bytes: usize,
    },
    /// The frame cannot be made.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The connection has ended.
    #[error("the connection has ended")]
    Ended,
}

/// Where frames for one peer go.
#[derive(Debug)]
pub struct Outbound {
    pub(super) link: Link,
    /// What waits, from `sent` on.
    backlog: Vec<u8>,
    sent: usize,
    most_bytes: usize,
    unpublished: usize,
    /// Since when nothing moves although something waits.
    stalled: Option<CoarseInstant>,
    pub(super) failed: Option<LinkError>,
}

impl Outbound {
    pub(super) fn new(link: Link, most_bytes: usize) -> Outbound {
        Outbound {
            link,
            backlog: Vec::new(),
            sent: 0,
            most_bytes,
            unpublished: 0,
            stalled: None,
            failed: None,
        }
    }

    /// Sends a frame whose body is these parts. It goes out with the next flush at the latest; many
    /// frames go together. A frame is taken while less than the bound waits, so one may exceed it.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), SendError> {
        if self.is_full() {
            return Err(SendError::Full {
                bytes: self.waiting_bytes(),
                most_bytes: self.most_bytes,
            });
        }
        if self.failed.is_some() {
            return Err(SendError::Ended);
        }
        let header = header(head, parts)?;
        let bytes = HEADER_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
        if self.backlog.is_empty()
            && let Link::Ring(ring) = &mut self.link
        {
            match ring.room(bytes) {
                Ok(room) if room >= bytes => {
                    self.put_in_ring(&header, parts, bytes);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => {
                    self.failed = Some(error.into());
                    return Err(SendError::Ended);
                }
            }
        }
        self.backlog.extend_from_slice(&header);
        for part in parts {
            self.backlog.extend_from_slice(part);
        }
        Ok(())
    }

    /// Bytes that wait in this process.
    pub fn waiting_bytes(&self) -> usize {
        self.backlog.len() - self.sent
    }

    /// Memory of the backlog, which outlives what it held.
    pub(super) fn held_bytes(&self) -> usize {
        self.backlog.capacity()
    }

    /// Gives the backlog's memory back if it is empty.
    pub(super) fn shrink(&mut self) {
        if self.backlog.is_empty() {
            self.backlog = Vec::new();
        }
    }

    /// Whether no more frames are taken for now.
    pub fn is_full(&self) -> bool {
        self.waiting_bytes() >= self.most_bytes
    }

    /// Whether a flush has something to do.
    pub fn is_pending(&self) -> bool {
        self.unpublished > 0 || !self.backlog.is_empty() || self.link.holds_back()
    }

    /// Whether something waits for the peer to make room.
    pub(super) fn is_blocked(&self) -> bool {
        !self.backlog.is_empty() || self.link.holds_back()
    }

    /// There is room for the whole frame.
    fn put_in_ring(&mut self, header: &[u8], parts: &[&[u8]], bytes: usize) {
        let mut write = || -> Result<(), LinkError> {
            self.link.write(header)?;
            for part in parts {
                self.link.write(part)?;
            }
            self.unpublished += bytes;
            if self.unpublished >= PUBLISH_BYTES {
                self.unpublished = 0;
                self.link.flush()?;
            }
            Ok(())
        };
        self.failed = write().err();
    }

    /// Hands on as much as can be now. True: all is handed on. False for longer than `most_stall`:
    /// None.
    pub(super) fn flush(&mut self, most_stall: Duration) -> Result<Option<bool>, LinkError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut moved = false;
        while self.sent < self.backlog.len() {
            let count = self.link.write(&self.backlog[self.sent..])?;
            if count == 0 {
                break;
            }
            moved = true;
            self.sent += count;
        }
        self.unpublished = 0;
        self.link.flush()?;
        if self.sent == self.backlog.len() {
            self.sent = 0;
            self.backlog.clear();
            self.backlog.shrink_to(KEEP_BYTES);
        } else if self.sent > self.backlog.len() / 2 {
            self.backlog.drain(..self.sent);
            self.sent = 0;
        }
        if !self.is_blocked() {
            self.stalled = None;
            return Ok(Some(true));
        }
        let now = coarse_now();
        let since = match self.stalled {
            Some(since) if !moved => since,
            _ => *self.stalled.insert(now),
        };
        Ok((now.since(since) <= most_stall).then_some(false))
    }
}
