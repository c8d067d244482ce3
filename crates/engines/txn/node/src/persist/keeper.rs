//! The process that keeps others' logs in its memory: one thread, no rows, nothing on a disk.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_net::{
    Address, Closed, FrameRef, Handler, Head, Listener, Outbound, PortId, Reactor, ReactorOptions,
    Waker,
};
use dyno_serve::Token;
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::{Ask, MOST_CHUNK_BYTES, PersistStore, Read, Reply};

use crate::engine::{RING_BYTES, pin, port_options};
use crate::error::{bad, of_net, unavailable};
use crate::hello::{
    KEEP_ASK, KEEP_HELLO, KEEP_REPLY, KEEP_WELCOME, REFUSED, encode_refusal, keep_welcome,
    read_keep_hello,
};
use crate::options::OpenOptions;

/// Logs that one process keeps at most.
const LOGS_MAX: usize = 4096;
/// The longest sleep.
const SLEEP: Duration = Duration::from_millis(100);

/// What it counts, for metrics.
#[derive(Debug, Default)]
struct Counts {
    used_bytes: AtomicU64,
    logs: AtomicU64,
    refused: AtomicU64,
}

/// A running keeper. Dropping it stops it, and what it kept is gone.
pub(crate) struct Keeper {
    thread: Option<JoinHandle<Result<()>>>,
    stopping: Arc<AtomicBool>,
    counts: Arc<Counts>,
    waker: Waker,
    address: Address,
}

impl Keeper {
    /// Starts it.
    pub fn start(options: &OpenOptions, token: Option<Token>, listener: Listener) -> Result<Self> {
        let mut reactor = Reactor::new(ReactorOptions {
            port: port_options(),
            ring_bytes: RING_BYTES,
            spin: options.spin,
            ..ReactorOptions::default()
        })
        .map_err(of_net)?;
        let core = options.cores.first().copied();
        if options.cores.len() > 1 {
            return Err(bad("role `persist` has one thread: name one core"));
        }
        let address = reactor.listen(listener).map_err(of_net)?;
        let waker = reactor.waker();
        let (stopping, counts) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(Counts::default()),
        );
        let door = Door {
            store: PersistStore::new(options.memory_bytes, LOGS_MAX),
            token,
            known: HashSet::new(),
            counts: counts.clone(),
            scratch: Vec::new(),
        };
        let stop = stopping.clone();
        let run = move || {
            if let Some(core) = core {
                pin(core)?;
            }
            keep(reactor, door, &stop)
        };
        let thread = thread::Builder::new().name("txn-persist".to_owned());
        let thread = Some(thread.spawn(run).map_err(unavailable)?);
        Ok(Self {
            thread,
            stopping,
            counts,
            waker,
            address,
        })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Why it stopped by itself.
    pub fn failure(&self) -> Option<String> {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        ended.then(|| "the thread that keeps logs has ended".to_owned())
    }

    /// Names and values.
    pub fn stats(&self) -> Vec<(String, u64)> {
        let counts = &self.counts;
        let named = [
            ("persist_bytes", &counts.used_bytes),
            ("persist_logs", &counts.logs),
            ("persist_refused", &counts.refused),
        ];
        let pair =
            |(name, value): (&str, &AtomicU64)| (name.to_owned(), value.load(Ordering::Relaxed));
        named.map(pair).into()
    }

    pub fn stop(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.stopping.store(true, Ordering::Release);
        self.waker.wake();
        let panicked = || Err(unavailable("the thread that keeps logs panicked"));
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| panicked()),
            None => Ok(()),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Who wants to know how it ended calls `stop`.
        drop(self.join());
    }
}

fn keep(mut reactor: Reactor, mut door: Door, stop: &AtomicBool) -> Result<()> {
    while !stop.load(Ordering::Acquire) {
        let frames = reactor.poll(&mut door).map_err(of_net)?;
        reactor.idle(frames > 0, SLEEP).map_err(of_net)?;
    }
    Ok(())
}

struct Door {
    store: PersistStore,
    token: Option<Token>,
    known: HashSet<PortId>,
    counts: Arc<Counts>,
    scratch: Vec<u8>,
}

impl Handler for Door {
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        match self.take(port, frame, out) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                let head = Head {
                    verb: REFUSED,
                    flags: 0,
                    request: frame.head.request,
                };
                // Who cannot be told why sees that the connection ends.
                let _ = out.send(head, &[&encode_refusal(&error)]);
                ControlFlow::Break(())
            }
        }
    }

    fn close(&mut self, port: PortId, _why: Closed) {
        self.known.remove(&port);
    }
}

impl Door {
    /// An error ends the connection.
    fn take(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        let answered = |error| Error::new(Code::Unavailable, error);
        match frame.head.verb {
            KEEP_ASK if self.known.contains(&port) => {
                let ask = Ask::decode(frame.body).map_err(|error| {
                    let code = match error {
                        dyno_txn_log::WireError::Newer { .. } => Code::NewerVersion,
                        dyno_txn_log::WireError::Damaged { .. } => Code::Damaged,
                    };
                    Error::new(code, error)
                })?;
                let reply = self.answer(ask);
                self.scratch.clear();
                reply.encode(&mut self.scratch);
                let head = Head {
                    verb: KEEP_REPLY,
                    ..frame.head
                };
                // A writer that does not read its answers is let go: it comes again.
                out.send(head, &[&self.scratch]).map_err(answered)
            }
            KEEP_HELLO => {
                let shown = read_keep_hello(frame.body)?;
                if let Some(token) = &self.token
                    && !token.is(shown)
                {
                    return Err(Error::new(Code::Denied, "the token is not this server's"));
                }
                let welcome = keep_welcome(self.store.used_bytes(), self.store.most_bytes());
                let head = Head {
                    verb: KEEP_WELCOME,
                    ..frame.head
                };
                out.send(head, &[&welcome]).map_err(answered)?;
                self.known.insert(port);
                Ok(())
            }
            _ => Err(Error::new(
                Code::NotSupported,
                "this process keeps the bytes of logs (role `persist`): it has no rows",
            )),
        }
    }

    fn answer(&mut self, ask: Ask) -> Reply {
        let reply = match ask {
            Ask::Write(request) => match self.store.handle(request) {
                Ok(answer) => Reply::Answer(answer),
                Err(error) => Reply::Refused(error),
            },
            Ask::Read(log, read) => {
                let read = match read {
                    Read::Bytes { from, most_bytes } => Read::Bytes {
                        from,
                        most_bytes: most_bytes.min(MOST_CHUNK_BYTES),
                    },
                    chunk => chunk,
                };
                match self.store.read(log, read) {
                    Ok(bytes) => Reply::Bytes(bytes),
                    Err(error) => Reply::Refused(error),
                }
            }
        };
        if matches!(reply, Reply::Refused(_)) {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
        let (used, logs) = (self.store.used_bytes(), self.store.logs() as u64);
        self.counts.used_bytes.store(used, Ordering::Relaxed);
        self.counts.logs.store(logs, Ordering::Relaxed);
        reply
    }
}
