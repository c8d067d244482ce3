//! Frames to clients and to other processes, on their way to the outboxes of their connections.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use dyno_net::{Head, Outbound, PortId, Reactor, SendError};
use dyno_txn_api::{Code, Error};
use dyno_txn_core::Answers as EncodedAnswers;
use dyno_txn_core::message::{Address, Message};

use crate::hello::{MESSAGE, MOST_BODY_BYTES, PEER_MESSAGE, encode_peer_message};

/// Bytes that wait for other processes whose connections are full, at most.
const LATE_PEER_MAX: usize = 64 << 20;

/// Bytes that wait for one client whose connection is full, at most. A client that has asked for
/// more than this without reading it is disconnected. A connection within the process is never
/// full.
const LATE_MAX: usize = 4 * MOST_BODY_BYTES;

/// Frames that wait for the end of the pass, or for room in an outbox. They are bounded by what
/// clients have under way, because a connection that does not read is not read from, and by
/// [`LATE_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The bodies of `list`, one after the other.
    bytes: Vec<u8>,
    list: Vec<Queued>,
    /// For connections whose outbox was full.
    late: VecDeque<Late>,
    /// Of the late ones, those to other processes.
    late_peer_bytes: usize,
    /// Of the late ones, those to each client.
    late_bytes: HashMap<PortId, usize>,
    scratch: Vec<u8>,
    /// Connections to other processes that have ended. The reactor does not report the end of a
    /// connection on which nothing has arrived.
    pub ended: Vec<PortId>,
    /// Clients that do not read what they have asked for: their connections are to be closed.
    pub unread: Vec<PortId>,
}

#[derive(Debug)]
struct Queued {
    port: PortId,
    head: Head,
    body: Range<usize>,
}

#[derive(Debug)]
struct Late {
    port: PortId,
    head: Head,
    body: Vec<u8>,
}

impl Answers {
    /// Puts a message into the outbox of the connection that is being handled.
    pub fn send_now(&mut self, port: PortId, from: u32, message: &Message, out: &mut Outbound) {
        self.scratch.clear();
        encode(message, &mut self.scratch);
        // If the connection has ended, the reactor will say so.
        if let Err(SendError::Full { .. }) = out.send(message_head(from), &[&self.scratch]) {
            self.keep(port, message_head(from), self.scratch.clone());
        }
    }

    /// Has a message go out with the next [`Answers::send`].
    pub fn queue(&mut self, port: PortId, from: u32, message: &Message) {
        let start = self.bytes.len();
        encode(message, &mut self.bytes);
        self.push(port, message_head(from), start);
    }

    /// The same, for a message to another process.
    pub fn queue_for_process(&mut self, port: PortId, from: Address, to: u32, message: &Message) {
        let start = self.bytes.len();
        encode_peer_message(from, message, &mut self.bytes);
        self.push(port, peer_head(to), start);
    }

    /// The same, for one that was encoded while the connection was being made.
    pub fn queue_encoded(&mut self, port: PortId, to: u32, body: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(body);
        self.push(port, peer_head(to), start);
    }

    fn push(&mut self, port: PortId, head: Head, start: usize) {
        let body = start..self.bytes.len();
        self.list.push(Queued { port, head, body });
    }

    /// Sends the answers that partitions have encoded themselves.
    pub fn send_encoded(&mut self, answers: &mut EncodedAnswers, reactor: &mut Reactor) {
        for (client, from, bytes) in answers.iter() {
            let (port, head) = (PortId::numbered(client), message_head(from));
            if bytes.len() > MOST_BODY_BYTES {
                // Queued as a message, which is replaced by one that says so and fits.
                if let Ok(message) = Message::decode(bytes) {
                    self.queue(port, from, &message);
                }
                continue;
            }
            if let Err(SendError::Full { .. }) = reactor.send(port, head, &[bytes]) {
                self.keep(port, head, bytes.to_vec());
            }
        }
        answers.clear(MOST_BODY_BYTES);
    }

    /// Sends everything that waits.
    pub fn send(&mut self, reactor: &mut Reactor) {
        // The late ones go first, so that the frames of a connection stay in their order. `keep`
        // counts those again that still find no room.
        self.late_bytes.clear();
        self.late_peer_bytes = 0;
        for Late { port, head, body } in std::mem::take(&mut self.late) {
            if !self.try_send(reactor, port, head, &body) {
                self.keep(port, head, body);
            }
        }
        let (mut list, bytes) = (
            std::mem::take(&mut self.list),
            std::mem::take(&mut self.bytes),
        );
        for Queued { port, head, body } in list.drain(..) {
            let body = &bytes[body];
            if !self.try_send(reactor, port, head, body) {
                self.keep(port, head, body.to_vec());
            }
        }
        (self.list, self.bytes) = (list, bytes);
        self.bytes.clear();
        self.bytes.shrink_to(MOST_BODY_BYTES);
    }

    /// Returns false if the outbox is full. A frame for a connection that has ended is dropped.
    fn try_send(&mut self, reactor: &mut Reactor, port: PortId, head: Head, body: &[u8]) -> bool {
        match reactor.send(port, head, &[body]) {
            Err(SendError::Full { .. }) => return false,
            Err(SendError::Ended) if head.verb == PEER_MESSAGE => self.ended.push(port),
            Ok(()) | Err(_) => {}
        }
        true
    }

    /// Keeps a frame for the next time, unless its receiver has let too much pile up.
    fn keep(&mut self, port: PortId, head: Head, body: Vec<u8>) {
        if head.verb == MESSAGE {
            let late = self.late_bytes.entry(port).or_default();
            *late += body.len();
            if *late > LATE_MAX {
                // What this client is not told may have been done, as when its connection breaks.
                self.unread.push(port);
                return;
            }
        }
        if head.verb == PEER_MESSAGE {
            // A message that is lost between processes costs its transaction no more than the time
            // until its deadline, so a process that does not read is not waited for.
            if self.late_peer_bytes + body.len() > LATE_PEER_MAX {
                return;
            }
            self.late_peer_bytes += body.len();
        }
        self.late.push_back(Late { port, head, body });
    }
}

fn peer_head(to: u32) -> Head {
    Head {
        verb: PEER_MESSAGE,
        flags: 0,
        request: to,
    }
}

fn message_head(from: u32) -> Head {
    Head {
        verb: MESSAGE,
        flags: 0,
        request: from,
    }
}

/// Encodes the message or, if it is longer than a client accepts, one that says so. What was
/// committed stays committed then, although its answer does not fit, so the client must not be told
/// that it failed.
fn encode(message: &Message, out: &mut Vec<u8>) {
    let start = out.len();
    message.encode(out);
    if out.len() - start <= MOST_BODY_BYTES {
        return;
    }
    let text = format!("an answer of more than {MOST_BODY_BYTES} bytes: ask for less at once");
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
        Message::Executed {
            timestamp, batch, ..
        } => {
            let result = Err(Error::new(Code::TooLarge, text));
            Message::Executed {
                timestamp: *timestamp,
                batch: *batch,
                result,
            }
        }
        _ => return,
    };
    out.truncate(start);
    instead.encode(out);
}
