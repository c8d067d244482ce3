//! The client's end: many requests under way on one connection, answered in any order.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustls::ClientConfig;

use super::pending::{Pending, Waiting};
use super::writer;
use crate::{Address, Decoder, Frame, Head, NetError, Outbox, Stream};

/// The frame of an answer, or the reason why none came.
pub type Answer = Result<Frame, NetError>;

/// How often deadlines are checked: a late answer may be reported this much later.
const TICK: Duration = Duration::from_millis(100);

/// The limits of a connection.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// Requests under way at most. A further one waits until one is answered.
    pub window: usize,
    /// The longest body of an answer; a longer one ends the connection.
    pub most_body_bytes: usize,
    /// How long connecting may take, for each address that a host name stands for.
    pub connect_wait: Duration,
    /// How long one request may wait for its answer; `None` waits as long as the connection lives.
    pub answer_wait: Option<Duration>,
    /// TLS settings for an address of TCP; `None` connects in the clear.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Default for CallOptions {
    fn default() -> CallOptions {
        CallOptions {
            window: 1024,
            most_body_bytes: 64 << 20,
            connect_wait: Duration::from_secs(5),
            answer_wait: Some(Duration::from_secs(60)),
            tls: None,
        }
    }
}

/// A connection to a server. Clones share it; it ends with the last of them, with
/// [`Caller::close`], or with the peer. A dead connection stays dead: whether to connect again is
/// for the user to decide, because only the user knows what to do about requests whose outcome is
/// unknown.
#[derive(Clone)]
pub struct Caller {
    shared: Arc<Shared>,
    /// Only the callers hold this, not the threads: the last caller that is dropped ends the
    /// connection.
    _end: Arc<End>,
}

struct Shared {
    address: String,
    options: CallOptions,
    pending: Mutex<Pending>,
    answered: Condvar,
    outbox: Outbox,
    stream: Stream,
}

struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end(NetError::Closed {
            address: self.0.address.clone(),
        });
    }
}

impl Caller {
    /// Connects, and starts the connection's two threads.
    pub fn connect(address: &Address, options: CallOptions) -> Result<Caller, NetError> {
        let stream = match &options.tls {
            Some(config) => Stream::connect_tls(address, options.connect_wait, Arc::clone(config))?,
            None => Stream::connect(address, options.connect_wait)?,
        };
        let failed = |error| NetError::io("use the connection to", address, error);
        stream.set_read_timeout(Some(TICK)).map_err(failed)?;
        stream
            .set_write_timeout(options.answer_wait)
            .map_err(failed)?;
        let reading = stream.try_clone().map_err(failed)?;
        let writing = stream.try_clone().map_err(failed)?;
        let shared = Arc::new(Shared {
            address: address.to_string(),
            options,
            pending: Mutex::default(),
            answered: Condvar::new(),
            outbox: Outbox::new(),
            stream,
        });
        let end = Arc::new(End(Arc::clone(&shared)));
        let writes = Arc::clone(&shared);
        let reads = Arc::clone(&shared);
        named("net-write")
            .spawn(move || {
                if let Err(error) = writer::run(&writes.outbox, writing) {
                    writes.end(NetError::io("write to", &writes.address, error));
                }
            })
            .map_err(failed)?;
        named("net-read")
            .spawn(move || {
                let why = reads.read(reading);
                reads.end(why);
            })
            .map_err(failed)?;
        Ok(Caller { shared, _end: end })
    }

    /// The server's address, for messages.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Why the connection has ended; `None` while it lives.
    pub fn ended(&self) -> Option<NetError> {
        self.shared.lock().dead().cloned()
    }

    /// Requests that wait for their answers now.
    pub fn unanswered(&self) -> usize {
        self.shared.lock().len()
    }

    /// Sends a request and returns. `on_answer` runs exactly once, on the thread that reads the
    /// connection (or on this one if nothing could be sent), so it must not wait. With the window
    /// full this call waits.
    pub fn send(
        &self,
        verb: u8,
        flags: u8,
        body: &[Bytes],
        on_answer: impl FnOnce(Answer) + Send + 'static,
    ) {
        let shared = &self.shared;
        let wait = shared.options.answer_wait;
        let waiting = Waiting {
            on_answer: Box::new(on_answer),
            deadline: wait.map(|wait| Instant::now() + wait),
            wait_ms: wait.map_or(0, |wait| wait.as_millis() as u64),
        };
        let added = match shared.wait_for_room() {
            Err(full) => Err((waiting, full)),
            Ok(mut pending) => pending.add(waiting),
        };
        let request = match added {
            Ok(request) => request,
            Err((waiting, why)) => return (waiting.on_answer)(Err(why)),
        };
        let head = Head {
            verb,
            flags,
            request,
        };
        // The request was entered before the frame is sent, because its answer may come before
        // `push` returns. A frame that cannot be made is taken out again, unless the end of the
        // connection took it first.
        if let Err(source) = shared.outbox.push(head, body) {
            let waiting = shared.lock().remove(request);
            if let Some(waiting) = waiting {
                (waiting.on_answer)(Err(NetError::Frame {
                    address: shared.address.clone(),
                    source,
                }));
            }
        }
    }

    /// Sends a request and waits for the answer.
    pub fn call(&self, verb: u8, flags: u8, body: &[Bytes]) -> Answer {
        let (answer, answered) = mpsc::sync_channel(1);
        self.send(verb, flags, body, move |found| {
            // The receiver lives until the answer has come, so sending cannot fail.
            let _ = answer.send(found);
        });
        answered.recv().unwrap_or_else(|_| {
            Err(NetError::Closed {
                address: self.shared.address.clone(),
            })
        })
    }

    /// Ends the connection. Requests under way are answered with [`NetError::Closed`].
    pub fn close(&self) {
        self.shared.end(NetError::Closed {
            address: self.shared.address.clone(),
        });
    }
}

impl Shared {
    /// Waits until a request may be sent, and returns with the lock held so that the room is not
    /// taken.
    fn wait_for_room(&self) -> Result<MutexGuard<'_, Pending>, NetError> {
        let window = self.options.window;
        let full = |pending: &mut Pending| pending.dead().is_none() && pending.len() >= window;
        let mut pending = self.lock();
        if !full(&mut pending) {
            return Ok(pending);
        }
        pending.blocked += 1;
        let for_ever = Duration::from_secs(u64::from(u32::MAX));
        let wait = self.options.answer_wait.unwrap_or(for_ever);
        let timeout = self.answered.wait_while_for(&mut pending, full, wait);
        pending.blocked -= 1;
        if timeout.timed_out() {
            return Err(NetError::Full {
                address: self.address.clone(),
                window,
            });
        }
        Ok(pending)
    }

    /// Reads until the connection ends, and returns the reason.
    fn read(&self, mut stream: Stream) -> NetError {
        let mut decoder = Decoder::new(self.options.most_body_bytes);
        let mut checked_at = Instant::now();
        let broken = |source| NetError::Frame {
            address: self.address.clone(),
            source,
        };
        loop {
            match decoder.read_from(&mut stream) {
                Ok(0) => {
                    return match decoder.end() {
                        Ok(()) => NetError::Closed {
                            address: self.address.clone(),
                        },
                        Err(error) => broken(error),
                    };
                }
                Ok(_) => {}
                Err(error) if is_tick(&error) => {}
                Err(error) => return NetError::io("read from", &self.address, error),
            }
            if let Err(error) = self.answer_all(&mut decoder) {
                return broken(error);
            }
            // Deadlines are checked by the clock and not only when a read times out, because a
            // server that keeps answering other requests would otherwise keep them from being
            // checked.
            if checked_at.elapsed() >= TICK {
                checked_at = Instant::now();
                self.give_up_late(checked_at);
            }
        }
    }

    /// Calls back with every answer that is whole.
    fn answer_all(&self, decoder: &mut Decoder) -> Result<(), crate::FrameError> {
        let mut answers = Vec::new();
        let result = loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => answers.push(frame),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if answers.is_empty() {
            return result;
        }
        let mut pending = self.lock();
        // A frame without a waiting request is an answer that came after its deadline.
        let waiting: Vec<(Waiting, Frame)> = answers
            .into_iter()
            .filter_map(|frame| Some((pending.remove(frame.head.request)?, frame)))
            .collect();
        let blocked = pending.blocked > 0;
        drop(pending);
        if blocked {
            self.answered.notify_all();
        }
        // The callbacks run without the lock, because they may send further requests on this
        // connection.
        for (waiting, frame) in waiting {
            (waiting.on_answer)(Ok(frame));
        }
        result
    }

    fn give_up_late(&self, now: Instant) {
        let late = self.lock().late(now);
        if !late.is_empty() {
            self.answered.notify_all();
        }
        for waiting in late {
            (waiting.on_answer)(Err(NetError::Late {
                address: self.address.clone(),
                wait_ms: waiting.wait_ms,
            }));
        }
    }

    fn end(&self, why: NetError) {
        // The reason is set before the sockets close, so that the two threads, which fail because
        // of that, do not replace it by an error of their own.
        let waiting = self.lock().end(why.clone());
        self.outbox.close();
        self.stream.shutdown();
        self.answered.notify_all();
        for waiting in waiting {
            (waiting.on_answer)(Err(why.clone()));
        }
    }

    /// Code under this lock does not panic, so the state behind it is always whole.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock()
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

/// Whether a read only ended because it is time to check deadlines.
fn is_tick(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
