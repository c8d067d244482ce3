//! The connections of a server: how many there may be, which of them were admitted, and the end of
//! those that take too long. Has `unsafe`: asking a socket how much of what was written its peer
//! has not taken.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::serve::{ServeCounts, ServeOptions};
use crate::{Closed, Outbox, Stream};

/// The time between two checks of the connections is at least and at most this long.
const TICK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// All connections of a server, and its limits.
pub struct Connections {
    pub options: ServeOptions,
    state: Mutex<State>,
    /// Set before the sockets are shut down. It is outside the lock because it is looked at before
    /// each read.
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    open: HashMap<u64, Open>,
    /// The connections of clients that are not admitted yet. Numbers only grow, so the first one is
    /// the oldest.
    unadmitted: BTreeSet<u64>,
    admitted: usize,
    threads: Vec<JoinHandle<()>>,
}

struct Open {
    stream: Stream,
    life: Arc<Life>,
    since: Instant,
    /// Whether it counts among the admitted connections.
    admitted: bool,
    /// While answers wait: when they were checked last, and how much the client had read by then.
    reading: Option<(Instant, u64)>,
}

/// What the threads of one connection and the accepting thread tell each other.
pub struct Life {
    pub outbox: Arc<Outbox>,
    /// The frame that is charged and not complete yet.
    pub frame: Mutex<Option<Incoming>>,
    /// Why it was ended from outside; set once, before the shutdown.
    cut: OnceLock<Cut>,
}

/// A frame that is being received.
pub struct Incoming {
    /// Bytes of it that came since it was charged.
    pub bytes: u64,
    /// When progress was measured last, and the bytes by then.
    mark: (Instant, u64),
}

impl Incoming {
    pub fn new() -> Incoming {
        Incoming {
            bytes: 0,
            mark: (Instant::now(), 0),
        }
    }
}

/// Why the accepting thread ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Late,
    Displaced,
    Refused,
    Stuck,
    Slow,
}

impl Life {
    pub fn new(outbox: Arc<Outbox>) -> Life {
        Life {
            outbox,
            frame: Mutex::new(None),
            cut: OnceLock::new(),
        }
    }

    /// Why the connection was ended from outside, if it was.
    pub fn cut(&self) -> Option<Closed> {
        Some(match self.cut.get()? {
            Cut::Late => Closed::Late,
            Cut::Displaced | Cut::Refused => Closed::Crowded,
            Cut::Stuck => Closed::Stuck,
            Cut::Slow => Closed::Slow,
        })
    }

    /// The frame under way.
    pub fn incoming(&self) -> MutexGuard<'_, Option<Incoming>> {
        self.frame.lock()
    }
}

impl Connections {
    pub fn new(options: ServeOptions) -> Connections {
        Connections {
            options,
            state: Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }

    pub fn len(&self) -> usize {
        self.lock().open.len()
    }

    /// How often the connections are checked: often enough that no limit is exceeded by much.
    pub fn tick(&self) -> Duration {
        let shortest = self.options.hello_wait.min(self.options.write_wait);
        (shortest / 8).clamp(TICK.0, TICK.1)
    }

    /// Finds a place for one more connection, at the cost of the oldest that is not admitted.
    /// Returns the stream, or `None` if it was closed instead.
    pub fn make_place(&self, stream: Stream) -> Option<Stream> {
        let mut state = self.lock();
        state.threads.retain(|thread| !thread.is_finished());
        let most = self.options.most_connections;
        // The second bound counts threads of displaced connections that are still ending, so that a
        // flood of new connections cannot pile them up.
        let all = most.saturating_add(2 * self.options.most_unadmitted.max(1));
        if state.admitted >= most || state.open.len() >= all {
            drop(state);
            self.refuse(&stream);
            return None;
        }
        if state.unadmitted.len() >= self.options.most_unadmitted.max(1)
            && let Some(oldest) = state.unadmitted.pop_first()
        {
            ServeCounts::subtract(&self.options.counts.unadmitted);
            if let Some(open) = state.open.get(&oldest) {
                open.cut(Cut::Displaced, &self.options.counts);
            }
        }
        Some(stream)
    }

    /// Counts a connection that cannot be served, and closes it.
    pub fn refuse(&self, stream: &Stream) {
        ServeCounts::add(&self.options.counts.refused);
        stream.shutdown();
    }

    /// Enters a connection whose client is not admitted yet. `start` starts its thread, under the
    /// lock so that the thread cannot end before its connection is known.
    pub fn enter<E>(
        &self,
        id: u64,
        stream: Stream,
        life: Arc<Life>,
        start: impl FnOnce() -> Result<JoinHandle<()>, E>,
    ) -> Result<(), (Stream, E)> {
        let mut state = self.lock();
        match start() {
            Ok(thread) => state.threads.push(thread),
            Err(error) => return Err((stream, error)),
        }
        ServeCounts::add(&self.options.counts.unadmitted);
        state.unadmitted.insert(id);
        let open = Open {
            stream,
            life,
            since: Instant::now(),
            admitted: false,
            reading: None,
        };
        state.open.insert(id, open);
        Ok(())
    }

    /// Moves a connection to the admitted ones. Returns false if it was ended meanwhile, or all
    /// places are taken.
    pub fn admit(&self, id: u64) -> bool {
        let counts = &self.options.counts;
        let mut state = self.lock();
        let admitted = state.admitted;
        let Some(open) = state.open.get_mut(&id) else {
            return false;
        };
        // The limit may have run out while the client's last message was handled. It is counted
        // already, and its socket is shut down.
        if open.life.cut.get().is_some() {
            return false;
        }
        if admitted >= self.options.most_connections {
            open.cut(Cut::Refused, counts);
            return false;
        }
        open.admitted = true;
        state.admitted += 1;
        if state.unadmitted.remove(&id) {
            ServeCounts::subtract(&counts.unadmitted);
        }
        ServeCounts::add(&counts.open);
        true
    }

    /// Forgets a connection that has ended.
    pub fn leave(&self, id: u64) {
        let counts = &self.options.counts;
        let mut state = self.lock();
        if state.unadmitted.remove(&id) {
            ServeCounts::subtract(&counts.unadmitted);
        }
        if state.open.remove(&id).is_some_and(|open| open.admitted) {
            state.admitted -= 1;
            ServeCounts::subtract(&counts.open);
        }
    }

    /// Ends connections that were not admitted in time, or whose clients are too slow.
    pub fn enforce_limits(&self, now: Instant) {
        let options = &self.options;
        let contended = options.frames.is_contended();
        for open in self.lock().open.values_mut() {
            let cut = if !open.admitted {
                (now.saturating_duration_since(open.since) >= options.hello_wait)
                    .then_some(Cut::Late)
            } else {
                // A slow sender is ended only while others wait for the memory of its frame; alone
                // it harms no other client. Its progress is measured in any case, so that the last
                // while is known.
                let slow = open.sends_slowly(now, options) && contended;
                slow.then_some(Cut::Slow)
                    .or_else(|| open.reads_slowly(now, options))
            };
            if let Some(cut) = cut {
                open.cut(cut, &options.counts);
            }
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Ends reading on all of them. Their threads write what waits, and end.
    pub fn end_all(&self) -> Vec<JoinHandle<()>> {
        let mut state = self.lock();
        // A thread that its shutdown wakes, or whose client still sends, must find this set before
        // its next read.
        self.stopping.store(true, Ordering::Release);
        for open in state.open.values() {
            // A client that is not admitted is owed no answers, and its thread may be waiting in a
            // handshake.
            if open.admitted {
                open.stream.shutdown_read();
            } else {
                open.stream.shutdown();
            }
        }
        mem::take(&mut state.threads)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Open {
    /// Ends the connection from outside, which makes its threads return from whatever they wait
    /// for. It is counted first, so that a client that sees the end finds it counted.
    fn cut(&self, why: Cut, counts: &ServeCounts) {
        if self.life.cut.set(why).is_ok() {
            ServeCounts::add(match why {
                Cut::Late => &counts.late,
                Cut::Displaced => &counts.displaced,
                Cut::Refused => &counts.refused,
                Cut::Stuck | Cut::Slow => &counts.slow,
            });
        }
        self.stream.shutdown();
    }

    /// Whether a frame comes too slowly. Progress is measured over the last while and not over the
    /// whole time: a client that sent all but the last byte at once would otherwise keep the memory
    /// for minutes.
    fn sends_slowly(&self, now: Instant, options: &ServeOptions) -> bool {
        let mut incoming = self.life.incoming();
        let Some(frame) = &mut *incoming else {
            return false;
        };
        let (since, before) = frame.mark;
        let elapsed = now.saturating_duration_since(since);
        if elapsed < options.write_wait {
            return false;
        }
        let slow = frame.bytes - before < at_rate(options.least_rate, elapsed);
        if !slow {
            frame.mark = (now, frame.bytes);
        }
        slow
    }

    /// Whether the client reads too slowly while answers wait for it. Bytes in the socket's buffer
    /// count as unread: otherwise a client that takes a byte now and then would look alive for as
    /// long as the buffer lasts.
    fn reads_slowly(&mut self, now: Instant, options: &ServeOptions) -> Option<Cut> {
        if self.life.outbox.bytes() == 0 {
            self.reading = None;
            return None;
        }
        let written = self.life.outbox.written.load(Ordering::Relaxed);
        let read = written.saturating_sub(unsent_bytes(self.stream.descriptor()));
        let (since, before) = *self.reading.get_or_insert((now, read));
        let elapsed = now.saturating_duration_since(since);
        if elapsed < options.write_wait {
            return None;
        }
        let progress = read.saturating_sub(before);
        self.reading = Some((now, read));
        if progress >= at_rate(options.least_rate, elapsed) {
            return None;
        }
        Some(if progress == 0 { Cut::Stuck } else { Cut::Slow })
    }
}

/// Bytes that pass in `elapsed` at this rate.
fn at_rate(bytes_per_second: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    bytes_per_second.saturating_mul(millis) / 1000
}

/// Bytes that were written to a socket and that its peer has not taken; 0 if the system cannot
/// tell.
fn unsent_bytes(socket: BorrowedFd<'_>) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the call writes one integer that outlives it.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if answer != 0 {
        return 0;
    }
    u64::try_from(bytes).unwrap_or(0)
}
