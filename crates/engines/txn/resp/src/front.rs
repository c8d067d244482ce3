//! Serves all connections, and waits for none of them. The thread that runs it waits for all of
//! them and for the engine at once.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_net::rustls::ServerConfig;
use dyno_txn_api::{
    Code, Committed, Error, FrontEnd, Key, Pipeline, Request, Result, Retry, Step, TableId,
};
use rustix::event::{Timespec, epoll};
use tracing::{debug, warn};

use crate::batch::{self, Head, PROCEDURE, Unit};
use crate::commands;
use crate::connection::Connection;
use crate::local::Facts;
use crate::row::row_key;
use crate::session::Session;
use crate::socket::Socket;
use crate::watches::Watches;

/// The key of the listener in epoll. Connections are numbered from 1.
const LISTENER: u64 = 0;
/// The ticket of a step of the sweep, where batches have the number of their connection.
const SWEEP: u64 = u64::MAX;
/// Events that are taken at once.
const EVENTS: usize = 256;
/// How often deadlines, the sweep and the stop signal are looked at.
pub const TICK: Duration = Duration::from_millis(50);
/// The pause after an accept that failed, for example because the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The time between two steps of the sweep, if the last one has found something and if not.
const SWEEP_SOON: Duration = Duration::from_millis(50);
const SWEEP_LATER: Duration = Duration::from_millis(500);
/// How long connections may still be answered after the stop signal.
const DRAIN: Duration = Duration::from_secs(2);
/// Attempts for a batch that the engine could not run for a reason that passes.
const ATTEMPTS_MAX: u32 = 20;

/// What it is given.
pub struct Setup {
    /// The listener, in non-blocking mode.
    pub listener: TcpListener,
    /// TLS, if clients speak it.
    pub tls: Option<Arc<ServerConfig>>,
    /// What replies about the server say.
    pub facts: Arc<Facts>,
    /// The table with the keys.
    pub table: TableId,
    /// Set when it has to end.
    pub stopping: Arc<AtomicBool>,
    /// Dropped when it has ended.
    #[expect(dead_code, reason = "its drop is what the other end waits for")]
    pub end: Sender<()>,
}

/// The connections, and what has to be known of all of them.
pub struct Front {
    setup: Setup,
    epoll: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    watches: Watches,
    next_id: u64,
    /// The first version that no write has.
    next_version: u64,
    accepts_at: Instant,
    next_tick: Instant,
    /// When it has to have ended, once it has been asked to.
    ends_at: Option<Instant>,
    sweep: Sweep,
    scratch: Vec<u8>,
}

struct Sweep {
    cursor: u64,
    next_at: Instant,
    is_under_way: bool,
}

impl Front {
    /// Watches the listener.
    ///
    /// # Errors
    /// If the system refuses to.
    pub fn new(setup: Setup) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let key = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &setup.listener, key, epoll::EventFlags::IN)?;
        let now = Instant::now();
        Ok(Self {
            setup,
            epoll,
            connections: BTreeMap::new(),
            watches: Watches::default(),
            next_id: 1,
            // Above those of an earlier run of this server, unless the clock was set back in
            // between; and a client's watch does not outlive its connection.
            next_version: since_epoch().as_nanos() as u64,
            accepts_at: now,
            next_tick: now + TICK,
            ends_at: None,
            sweep: Sweep {
                cursor: 0,
                next_at: now + SWEEP_LATER,
                is_under_way: false,
            },
            scratch: Vec::new(),
        })
    }

    fn serve_all(&mut self, pipeline: &mut dyn Pipeline) -> io::Result<Step> {
        let mut step = self.serve_sockets(pipeline)?;
        let now = Instant::now();
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(pipeline, now)?;
        }
        // Those who wait for answers get them for a moment longer.
        if self.setup.stopping.load(Ordering::Acquire) {
            let until = *self.ends_at.get_or_insert(now + DRAIN);
            if now >= until || self.connections.values().all(Connection::is_idle) {
                step = Step::Over;
            }
        }
        Ok(step)
    }

    /// Handles what sockets have.
    fn serve_sockets(&mut self, pipeline: &mut dyn Pipeline) -> io::Result<Step> {
        let mut room = [const { MaybeUninit::uninit() }; EVENTS];
        let events = match epoll::wait(&self.epoll, &mut room, Some(&Timespec::default())) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(Step::Idle),
            Err(error) => return Err(error.into()),
        };
        for &mut epoll::Event { flags, data } in &mut *events {
            match data.u64() {
                LISTENER => self.accept()?,
                id => self.serve(pipeline, id, flags.contains(epoll::EventFlags::OUT)),
            }
        }
        Ok(if events.is_empty() {
            Step::Idle
        } else {
            Step::Busy
        })
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let accepted = self.setup.listener.accept();
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // A client that has gone before it was accepted does not ask for a pause.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    warn!("cannot accept a connection of Redis' protocol: {error}");
                    self.accepts_at = Instant::now() + ACCEPT_PAUSE;
                    return self.watch_listener(epoll::EventFlags::empty());
                }
            };
            let facts = Arc::clone(&self.setup.facts);
            let Ok(mut socket) = Socket::new(socket, self.setup.tls.as_ref()) else {
                continue;
            };
            if self.connections.len() >= facts.most_connections {
                facts.figures.refused.add(1);
                // Best effort, as in Redis: the client may not be there to read it.
                let _ = socket.write(b"-ERR max number of clients reached\r\n");
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            let key = epoll::EventData::new_u64(id);
            if epoll::add(&self.epoll, socket.descriptor(), key, epoll::EventFlags::IN).is_err() {
                continue;
            }
            facts.figures.accepted.add(1);
            let session = Session::new(id, peer.to_string(), &facts);
            self.connections
                .insert(id, Connection::new(socket, session));
            self.count_connections();
        }
    }

    fn watch_listener(&self, flags: epoll::EventFlags) -> io::Result<()> {
        let key = epoll::EventData::new_u64(LISTENER);
        Ok(epoll::modify(
            &self.epoll,
            &self.setup.listener,
            key,
            flags,
        )?)
    }

    fn count_connections(&self) {
        let now = self.connections.len() as i64;
        self.setup.facts.figures.connections.set(now);
    }

    /// Reads from a connection, or writes what it could not take before.
    fn serve(&mut self, pipeline: &mut dyn Pipeline, id: u64, is_writable: bool) {
        let facts = Arc::clone(&self.setup.facts);
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let mut done = Ok(());
        if is_writable {
            done = connection.write();
        }
        let done = done.and_then(|()| connection.read(&mut self.scratch, &facts));
        self.advance(pipeline, id, done);
    }

    /// Begins the next batch of a connection, writes what is answered, and closes it at its end.
    fn advance(&mut self, pipeline: &mut dyn Pipeline, id: u64, mut done: io::Result<()>) {
        let facts = Arc::clone(&self.setup.facts);
        while let Some(connection) = self.connections.get_mut(&id).filter(|_| done.is_ok()) {
            let is_new = connection.begin_batch();
            if connection.wants_write() {
                done = connection.write();
            }
            if is_new {
                self.submit(pipeline, id);
                continue;
            }
            // What was answered made room for what had arrived before.
            let before = connection.batch().len();
            connection.parse(&facts);
            if before > 0 || !connection.has_work() {
                break;
            }
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if let Err(error) = &done {
            debug!("connection of {} ends: {error}", connection.session.peer);
        }
        if done.is_err() || connection.is_over() || watch(&self.epoll, id, connection).is_err() {
            // Dropping it closes the socket, which leaves epoll by itself. A batch under way is
            // carried out, and its answer finds no connection.
            self.close(id);
            self.count_connections();
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(connection) = self.connections.remove(&id) {
            self.watches.closed(id, connection.batch());
        }
    }

    /// Hands the batch of a connection to the engine.
    fn submit(&mut self, pipeline: &mut dyn Pipeline, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.attempts += 1;
        self.watches.apply(id, &mut connection.watched);
        let head = Head {
            table: self.setup.table,
            now_ms: since_epoch().as_millis() as u64,
            version: self.next_version,
            partitions: self.setup.facts.partitions,
            protocol: connection.protocol,
            watched: connection.watched.clone(),
        };
        let arguments = batch::encode(&head, connection.batch());
        // Each write needs some bytes of arguments, so there are fewer writes than bytes.
        self.next_version += arguments.len() as u64;
        // With one partition there is nothing to choose.
        let first = match head.partitions {
            1 => None,
            _ => first_key(connection.batch()),
        };
        let home = first.map(|key| Key::new(self.setup.table, row_key(key)));
        let request = Request::Call {
            procedure: PROCEDURE.to_owned(),
            arguments,
            home,
        };
        if let Err(error) = pipeline.submit(id, request) {
            // It did not go out, so it had no effect.
            connection.fail_batch(&text_of(&error), error.retry() == Retry::Safe);
            return;
        }
        if let Some(connection) = self.connections.get(&id) {
            let batches = self.connections.iter();
            let batches = batches.map(|(id, connection)| (*id, connection.batch()));
            self.watches.submitted(id, connection.batch(), batches);
        }
    }

    /// Takes the engine's answer to the batch of a connection.
    fn batch_answered(&mut self, pipeline: &mut dyn Pipeline, id: u64, answer: Result<Committed>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return self.watches.settle(id, &[]);
        };
        let damaged = || Error::new(Code::Damaged, "the engine's answer to procedure `resp`");
        let outcome = match &answer {
            Ok(committed) => batch::decode(&committed.returned).ok_or_else(damaged),
            Err(error) => Err(error.clone()),
        };
        let figures = &self.setup.facts.figures;
        match outcome {
            Ok(outcome) => {
                figures.transactions.add(1);
                connection.finish_batch(outcome);
            }
            Err(error) => {
                let passes = matches!(error.kind(), Code::Conflict | Code::Aborted | Code::TooOld);
                if passes && error.retry() == Retry::Safe && connection.attempts < ATTEMPTS_MAX {
                    figures.retries.add(1);
                    return self.submit(pipeline, id);
                }
                figures.failed.add(1);
                let had_no_effect = error.retry() != Retry::Unknown;
                connection.fail_batch(&text_of(&error), had_no_effect);
            }
        }
        self.watches.settle(id, &connection.watched);
        self.advance(pipeline, id, Ok(()));
    }

    /// Does what is due: ends connections whose time is over, and goes on with the sweep.
    fn tick(&mut self, pipeline: &mut dyn Pipeline, now: Instant) -> io::Result<()> {
        let late = self.connections.iter().filter(|(_, one)| one.is_late(now));
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        self.setup.facts.figures.late.add(late.len() as u64);
        for id in late {
            self.close(id);
        }
        self.count_connections();
        if now >= self.accepts_at {
            self.watch_listener(epoll::EventFlags::IN)?;
        }
        if now >= self.sweep.next_at && !self.sweep.is_under_way {
            let now_ms = since_epoch().as_millis() as u64;
            let arguments = batch::encode_sweep(self.setup.table, now_ms, self.sweep.cursor);
            let request = Request::Call {
                procedure: PROCEDURE.to_owned(),
                arguments,
                home: None,
            };
            self.sweep.is_under_way = pipeline.submit(SWEEP, request).is_ok();
            self.sweep.next_at = now + SWEEP_LATER;
        }
        Ok(())
    }

    fn swept(&mut self, answer: Result<Committed>) {
        self.sweep.is_under_way = false;
        // A step that failed is taken again later. Nothing depends on it but memory.
        let Ok(committed) = answer else { return };
        if let Some((cursor, removed)) = batch::decode_sweep(&committed.returned) {
            self.sweep.cursor = cursor;
            self.setup.facts.figures.expired.add(removed);
            if removed > 0 {
                self.sweep.next_at = Instant::now() + SWEEP_SOON;
            }
        }
    }
}

impl FrontEnd for Front {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn step(&mut self, pipeline: &mut dyn Pipeline) -> Step {
        match self.serve_all(pipeline) {
            Ok(step) => step,
            Err(error) => {
                warn!("the listener of Redis' protocol has failed: {error}");
                Step::Over
            }
        }
    }

    fn answered(&mut self, pipeline: &mut dyn Pipeline, ticket: u64, answer: Result<Committed>) {
        match ticket {
            SWEEP => self.swept(answer),
            id => self.batch_answered(pipeline, id, answer),
        }
    }
}

/// Has epoll watch a connection for what it wants now.
fn watch(epoll: &OwnedFd, id: u64, connection: &mut Connection) -> io::Result<()> {
    let wanted = (connection.wants_read(), connection.wants_write());
    if wanted == connection.interest {
        return Ok(());
    }
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, wanted.0);
    flags.set(epoll::EventFlags::OUT, wanted.1);
    let key = epoll::EventData::new_u64(id);
    epoll::modify(epoll, connection.socket().descriptor(), key, flags)?;
    connection.interest = wanted;
    Ok(())
}

/// The first key that a batch names: it runs where that key is stored.
fn first_key(units: &[Unit]) -> Option<&[u8]> {
    units.iter().find_map(|unit| match unit {
        Unit::Command(bytes) | Unit::Watch(bytes) => commands::first_key(bytes),
        Unit::Exec(units) => first_key(units),
        Unit::Literal(_) | Unit::Unwatch | Unit::Protocol(_) => None,
    })
}

/// What a client is told of an error of the engine.
fn text_of(error: &Error) -> String {
    match error.kind() {
        Code::MemoryFull => "OOM command not allowed when used memory > 'maxmemory'.".to_owned(),
        Code::OutcomeUnknown => format!("ERR the outcome is unknown: {}", error.text()),
        _ => format!("ERR {}", error.text()),
    }
}

fn since_epoch() -> Duration {
    // A clock before 1970 counts as 1970: keys then expire late, and nothing else happens.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
