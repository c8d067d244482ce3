//! One connection: bytes in, units for the engine, replies out.
//!
//! Of each connection at most one batch is under way. What arrives meanwhile waits and becomes the
//! next batch, so a client's commands keep their order whatever happens to a batch, and the slower
//! the disk is, the more commands share one transaction.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crate::batch::{Outcome, Unit, Watched};
use crate::local::Facts;
use crate::reply::Protocol;
use crate::session::Session;
use crate::socket::Socket;
use crate::wire::{Input, Limits, Parser};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes of units that wait, after which nothing more is read.
const WAITING_BYTES: usize = 4 << 20;
/// Bytes of replies that the client has not read, after which none of its commands is run.
const UNREAD_BYTES: usize = 4 << 20;
/// Bytes of units in one batch, unless a single one is longer.
const BATCH_BYTES: usize = 512 << 10;
/// Units in one batch.
const BATCH_UNITS: usize = 1024;
/// How long a client may take to show the token, TLS included.
const ADMISSION: Duration = Duration::from_secs(10);
/// How long a client may take to complete a command that it has begun, or to read a reply.
const PROGRESS: Duration = Duration::from_secs(60);

/// The state of one connection.
pub struct Connection {
    socket: Socket,
    /// What the client has said about itself.
    pub session: Session,
    parser: Parser,
    input: Input,
    /// What is to be done, in order.
    waiting: VecDeque<Unit>,
    waiting_bytes: usize,
    /// The units of the batch under way; empty if none is under way.
    batch: Vec<Unit>,
    /// Batches have only one unit each until so many units are done, because one of them has failed
    /// and must not take the others with it.
    singly: usize,
    /// Attempts for the batch under way.
    pub attempts: u32,
    /// The version of the protocol at the beginning of the batch.
    pub protocol: Protocol,
    /// What the client watches.
    pub watched: Vec<Watched>,
    output: Vec<u8>,
    written: usize,
    /// Whether TLS has something to send.
    is_flushing: bool,
    /// Whether the client has ended its side.
    has_ended: bool,
    /// When bytes last came or went.
    moved_at: Instant,
    /// What epoll watches the socket for now: reading, writing.
    pub interest: (bool, bool),
}

impl Connection {
    /// A connection that has just been accepted.
    pub fn new(socket: Socket, session: Session) -> Self {
        Self {
            socket,
            session,
            parser: Parser::new(),
            input: Input::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            batch: Vec::new(),
            singly: 0,
            attempts: 0,
            protocol: Protocol::default(),
            watched: Vec::new(),
            output: Vec::new(),
            written: 0,
            is_flushing: false,
            has_ended: false,
            moved_at: Instant::now(),
            interest: (true, false),
        }
    }

    /// The socket, to be watched.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Reads what has arrived, and turns it into units.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn read(&mut self, scratch: &mut Vec<u8>, facts: &Facts) -> io::Result<()> {
        scratch.resize(READ_BYTES, 0);
        while self.wants_read() {
            match self.socket.read(scratch) {
                Ok(0) => self.has_ended = true,
                Ok(read) => {
                    self.moved_at = Instant::now();
                    self.input.push(&scratch[..read]);
                    self.parse(facts);
                    // Most often this was all. What is left is reported again.
                    if read < READ_BYTES {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.is_flushing = self.socket.flush()?;
        Ok(())
    }

    /// Turns bytes into units, as long as there is room for them.
    pub fn parse(&mut self, facts: &Facts) {
        while self.waiting_bytes < WAITING_BYTES && !self.session.closes {
            let limits = if self.session.is_admitted {
                Limits::ADMITTED
            } else {
                Limits::UNADMITTED
            };
            let before = self.waiting.len();
            match self.parser.next(&mut self.input, limits) {
                Ok(None) => return,
                Ok(Some(command)) => {
                    facts.figures.commands.add(1);
                    self.session.accept(command, facts, &mut self.waiting);
                }
                Err(error) => {
                    let text = format!("ERR {error}");
                    self.session
                        .reply(&mut self.waiting, |reply| reply.error(&text));
                    self.session.closes = true;
                }
            }
            let new = self.waiting.range(before..).map(Unit::bytes);
            self.waiting_bytes += new.sum::<usize>();
        }
    }

    /// Begins a batch of what waits, unless one is under way. Units that need no engine are
    /// answered here if nothing before them does. Returns whether there is a batch to submit.
    pub fn begin_batch(&mut self) -> bool {
        if !self.batch.is_empty() || self.unread_bytes() > UNREAD_BYTES {
            return false;
        }
        while let Some(unit) = self.waiting.pop_front_if(|unit| unit.is_local()) {
            self.waiting_bytes -= unit.bytes();
            self.singly = self.singly.saturating_sub(1);
            match unit {
                Unit::Literal(bytes) => self.output.extend(bytes),
                Unit::Protocol(protocol) => self.protocol = protocol,
                _ => self.watched.clear(),
            }
        }
        let (mut bytes, most) = (0, if self.singly > 0 { 1 } else { BATCH_UNITS });
        while self.batch.len() < most && bytes < BATCH_BYTES {
            let Some(unit) = self.waiting.pop_front() else {
                break;
            };
            // The first one goes whatever its length.
            if !self.batch.is_empty() && bytes + unit.bytes() > BATCH_BYTES {
                self.waiting.push_front(unit);
                break;
            }
            self.waiting_bytes -= unit.bytes();
            bytes += unit.bytes();
            self.batch.push(unit);
        }
        self.attempts = 0;
        !self.batch.is_empty()
    }

    /// Whether units wait that may be run now.
    pub fn has_work(&self) -> bool {
        self.batch.is_empty() && !self.waiting.is_empty() && self.unread_bytes() <= UNREAD_BYTES
    }

    /// The units of the batch under way.
    pub fn batch(&self) -> &[Unit] {
        &self.batch
    }

    /// Takes the outcome of the batch under way.
    pub fn finish_batch(&mut self, outcome: Outcome<'_>) {
        self.output.extend_from_slice(outcome.replies);
        self.watched = outcome.watched;
        let rest = self.batch.split_off(outcome.units.min(self.batch.len()));
        for unit in self.batch.drain(..) {
            self.singly = self.singly.saturating_sub(1);
            if let Some(protocol) = unit.chosen() {
                self.protocol = protocol;
            }
        }
        self.put_back(rest);
    }

    /// Answers the batch under way, which has failed, with an error for each of its units. If it
    /// had no effect and has several units, they are tried one by one instead, so that the one that
    /// fails leaves the others alone.
    pub fn fail_batch(&mut self, text: &str, had_no_effect: bool) {
        let units = std::mem::take(&mut self.batch);
        if had_no_effect && units.len() > 1 {
            self.singly = units.len();
            return self.put_back(units);
        }
        let mut replies = crate::reply::Reply::new(self.protocol);
        for unit in units {
            self.singly = self.singly.saturating_sub(1);
            if let Some(protocol) = unit.chosen() {
                replies.protocol = protocol;
                self.protocol = protocol;
            }
            match unit {
                Unit::Literal(bytes) => replies.raw(&bytes),
                Unit::Protocol(_) => {}
                Unit::Unwatch => self.watched.clear(),
                Unit::Exec(_) => {
                    self.watched.clear();
                    replies.error(text);
                }
                Unit::Command(_) | Unit::Watch(_) => replies.error(text),
            }
        }
        self.output.extend(replies.finish());
    }

    fn put_back(&mut self, units: Vec<Unit>) {
        for unit in units.into_iter().rev() {
            self.waiting_bytes += unit.bytes();
            self.waiting.push_front(unit);
        }
    }

    /// Writes replies, as much as the client takes.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn write(&mut self) -> io::Result<()> {
        while self.written < self.output.len() {
            match self.socket.write(&self.output[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.written += written;
                    self.moved_at = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
            // One long reply must not keep its memory for as long as the connection lives.
            self.output.shrink_to(READ_BYTES);
        }
        self.is_flushing = self.socket.flush()?;
        Ok(())
    }

    fn unread_bytes(&self) -> usize {
        self.output.len() - self.written
    }

    /// Whether bytes of the client are wanted. A client that sends without reading its replies is
    /// not read from, which the system makes it feel.
    pub fn wants_read(&self) -> bool {
        let has_room = self.waiting_bytes < WAITING_BYTES && self.unread_bytes() <= UNREAD_BYTES;
        has_room && !self.has_ended && !self.session.closes
    }

    /// Whether there is something to send.
    pub fn wants_write(&self) -> bool {
        self.unread_bytes() > 0 || self.is_flushing
    }

    /// Whether everything that the client has sent is answered, and the answers are sent.
    pub fn is_idle(&self) -> bool {
        self.batch.is_empty() && self.waiting.is_empty() && !self.wants_write()
    }

    /// Whether the connection is to be closed.
    pub fn is_over(&self) -> bool {
        (self.has_ended || self.session.closes) && self.is_idle()
    }

    /// Whether the client has let too much time pass.
    pub fn is_late(&self, now: Instant) -> bool {
        let is_stuck = self.wants_write() || self.parser.is_within(&self.input);
        // A batch under way is the engine's time, and not the client's.
        (self.batch.is_empty() && is_stuck && now.duration_since(self.moved_at) > PROGRESS)
            || (!self.session.is_admitted && now.duration_since(self.session.since) > ADMISSION)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use dyno_serve::{Registry, Token};

    use super::*;
    use crate::arguments::ArgumentsBuilder;
    use crate::figures::Figures;

    fn facts() -> Facts {
        Facts {
            token: Some(Token::new("0123456789abcdef").expect("a token")),
            durability: "memory".to_owned(),
            partitions: 1,
            port: 0,
            most_connections: 1,
            started: Instant::now(),
            figures: Figures::new(&Registry::new()).expect("names of their own"),
        }
    }

    fn reset(connection: &mut Connection, facts: &Facts) {
        let mut builder = ArgumentsBuilder::default();
        builder.push(b"reset");
        let units = &mut connection.waiting;
        connection.session.accept(builder.finish(), facts, units);
    }

    #[test]
    fn a_client_that_gives_its_admission_up_has_time_to_show_the_token_again() {
        const PAUSE: Duration = Duration::from_millis(20);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("its address");
        let _client = TcpStream::connect(address).expect("a connection");
        let (accepted, peer) = listener.accept().expect("the other end");
        let socket = Socket::new(accepted, None).expect("a socket");
        let facts = facts();
        let session = Session::new(1, peer.to_string(), &facts);
        let mut connection = Connection::new(socket, session);
        let late = Instant::now() + ADMISSION + PAUSE / 2;
        assert!(connection.is_late(late), "it has never shown the token");
        connection.session.is_admitted = true;
        assert!(!connection.is_late(late));
        thread::sleep(PAUSE);
        reset(&mut connection, &facts);
        assert!(!connection.session.is_admitted);
        assert!(!connection.is_late(late), "it was admitted until now");
        // Asking again without the token gives no further time.
        let late = connection.session.since + ADMISSION + PAUSE / 2;
        thread::sleep(PAUSE);
        reset(&mut connection, &facts);
        assert!(connection.is_late(late));
    }
}
