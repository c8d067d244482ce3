//! Messages to clients.

use std::collections::VecDeque;
use std::ops::Range;

use dyno_net::{Head, Outbound, PortId, Reactor, SendError};
use dyno_txn_api::{Code, Error};
use dyno_txn_core::message::{Address, Message};

use crate::hello::{BETWEEN, MESSAGE, MOST_BODY_BYTES, encode_between};

/// Answers that wait for their connection's turn. They are bounded by what clients have under way: a
/// connection that does not read is not read from.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    bytes: Vec<u8>,
    list: Vec<(PortId, Head, Range<usize>)>,
    /// For connections whose outbox was full.
    late: VecDeque<(PortId, Head, Vec<u8>)>,
    scratch: Vec<u8>,
    /// Connections to other processes that have ended: the reactor does not tell of those on which nothing came.
    pub ended: Vec<PortId>,
}

impl Answers {
    /// Into the outbox of the connection whose turn it is.
    pub fn now(&mut self, port: PortId, from: u32, message: &Message, out: &mut Outbound) {
        self.scratch.clear();
        encode(message, &mut self.scratch);
        // An end is told of by the reactor.
        if let Err(SendError::Full { .. }) = out.send(head(from), &[&self.scratch]) {
            self.late
                .push_back((port, head(from), self.scratch.clone()));
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
        let head = Head {
            verb: BETWEEN,
            flags: 0,
            request: to,
        };
        self.list.push((port, head, start..self.bytes.len()));
    }

    /// Hands over all that waits.
    pub fn send(&mut self, reactor: &mut Reactor) {
        for _ in 0..self.late.len() {
            let Some((port, head, bytes)) = self.late.pop_front() else {
                break;
            };
            if let Err(SendError::Full { .. }) = reactor.send(port, head, &[&bytes]) {
                self.late.push_back((port, head, bytes));
            }
        }
        for (port, head, range) in self.list.drain(..) {
            let bytes = &self.bytes[range];
            match reactor.send(port, head, &[bytes]) {
                Err(SendError::Full { .. }) if head.verb == MESSAGE => {
                    self.late.push_back((port, head, bytes.to_vec()));
                }
                Err(SendError::Ended) if head.verb == BETWEEN => self.ended.push(port),
                // What is lost between processes is sent again; one that does not read gets no more.
                Ok(()) | Err(_) => {}
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(MOST_BODY_BYTES);
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
