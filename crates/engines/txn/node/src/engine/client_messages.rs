//! Messages of clients on their way to a partition or to the oracle, and what holds them up: a
//! missing timestamp, or a store that is away.

use dyno_net::{Outbound, PortId};
use dyno_txn_api::{Code, Error, Operation, Request, Result};
use dyno_txn_core::is_direct;
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::last_timestamps::lacks_timestamp;
use super::pass::{Direct, Pass};
use super::peers::needs_oracle;
use crate::error::unavailable;
use crate::hello::ORACLE;
use crate::threads::Envelope;

impl Pass<'_> {
    /// Takes a client's message without decoding it, if it is a one-shot transaction that needs
    /// nothing but its partition. Returns false if the message has to be decoded.
    ///
    /// Whatever could hold a transaction up has to be looked for here, because bytes in the batch
    /// are run without further questions: an oracle elsewhere, a timestamp that may not be issued
    /// yet, and a store that is away.
    pub fn on_client_bytes(&mut self, port: PortId, to: PartitionId, bytes: &[u8]) -> bool {
        let remote = self.shared.remote.as_ref();
        let is_complete = remote.is_none_or(|remote| remote.is_complete());
        let is_local = self.peers.cluster.is_none() && to != ORACLE;
        let is_ready = self.shared.oracle.is_ready(self.shard.wall());
        if !(is_complete && is_local && is_ready && is_direct(bytes)) {
            return false;
        }
        let from = Address::Client(port.number());
        self.clients.batch.push_bytes(from, to, bytes);
        self.handle_full_batch();
        true
    }

    /// Takes a client's message. Answers that are ready at once go straight into `out`, which is
    /// the outbox of this client's connection.
    pub fn on_client_message(
        &mut self,
        port: PortId,
        to: PartitionId,
        mut message: Message,
        out: &mut Outbound,
    ) {
        let from = Address::Client(port.number());
        if matches!(message, Message::TakeTimestamps { .. }) {
            self.clients.last_timestamps.forget(port);
        } else if lacks_timestamp(&message) {
            // The request for its timestamp came before it on this connection. If anything waits
            // for timestamps, that request may be among it, so this message waits behind it. Filled
            // in now, it would keep 0 and be refused, although its client did nothing wrong.
            if !self.clients.awaiting_timestamp.is_empty() {
                return self.await_timestamp(Envelope { from, to, message });
            }
            self.clients.last_timestamps.fill_in(port, &mut message);
        }
        if let Some(refusal) = self.refuse(&message) {
            return self.clients.answers.send_now(port, to, &refusal, out);
        }
        if let Some(cluster) = &mut self.peers.cluster
            && needs_oracle(to, &message)
        {
            let envelope = Envelope { from, to, message };
            let answers = &mut self.clients.answers;
            return cluster.want_timestamp(self.shard.now, envelope, answers);
        }
        if to == ORACLE {
            return self.on_timestamp_request(port, message, out);
        }
        if needs_timestamp(&message) && !self.shared.oracle.is_ready(self.shard.wall()) {
            return self.await_timestamp(Envelope { from, to, message });
        }
        let envelope = Envelope { from, to, message };
        if matches!(envelope.message, Message::OneShot { .. }) {
            self.clients.batch.push(envelope);
            return self.handle_full_batch();
        }
        // Messages of interactive transactions are not batched: few come at once, and each has a
        // client that waits for it, so the answer goes out with this very frame.
        self.shard.handle(envelope);
        self.dispatch(to, Some(Direct { port, out }));
    }

    fn handle_full_batch(&mut self) {
        if self.clients.batch.is_full() {
            self.handle_batch();
        }
    }

    fn await_timestamp(&mut self, envelope: Envelope) {
        self.clients.awaiting_timestamp.push_back(envelope);
    }

    /// The refusal of a message that needs durability while a store is away or is being brought up
    /// to date, and of a read if timestamps have run out with it.
    fn refuse(&self, message: &Message) -> Option<Message> {
        let remote = self.shared.remote.as_ref()?;
        if remote.is_complete() {
            return None;
        }
        let note = self.shared.lifecycle.last_note().unwrap_or_default();
        let text = format!("a process that keeps the log is away or is being sent it anew: {note}");
        let error = unavailable(text);
        // In a cluster the oracle is elsewhere, and does not depend on this process's stores.
        let has_timestamps =
            self.peers.cluster.is_some() || self.shared.oracle.is_ready(self.shard.wall());
        refusal_for(message, has_timestamps, error)
    }

    fn on_timestamp_request(&mut self, port: PortId, message: Message, out: &mut Outbound) {
        let Message::TakeTimestamps { ticket, count } = message else {
            return;
        };
        if count == 1 && !self.shared.oracle.is_ready(self.shard.wall()) {
            return self.await_timestamp(Envelope {
                from: Address::Client(port.number()),
                to: ORACLE,
                message,
            });
        }
        let answer = self.issue_timestamp(port, ticket, count);
        self.clients.answers.send_now(port, ORACLE, &answer, out);
    }

    fn issue_timestamp(&mut self, port: PortId, ticket: u64, count: u32) -> Message {
        let result = match count {
            1 => {
                let timestamp = self.shared.oracle.clock.issue(self.shard.wall());
                let none = "no timestamp can be issued now: begin again";
                timestamp.ok_or_else(|| Error::new(Code::Unavailable, none))
            }
            _ => {
                let text = "this oracle issues one timestamp at a time";
                Err(Error::new(Code::NotSupported, text))
            }
        };
        if let Ok(timestamp) = result {
            self.clients.last_timestamps.remember(port, timestamp);
        }
        Message::Timestamps { ticket, result }
    }

    /// Goes on with messages that needed a timestamp, once the oracle may issue some. Returns
    /// whether it did.
    pub fn retry_awaiting(&mut self) -> Result<bool> {
        if self.clients.awaiting_timestamp.is_empty() {
            return Ok(false);
        }
        // Asked for here too, because no client is read from meanwhile: nothing else on this thread
        // would have the bound extended, and the wait would never end.
        self.ask_for_bound();
        if !self.shared.oracle.is_ready(self.shard.wall()) {
            return Ok(false);
        }
        // In the order of arrival, so that a client's operations find the timestamp that its
        // earlier request has just been issued.
        while let Some(mut envelope) = self.clients.awaiting_timestamp.pop_front() {
            let Address::Client(number) = envelope.from else {
                self.deliver(envelope);
                continue;
            };
            let port = PortId::numbered(number);
            match envelope.message {
                Message::TakeTimestamps { ticket, count } if envelope.to == ORACLE => {
                    let answer = self.issue_timestamp(port, ticket, count);
                    self.clients.answers.queue(port, ORACLE, &answer);
                }
                _ => {
                    let last = &self.clients.last_timestamps;
                    last.fill_in(port, &mut envelope.message);
                    self.deliver(envelope);
                }
            }
        }
        Ok(true)
    }
}

/// Whether it is a one-shot transaction that the partition has to give a timestamp.
fn needs_timestamp(message: &Message) -> bool {
    matches!(
        message,
        Message::OneShot {
            timestamp: None,
            ..
        }
    )
}

/// The refusal for a message that needs durability while a log store is down. Commits are never
/// refused here, because the transaction may already have been decided.
fn refusal_for(message: &Message, has_timestamps: bool, error: Error) -> Option<Message> {
    let writes = |operations: &[Operation]| operations.iter().any(Operation::is_write);
    match message {
        Message::OneShot {
            ticket, request, ..
        } => {
            let reads_only = match request {
                Request::Operations(operations) => !writes(operations),
                // What a procedure does is known only when it has run.
                Request::Call { .. } => false,
            };
            let (ticket, result) = (*ticket, Err(error));
            (!reads_only || !has_timestamps).then_some(Message::Done { ticket, result })
        }
        Message::Execute {
            head,
            batch,
            operations,
            ..
        } if writes(operations) => Some(Message::Executed {
            timestamp: head.timestamp,
            batch: *batch,
            result: Err(error),
        }),
        Message::CreateTable { ticket, .. } => Some(Message::Created {
            ticket: *ticket,
            result: Err(error),
        }),
        Message::TakeTimestamps { ticket, .. } if !has_timestamps => Some(Message::Timestamps {
            ticket: *ticket,
            result: Err(error),
        }),
        _ => None,
    }
}
