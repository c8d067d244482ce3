//! The process of role `persist`: one thread that keeps the logs of other processes in its memory.
//! It has no rows and writes to no disk.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dyno_net::{Closed, FrameRef, Handler, Head, Listener, Outbound, PortId, Reactor};
use dyno_serve::Token;
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::{Ask, MOST_CHUNK_BYTES, PersistStore, Read, Reply};

use crate::error::{bad_argument, from_net, unavailable};
use crate::greet::{check_token, end_on_error};
use crate::hello::{
    STORE_ASK, STORE_HELLO, STORE_REPLY, STORE_WELCOME, decode_store_hello, encode_store_welcome,
};
use crate::options::OpenOptions;
use crate::standalone::{Purpose, StandaloneService};

/// Memory for logs at least: a chunk of a checkpoint and as much log behind it must fit.
const LEAST_MEMORY_BYTES: u64 = 2 * MOST_CHUNK_BYTES as u64;
/// Logs that one process keeps at most.
const LOGS_MAX: usize = 4096;
/// The longest sleep.
const SLEEP: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Counts {
    used_bytes: Arc<AtomicU64>,
    logs: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
}

const PURPOSE: Purpose = Purpose {
    role: "persist",
    activity: "keeps logs",
};

/// Starts a store.
pub(crate) fn start(
    options: &OpenOptions,
    token: Option<Token>,
    listener: Listener,
) -> Result<StandaloneService> {
    if options.memory_bytes < LEAST_MEMORY_BYTES {
        return Err(bad_argument(format!(
            "{} bytes of memory are not enough for the logs of other processes: give at least {} \
             MiB",
            options.memory_bytes,
            LEAST_MEMORY_BYTES >> 20
        )));
    }
    let counts = Counts::default();
    let figures = vec![
        ("persist_bytes", counts.used_bytes.clone()),
        ("persist_logs", counts.logs.clone()),
        ("persist_refused", counts.refused.clone()),
    ];
    let handler = StoreHandler {
        store: PersistStore::new(options.memory_bytes, LOGS_MAX),
        token,
        writers: HashSet::new(),
        counts,
        scratch: Vec::new(),
    };
    StandaloneService::start(PURPOSE, options, listener, figures, |reactor, stop| {
        serve(reactor, handler, stop)
    })
}

fn serve(mut reactor: Reactor, mut handler: StoreHandler, stop: &AtomicBool) -> Result<()> {
    while !stop.load(Ordering::Acquire) {
        let frames = reactor.poll(&mut handler).map_err(from_net)?;
        reactor.idle(frames > 0, SLEEP).map_err(from_net)?;
    }
    Ok(())
}

struct StoreHandler {
    store: PersistStore,
    token: Option<Token>,
    /// Connections that have shown the token.
    writers: HashSet<PortId>,
    counts: Counts,
    scratch: Vec<u8>,
}

impl Handler for StoreHandler {
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        let handled = self.on_frame(port, frame, out);
        end_on_error(handled, frame.head.request, out)
    }

    fn is_admitted(&self, port: PortId) -> bool {
        self.writers.contains(&port)
    }

    fn close(&mut self, port: PortId, _why: Closed) {
        self.writers.remove(&port);
    }
}

impl StoreHandler {
    /// An error ends the connection.
    fn on_frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        match frame.head.verb {
            STORE_ASK if self.writers.contains(&port) => {
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
                    verb: STORE_REPLY,
                    ..frame.head
                };
                // A full outbox ends the connection. The writer connects again, and then sends a
                // checkpoint and the log behind it.
                out.send(head, &[&self.scratch]).map_err(unavailable)
            }
            STORE_HELLO => {
                let shown = decode_store_hello(frame.body)?;
                check_token(self.token.as_ref(), shown)?;
                let welcome =
                    encode_store_welcome(self.store.used_bytes(), self.store.most_bytes());
                let head = Head {
                    verb: STORE_WELCOME,
                    ..frame.head
                };
                out.send(head, &[&welcome]).map_err(unavailable)?;
                self.writers.insert(port);
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
                    // However much it asks for, the reader gets what fits into a frame.
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
