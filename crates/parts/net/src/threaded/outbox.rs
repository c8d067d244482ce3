//! Frames that wait to be written on one connection. A thread that has an answer puts it here and
//! goes on; one thread writes them, many in one call.

use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::frame::{Head, header};
use crate::{FrameError, HEADER_BYTES};

/// Parts below this length are copied side by side, longer ones are shared: copying a few kilobytes
/// is cheaper than a part of its own in a system call.
const COPY_BYTES: usize = 4 << 10;

/// The frames that one connection has yet to send.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    filled: Condvar,
    drained: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Runs of frames, in order; the bytes in `small` come after them.
    parts: Vec<Bytes>,
    small: BytesMut,
    /// Bytes not yet handed to the system, those that are being written included.
    bytes: usize,
    writing_bytes: usize,
    closed: bool,
    /// Whether the writer waits. Waking a writer that does not wait would cost a system call for
    /// nothing.
    idle: bool,
    /// Threads in [`Outbox::wait_below`].
    held_back: usize,
}

impl State {
    fn move_to(&mut self, into: &mut Vec<Bytes>) {
        into.append(&mut self.parts);
        if !self.small.is_empty() {
            into.push(self.small.split().freeze());
        }
        self.writing_bytes = self.bytes;
    }
}

impl Outbox {
    /// An outbox that is open and empty.
    pub fn new() -> Outbox {
        Outbox::default()
    }

    /// Appends a frame whose body is these parts. It never waits. Frames for a connection that has
    /// ended are dropped, because they cannot be received.
    pub fn push(&self, head: Head, parts: &[Bytes]) -> Result<(), FrameError> {
        self.push_quietly(head, parts)?;
        self.wake();
        Ok(())
    }

    /// Appends one of several frames without waking the writer, so that they go out together once
    /// [`Outbox::wake`] is called.
    pub fn push_quietly(&self, head: Head, parts: &[Bytes]) -> Result<(), FrameError> {
        let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let header = header(head, &slices)?;
        let mut state = self.lock();
        if state.closed {
            return Ok(());
        }
        state.bytes += HEADER_BYTES + slices.iter().map(|part| part.len()).sum::<usize>();
        state.small.extend_from_slice(&header);
        for part in parts {
            if part.len() < COPY_BYTES {
                state.small.extend_from_slice(part);
            } else {
                let small = state.small.split().freeze();
                state.parts.push(small);
                state.parts.push(part.clone());
            }
        }
        Ok(())
    }

    /// Wakes the writer if it waits and there is something to write.
    pub fn wake(&self) {
        let mut state = self.lock();
        if state.idle && state.bytes > 0 {
            state.idle = false;
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Bytes that have not been handed to the system.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until less than `bytes` are left, for back-pressure. Returns false if the connection
    /// has ended, or `wait` has passed.
    pub fn wait_below(&self, bytes: usize, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        let mut state = self.lock();
        while state.bytes >= bytes && !state.closed {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return false;
            };
            state.held_back += 1;
            self.drained.wait_for(&mut state, left);
            state.held_back -= 1;
        }
        !state.closed
    }

    /// Ends the outbox: frames that wait are dropped, and threads that wait return.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let parts = std::mem::take(&mut state.parts);
        state.small.clear();
        state.bytes = 0;
        drop(state);
        // Dropping the bytes may run code, such as giving memory of a share back, which may call
        // this outbox: so they are dropped without the lock.
        drop(parts);
        self.filled.notify_all();
        self.drained.notify_all();
    }

    /// For the writer: notes that what it took before is written, waits for more, and moves all of
    /// it to `into`. Returns false if the outbox is closed.
    pub(crate) fn drain(&self, into: &mut Vec<Bytes>) -> bool {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(state.writing_bytes);
        state.writing_bytes = 0;
        if state.held_back > 0 {
            self.drained.notify_all();
        }
        if state.bytes == 0 && !state.closed {
            while state.bytes == 0 && !state.closed {
                state.idle = true;
                self.filled.wait(&mut state);
            }
            // The thread that woke the writer is often about to add more frames, and then all go in
            // one call.
            drop(state);
            thread::yield_now();
            state = self.lock();
        }
        state.idle = false;
        state.move_to(into);
        !state.closed
    }

    /// Takes what is there without waiting, for a connection that has no writer yet. It counts as
    /// written at once.
    pub(crate) fn drain_now(&self, into: &mut Vec<Bytes>) {
        let mut state = self.lock();
        state.move_to(into);
        state.bytes = 0;
        state.writing_bytes = 0;
    }

    /// A panic cannot leave the state inconsistent, because no code under this lock panics in the
    /// middle of a change.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;

    const HEAD: Head = Head {
        verb: 1,
        flags: 0,
        request: 1,
    };

    #[test]
    fn small_frames_go_together_and_large_bodies_are_shared() {
        let outbox = Outbox::new();
        let large = Bytes::from(vec![7; COPY_BYTES]);
        outbox.push(HEAD, &[Bytes::from_static(b"ab")]).unwrap();
        outbox.push(HEAD, std::slice::from_ref(&large)).unwrap();
        outbox.push(HEAD, &[Bytes::from_static(b"cd")]).unwrap();
        let mut taken = Vec::new();
        assert!(outbox.drain(&mut taken));
        assert_eq!(taken.len(), 3);
        assert_eq!(taken[1].as_ptr(), large.as_ptr());
        let mut decoder = Decoder::new(COPY_BYTES);
        taken.iter().for_each(|part| decoder.push(part));
        let bodies: Vec<usize> = std::iter::from_fn(|| decoder.next_frame().unwrap())
            .map(|frame| frame.body.len())
            .collect();
        assert_eq!(bodies, [2, COPY_BYTES, 2]);
    }

    #[test]
    fn what_is_being_written_still_counts() {
        let outbox = Outbox::new();
        outbox.push(HEAD, &[Bytes::from_static(b"ab")]).unwrap();
        let mut taken = Vec::new();
        outbox.drain(&mut taken);
        assert_eq!(outbox.bytes(), HEADER_BYTES + 2);
        assert!(!outbox.wait_below(1, Duration::ZERO));
        outbox.push(HEAD, &[]).unwrap();
        outbox.drain(&mut taken);
        assert_eq!(outbox.bytes(), HEADER_BYTES);
    }

    #[test]
    fn a_closed_outbox_holds_nothing_and_stops_its_writer() {
        let outbox = Outbox::new();
        outbox.close();
        outbox.push(HEAD, &[Bytes::from_static(b"ab")]).unwrap();
        assert_eq!(outbox.bytes(), 0);
        assert!(!outbox.drain(&mut Vec::new()));
        assert!(!outbox.wait_below(1, Duration::from_secs(9)));
    }
}
