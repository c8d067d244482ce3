//! Frames that wait to be written on one connection. A thread that has an answer puts it here and
//! goes on; one thread writes them, many in one call. While that thread has nothing to do, small
//! frames are written by the thread that brings them, which saves a switch between threads for each
//! answer of a connection that is not busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::frame::{Head, header};
use crate::{FrameError, HEADER_BYTES, Stream};

/// Parts below this length are copied side by side, longer ones are shared: copying a few kilobytes
/// is cheaper than a part of its own in a system call.
const COPY_BYTES: usize = 4 << 10;
/// The most that a thread which brings frames writes itself. Copying more into the socket takes
/// longer than waking the writer.
const DIRECT_BYTES: usize = 16 << 10;

/// The frames that one connection has yet to send.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    filled: Condvar,
    drained: Condvar,
    /// Bytes that the system has accepted.
    pub(crate) written: AtomicU64,
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
    /// Whether the writer waits and was not woken yet. Waking it again would cost a system call for
    /// nothing.
    idle: bool,
    /// The writer's socket. Other threads write to it only while the writer is idle and under the
    /// lock of this state, so frames cannot overtake each other.
    socket: Option<Arc<Stream>>,
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

    /// Writes what waits, if it is little and the socket takes it at once. What is left, after an
    /// error as well, stays for the writer. Returns the bytes written.
    fn write_now(&mut self) -> usize {
        let Some(socket) = &self.socket else {
            return 0;
        };
        if !self.parts.is_empty() || self.small.len() > DIRECT_BYTES {
            return 0;
        }
        // The writer meets the same error, and ends the connection for it.
        let written = socket.write_now(&self.small).unwrap_or(0);
        self.small.advance(written);
        self.bytes -= written;
        written
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

    /// Appends one of several frames without writing them, so that they go out together once
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

    /// If the writer waits, writes what the socket takes at once, and wakes the writer for the
    /// rest. It never waits.
    pub fn wake(&self) {
        let mut state = self.lock();
        if !state.idle || state.bytes == 0 {
            return;
        }
        let written = state.write_now();
        self.written.fetch_add(written as u64, Ordering::Relaxed);
        if written > 0 && state.held_back > 0 {
            self.drained.notify_all();
        }
        if state.bytes > 0 {
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
        let socket = state.socket.take();
        state.small.clear();
        state.bytes = 0;
        drop(state);
        // Dropping the bytes may run code, such as giving memory of a share back, which may call
        // this outbox: so they are dropped without the lock, and so is the socket, which may close.
        drop((parts, socket));
        self.filled.notify_all();
        self.drained.notify_all();
    }

    /// For the writer, before its first [`Outbox::drain`]: lends its socket to the threads that
    /// bring frames.
    pub(crate) fn lend(&self, socket: Arc<Stream>) {
        let mut state = self.lock();
        if !state.closed {
            state.socket = Some(socket);
        }
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
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;

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
    fn an_idle_writer_is_woken_only_for_what_the_socket_does_not_take() {
        let (near, far) = UnixStream::pair().unwrap();
        let outbox = Arc::new(Outbox::new());
        outbox.lend(Arc::new(Stream::Unix(near)));
        let writer = Arc::clone(&outbox);
        let (took, taken) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut parts = Vec::new();
            while writer.drain(&mut parts) {
                let bytes: usize = parts.iter().map(Bytes::len).sum();
                took.send(bytes).unwrap();
                parts.clear();
            }
        });
        while !outbox.lock().idle {
            thread::yield_now();
        }
        // A small frame is in the socket when `push` returns.
        outbox.push(HEAD, &[Bytes::from_static(b"ab")]).unwrap();
        assert_eq!(outbox.bytes(), 0);
        let mut got = [0; HEADER_BYTES + 2];
        (&far).read_exact(&mut got).unwrap();
        assert_eq!(&got[HEADER_BYTES..], b"ab");
        assert_eq!(outbox.written.load(Ordering::Relaxed), got.len() as u64);
        // A large one is the writer's, and so is the part of a small one that finds no room.
        let large = Bytes::from(vec![7; COPY_BYTES]);
        outbox.push(HEAD, std::slice::from_ref(&large)).unwrap();
        let wait = Duration::from_secs(20);
        assert_eq!(taken.recv_timeout(wait).unwrap(), HEADER_BYTES + COPY_BYTES);
        let small = Bytes::from(vec![8; COPY_BYTES - 1]);
        let mut pushed = 0;
        let left = loop {
            while !outbox.lock().idle {
                thread::yield_now();
            }
            outbox.push(HEAD, std::slice::from_ref(&small)).unwrap();
            pushed += HEADER_BYTES + small.len();
            assert!(pushed < 64 << 20, "a socket that is not read takes all");
            match taken.recv_timeout(Duration::from_millis(20)) {
                Ok(left) => break left,
                Err(_) => continue,
            }
        };
        outbox.close();
        thread.join().unwrap();
        let before = HEADER_BYTES + 2;
        let direct = usize::try_from(outbox.written.load(Ordering::Relaxed)).unwrap() - before;
        assert_eq!(direct + left, pushed);
        drop(outbox);
        let mut rest = Vec::new();
        (&far).read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), direct);
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
