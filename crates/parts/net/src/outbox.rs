//! Frames that wait to be written on one connection. A thread that has an answer puts it here and
//! goes on; one thread writes them, many in one call.

use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::frame::{Head, header};
use crate::{FrameError, HEADER_BYTES};

/// Parts below this length are copied side by side, longer ones are shared: copying a kilobyte is
/// cheaper than carrying it as a part of its own.
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
    /// Whole runs of frames, in order; `small` comes after them.
    parts: Vec<Bytes>,
    small: BytesMut,
    /// Everything not yet handed to the system, what is being written included.
    bytes: usize,
    writing_bytes: usize,
    closed: bool,
    /// Whether the writer waits; waking one that does not costs a system call for nothing.
    idle: bool,
    /// Who waits in [`Outbox::wait_below`].
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

    /// Puts a frame in, whose body is these parts. It never waits. Frames for a connection that has
    /// ended are let go: they cannot be received.
    pub fn push(&self, head: Head, parts: &[Bytes]) -> Result<(), FrameError> {
        self.push_quietly(head, parts)?;
        self.wake();
        Ok(())
    }

    /// The same for one of several frames: the writer need not look before [`Outbox::wake`], so
    /// that they go together.
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

    /// Makes the writer look.
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

    /// Waits until less than `bytes` are left, for back-pressure. False: the connection has ended,
    /// or `wait` has passed.
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

    /// Ends it: what waits is let go, and who waits goes on.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let parts = std::mem::take(&mut state.parts);
        state.small.clear();
        state.bytes = 0;
        drop(state);
        // Their bytes may carry what does something when it is dropped, and that may look at this
        // outbox.
        drop(parts);
        self.filled.notify_all();
        self.drained.notify_all();
    }

    /// For the writer: says that what it took before is written, waits for more, and moves it all
    /// to `into`. False: the outbox is closed.
    pub(crate) fn take(&self, into: &mut Vec<Bytes>) -> bool {
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
            // The thread that filled it is often about to add more, and then all goes in one call.
            drop(state);
            thread::yield_now();
            state = self.lock();
        }
        state.idle = false;
        state.move_to(into);
        !state.closed
    }

    /// The same without waiting, for a connection that has no writer yet: what is there is moved to
    /// `into` and counts as written.
    pub(crate) fn take_now(&self, into: &mut Vec<Bytes>) {
        let mut state = self.lock();
        state.move_to(into);
        state.bytes = 0;
        state.writing_bytes = 0;
    }

    /// A panic elsewhere cannot leave the state half changed: no call here panics in the middle.
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
        assert!(outbox.take(&mut taken));
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
        outbox.take(&mut taken);
        assert_eq!(outbox.bytes(), HEADER_BYTES + 2);
        assert!(!outbox.wait_below(1, Duration::ZERO));
        outbox.push(HEAD, &[]).unwrap();
        outbox.take(&mut taken);
        assert_eq!(outbox.bytes(), HEADER_BYTES);
    }

    #[test]
    fn a_closed_outbox_holds_nothing_and_stops_its_writer() {
        let outbox = Outbox::new();
        outbox.close();
        outbox.push(HEAD, &[Bytes::from_static(b"ab")]).unwrap();
        assert_eq!(outbox.bytes(), 0);
        assert!(!outbox.take(&mut Vec::new()));
        assert!(!outbox.wait_below(1, Duration::from_secs(9)));
    }
}
