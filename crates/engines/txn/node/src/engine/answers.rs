//! Messages to clients.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use dyno_net::{Head, Outbound, PortId, Reactor, SendError};
use dyno_txn_api::{Code, Error};
use dyno_txn_core::Answers as InBytes;
use dyno_txn_core::message::{Address, Message};

use crate::hello::{BETWEEN, MESSAGE, MOST_BODY_BYTES, encode_between};

/// What waits for other processes whose connections are full, at most; bytes.
const LATE_BETWEEN_MAX: usize = 64 << 20;

/// What waits for one client whose connection is full, at most; bytes. A client that has asked for more at once than
/// it reads is hung up on.
const LATE_MAX: usize = 4 * MOST_BODY_BYTES;

/// Answers that wait for their connection's turn. They are bounded by what clients have under way, as a connection
/// that does not read is not read from, and by [`LATE_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Answers {
    bytes: Vec<u8>,
    list: Vec<(PortId, Head, Range<usize>)>,
    /// For connections whose outbox was full.
    late: VecDeque<(PortId, Head, Vec<u8>)>,
    /// Of them, those to other processes.
    late_between_bytes: usize,
    /// Of them, those to each client.
    late_bytes: HashMap<PortId, usize>,
    scratch: Vec<u8>,
    /// Connections to other processes that have ended: the reactor does not tell of those on which nothing came.
    pub ended: Vec<PortId>,
    /// Clients that do not read what they have asked for: their connections are to be closed.
    pub unread: Vec<PortId>,
}

impl Answers {
    /// Into the outbox of the connection whose turn it is.
    pub fn now(&mut self, port: PortId, from: u32, message: &Message, out: &mut Outbound) {
        self.scratch.clear();
        encode(message, &mut self.scratch);
        // An end is told of by the reactor.
        if let Err(SendError::Full { .. }) = out.send(head(from), &[&self.scratch]) {
            self.keep(port, head(from), self.scratch.clone());
        }
    }

    /// With the next [`Answers::send`].
    pub fn later(&mut self, port: PortId, from: u32, message: &Message) {
        let start = self.bytes.len();
        encode(message, &mut self.bytes);
        self.list.push((port, head(from), start..self.bytes.len()));
    }

    /// The same, between processes.
    pub fn between(&mut self, port: PortId, from: Address, to: u32, message: &Message) {
        let start = self.bytes.len();
        encode_between(from, message, &mut self.bytes);
        self.list
            .push((port, between_to(to), start..self.bytes.len()));
    }

    /// The same, of what was encoded while the connection was made.
    pub fn between_again(&mut self, port: PortId, to: u32, body: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(body);
        self.list
            .push((port, between_to(to), start..self.bytes.len()));
    }

    /// Hands over what partitions have answered in bytes.
    pub fn send_bytes(&mut self, answers: &mut InBytes, reactor: &mut Reactor) {
        for (client, from, bytes) in answers.iter() {
            let (port, head) = (PortId::numbered(client), head(from));
            if bytes.len() > MOST_BODY_BYTES {
                // Said in a way that fits, with the next pass.
                if let Ok(message) = Message::decode(bytes) {
                    self.later(port, from, &message);
                }
                continue;
            }
            // An end is told of by the reactor.
            if let Err(SendError::Full { .. }) = reactor.send(port, head, &[bytes]) {
                self.keep(port, head, bytes.to_vec());
            }
        }
        answers.clear(MOST_BODY_BYTES);
    }

    /// Hands over all that waits.
    pub fn send(&mut self, reactor: &mut Reactor) {
        // Counted anew from what still finds no room.
        self.late_bytes.clear();
        for _ in 0..self.late.len() {
            let Some((port, head, bytes)) = self.late.pop_front() else {
                break;
            };
            if head.verb == BETWEEN {
                self.late_between_bytes -= bytes.len();
            }
            match reactor.send(port, head, &[&bytes]) {
                Err(SendError::Full { .. }) => self.keep(port, head, bytes),
                Err(SendError::Ended) if head.verb == BETWEEN => self.ended.push(port),
                Ok(()) | Err(_) => {}
            }
        }
        let mut list = std::mem::take(&mut self.list);
        for (port, head, range) in list.drain(..) {
            let bytes = &self.bytes[range];
            match reactor.send(port, head, &[bytes]) {
                Err(SendError::Full { .. }) => {
                    let bytes = bytes.to_vec();
                    self.keep(port, head, bytes);
                }
                Err(SendError::Ended) if head.verb == BETWEEN => self.ended.push(port),
                Ok(()) | Err(_) => {}
            }
        }
        self.list = list;
        self.bytes.clear();
        self.bytes.shrink_to(MOST_BODY_BYTES);
    }
}

impl Answers {
    /// For the next time. Another process that does not read gets no more after a while: what is lost between
    /// processes costs its transaction the time that it has.
    fn keep(&mut self, port: PortId, head: Head, bytes: Vec<u8>) {
        if head.verb == MESSAGE {
            let late = self.late_bytes.entry(port).or_default();
            *late += bytes.len();
            if *late > LATE_MAX {
                // It asks and does not read. What it is not told may have been done, as when its connection breaks.
                self.unread.push(port);
                return;
            }
        }
        if head.verb == BETWEEN {
            if self.late_between_bytes + bytes.len() > LATE_BETWEEN_MAX {
                return;
            }
            self.late_between_bytes += bytes.len();
        }
        self.late.push_back((port, head, bytes));
    }
}

fn between_to(to: u32) -> Head {
    Head {
        verb: BETWEEN,
        flags: 0,
        request: to,
    }
}

fn head(from: u32) -> Head {
    Head {
        verb: MESSAGE,
        flags: 0,
        request: from,
    }
}

/// The message, or, where it is longer than a client takes, one that says so.
fn encode(message: &Message, out: &mut Vec<u8>) {
    let start = out.len();
    message.encode(out);
    if out.len() - start <= MOST_BODY_BYTES {
        return;
    }
    let text = format!("an answer of more than {MOST_BODY_BYTES} bytes: ask for less at once");
    // What was committed is committed: only its answer does not fit.
    let instead = match message {
        Message::Done {
            ticket,
            result: Ok(_),
        } => {
            let error = Error::new(Code::OutcomeUnknown, format!("committed, but {text}"));
            Message::Done {
                ticket: *ticket,
                result: Err(error),
            }
        }
        Message::Executed { stamp, batch, .. } => {
            let result = Err(Error::new(Code::TooLarge, text));
            Message::Executed {
                stamp: *stamp,
                batch: *batch,
                result,
            }
        }
        _ => return,
    };
    out.truncate(start);
    instead.encode(out);
}
