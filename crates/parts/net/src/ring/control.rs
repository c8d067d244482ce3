//! The protocol of one direction of a ring: how far was written, how far was read, and which end
//! sleeps.
//!
//! Positions count bytes since the ring was made and never go back; the offset in the ring is the
//! position's remainder by the capacity. Each end keeps its own position in private memory and
//! trusts nothing that it reads from the other: a position that is out of range or went back is an
//! error. This file touches no bytes and calls no system, so that loom can walk through every
//! interleaving (`tests/ring_model.rs` compiles this very file against loom's atomics).

use super::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The other end is awake, so publishing needs no wake-up.
pub const AWAKE: u32 = 0;
/// The other end sleeps on its word (`futex`), and has to be woken there.
pub const ON_FUTEX: u32 = 1;
/// The other end sleeps in poll or epoll and wants a byte on the bell socket.
pub const ON_BELL: u32 = 2;

/// A value that shares its cache line, and the next one that the prefetcher loads with it, with
/// nothing.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Line<T>(pub T);

/// What both ends of one direction share, as it lies in memory (docs/formats/rings.md).
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// Bytes written so far; only the writer changes it.
    pub tail: Line<AtomicU64>,
    /// Bytes read so far; only the reader changes it.
    pub head: Line<AtomicU64>,
    /// How the reader sleeps; set by the reader, cleared by either.
    pub reader_sleeps: Line<AtomicU32>,
    /// How the writer sleeps; set by the writer, cleared by either.
    pub writer_sleeps: Line<AtomicU32>,
}

/// The other end published a position that is impossible, so it is broken or hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {whose} position of a ring of {capacity} bytes is {found}, which cannot follow {known}"
)]
pub struct PositionError {
    /// The end that published it: `writer's` or `reader's`.
    pub whose: &'static str,
    /// The position that was read from the ring.
    pub found: u64,
    /// The last position that was possible.
    pub known: u64,
    /// The size of the ring in bytes.
    pub capacity: u64,
}

/// The private state of the writing end.
#[derive(Debug)]
pub struct Writer {
    /// Where the next byte goes; may be ahead of what is published.
    tail: u64,
    published: u64,
    /// The reader's position when it was last looked at.
    head: u64,
    capacity: u64,
}

impl Writer {
    /// The writer of a new ring of `capacity` bytes.
    pub fn new(capacity: u64) -> Writer {
        Writer {
            tail: 0,
            published: 0,
            head: 0,
            capacity,
        }
    }

    /// Where the next byte goes.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Bytes that may be written now. The reader's position is read only if less than `wanted` are
    /// known to be free, because its cache line belongs to the other core.
    pub fn room(&mut self, control: &Control, wanted: u64) -> Result<u64, PositionError> {
        let known = self.capacity - (self.tail - self.head);
        if known >= wanted {
            return Ok(known);
        }
        let found = control.head.0.load(Ordering::Acquire);
        let step = found.wrapping_sub(self.head);
        if step > self.published - self.head {
            return Err(PositionError {
                whose: "reader's",
                found,
                known: self.head,
                capacity: self.capacity,
            });
        }
        self.head = found;
        Ok(self.capacity - (self.tail - self.head))
    }

    /// Notes that `bytes` more were written into the room; the reader does not see them yet.
    pub fn wrote(&mut self, bytes: u64) {
        self.tail += bytes;
    }

    /// Whether something is written that the reader cannot see yet.
    pub fn unpublished(&self) -> bool {
        self.tail != self.published
    }

    /// Shows the reader all that was written. Returns how to wake it ([`AWAKE`] if it need not be).
    pub fn publish(&mut self, control: &Control) -> u32 {
        self.published = self.tail;
        control.tail.0.store(self.tail, Ordering::Release);
        // The position must be visible before the word is read, and the reader sets the word before
        // it reads the position a last time: so one of the two sees the other.
        fence(Ordering::SeqCst);
        take(&control.reader_sleeps.0)
    }

    /// Announces that this end is about to sleep until there is room. Returns false if there are
    /// `wanted` bytes of it now, so that it must not sleep.
    pub fn announce_sleep(
        &mut self,
        control: &Control,
        wanted: u64,
        how: u32,
    ) -> Result<bool, PositionError> {
        announce(&control.writer_sleeps.0, how);
        Ok(self.room(control, wanted)? < wanted)
    }

    /// Withdraws the announcement after a sleep.
    pub fn woke(&self, control: &Control) {
        control.writer_sleeps.0.swap(AWAKE, Ordering::AcqRel);
    }
}

/// The private state of the reading end.
#[derive(Debug)]
pub struct Reader {
    head: u64,
    /// The writer's position when it was last looked at.
    tail: u64,
    capacity: u64,
}

impl Reader {
    /// The reader of a new ring of `capacity` bytes.
    pub fn new(capacity: u64) -> Reader {
        Reader {
            head: 0,
            tail: 0,
            capacity,
        }
    }

    /// Where the next byte comes from.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Bytes that can be read now. The writer's position is read only once all known bytes are
    /// read.
    pub fn available(&mut self, control: &Control) -> Result<u64, PositionError> {
        if self.tail == self.head {
            let found = control.tail.0.load(Ordering::Acquire);
            if found.wrapping_sub(self.head) > self.capacity {
                return Err(PositionError {
                    whose: "writer's",
                    found,
                    known: self.head,
                    capacity: self.capacity,
                });
            }
            self.tail = found;
        }
        Ok(self.tail - self.head)
    }

    /// Gives the room of `bytes` that were read back to the writer. Returns how to wake it
    /// ([`AWAKE`] if it need not be).
    pub fn release(&mut self, control: &Control, bytes: u64) -> u32 {
        self.head += bytes;
        control.head.0.store(self.head, Ordering::Release);
        // As in `Writer::publish`, with the roles exchanged.
        fence(Ordering::SeqCst);
        take(&control.writer_sleeps.0)
    }

    /// Announces that this end is about to sleep until bytes come. Returns false if there are some
    /// now, so that it must not sleep.
    pub fn announce_sleep(&mut self, control: &Control, how: u32) -> Result<bool, PositionError> {
        announce(&control.reader_sleeps.0, how);
        Ok(self.available(control)? == 0)
    }

    /// Withdraws the announcement after a sleep.
    pub fn woke(&self, control: &Control) {
        control.reader_sleeps.0.swap(AWAKE, Ordering::AcqRel);
    }
}

/// Sets a word before a last look. Words are changed only by exchanges, so that all threads agree
/// on the order of their changes; on the way to sleep the cost does not matter.
fn announce(word: &AtomicU32, how: u32) {
    word.swap(how, Ordering::AcqRel);
    fence(Ordering::SeqCst);
}

/// A sleeper is woken once, by the thread that clears the flag.
fn take(word: &AtomicU32) -> u32 {
    if word.load(Ordering::Relaxed) == AWAKE {
        return AWAKE;
    }
    word.swap(AWAKE, Ordering::AcqRel)
}
