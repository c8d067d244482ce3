//! What a thread has to do with other processes of the database: messages for their partitions, stamps of oracles, and
//! where everybody is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dyno_net::{FrameRef, PortId};
use dyno_txn_api::{Code, Error, Result, Stamp};
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::work::Work;
use crate::error::bad_argument;
use crate::hello::{BETWEEN, MAP, MESSAGE, ORACLE, REFUSED, decode_refusal, read_between};
use crate::member::{Asker, Links, Map, Member, Want};
use crate::threads::PeerId;

/// One thread's.
pub(crate) struct Elsewhere {
    pub links: Links,
    asker: Asker,
    /// Partitions have read their logs and wait for a stamp above all that were given.
    recovering: bool,
    began: bool,
}

impl Elsewhere {
    pub fn new(member: Arc<Member>, thread: usize) -> Self {
        Self {
            asker: Asker::new(member.oracles.len()),
            links: Links::new(member, thread),
            recovering: true,
            began: false,
        }
    }
}

/// Whether a client's message needs a stamp of an oracle.
pub(crate) fn takes_stamp(to: PartitionId, message: &Message) -> bool {
    match message {
        Message::OneShot { stamp: None, .. } => true,
        Message::TakeStamps { .. } => to == ORACLE,
        _ => false,
    }
}

impl Work {
    pub fn is_recovering(&self) -> bool {
        self.elsewhere
            .as_ref()
            .is_some_and(|elsewhere| elsewhere.recovering)
    }

    pub fn waits_for_stamps(&self) -> bool {
        self.elsewhere
            .as_ref()
            .is_some_and(|elsewhere| elsewhere.asker.is_waiting())
    }

    /// A client's message waits for its stamp.
    pub fn want_stamp(&mut self, from: Address, to: PartitionId, message: Message) {
        let Some(elsewhere) = &mut self.elsewhere else {
            return;
        };
        if let Message::TakeStamps { ticket, count } = message
            && count != 1
        {
            let error = bad_argument("stamps are given to clients one at a time");
            let stamps = Message::Stamps {
                ticket,
                result: Err(error),
            };
            return self.say(from, ORACLE, &stamps);
        }
        let want = Want::Message(from, to, message);
        if let Some(want) = elsewhere.asker.want(self.now, want) {
            let error = Error::new(Code::Overloaded, "too many wait for stamps of the oracle");
            self.refuse_stamp(want, error);
        }
    }

    fn refuse_stamp(&mut self, want: Want, error: Error) {
        match want {
            Want::Message(from, to, Message::OneShot { ticket, .. }) => {
                let result = Err(error);
                self.say(from, to, &Message::Done { ticket, result });
            }
            Want::Message(from, _, Message::TakeStamps { ticket, .. }) => {
                let result = Err(error);
                self.say(from, ORACLE, &Message::Stamps { ticket, result });
            }
            Want::Message(..) | Want::Floor => {}
        }
    }

    fn say(&mut self, to: Address, from: PartitionId, message: &Message) {
        if let Address::Client(number) = to {
            self.answers.later(PortId::numbered(number), from, message);
        }
    }

    /// Calls oracles, asks them, and gives up on them. Whether there was something to do.
    pub fn step_elsewhere(&mut self) -> Result<bool> {
        let Some(elsewhere) = &mut self.elsewhere else {
            return Ok(false);
        };
        if !elsewhere.began {
            elsewhere.began = true;
            for oracle in 0..elsewhere.links.member.oracles.len() {
                let thread = &self.peer_threads[self.index];
                elsewhere
                    .links
                    .call(PeerId::Oracle(oracle), &self.shared.lifecycle, thread)?;
            }
            elsewhere.asker.want(self.now, Want::Floor);
        }
        if !elsewhere.asker.is_waiting() {
            return Ok(false);
        }
        let asked = elsewhere.asker.outgoing(self.now);
        let busy = asked.is_some();
        if let Some((oracle, ask)) = asked {
            match elsewhere.links.port(PeerId::Oracle(oracle)) {
                Some(port) => self.answers.later(port, ORACLE, &ask),
                None => elsewhere.asker.failed(self.now),
            }
        }
        for (want, error) in elsewhere.asker.give_up(self.now) {
            self.refuse_stamp(want, error);
        }
        Ok(busy)
    }

    /// A connection to another process is there.
    pub fn linked(&mut self, whom: PeerId, port: PortId) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.links.opened(whom, port);
            for (to, body) in elsewhere.links.unsent(whom) {
                self.answers.between_again(port, to, &body);
            }
        }
    }

    /// A connection has ended; one to an oracle is made again, others when they are needed.
    pub fn link_ended(&mut self, port: PortId) -> Result<()> {
        let Some(elsewhere) = &mut self.elsewhere else {
            return Ok(());
        };
        if let Some(whom @ PeerId::Oracle(oracle)) = elsewhere.links.lost(port) {
            elsewhere.asker.lost(self.now, oracle);
            let thread = &self.peer_threads[self.index];
            elsewhere.links.call(whom, &self.shared.lifecycle, thread)?;
        }
        Ok(())
    }

    /// A message for a partition of another process. Without a connection it waits for one.
    pub fn send_elsewhere(&mut self, from: Address, to: PartitionId, message: &Message) {
        let Some(elsewhere) = &mut self.elsewhere else {
            return;
        };
        let Some((part, thread)) = elsewhere.links.member.map().home(to) else {
            return;
        };
        let whom = PeerId::Worker {
            process: part,
            thread,
        };
        match elsewhere.links.port(whom) {
            Some(port) => self.answers.between(port, from, to, message),
            None => {
                elsewhere.links.keep(whom, from, to, message);
                let thread = &self.peer_threads[self.index];
                if let Err(error) = elsewhere.links.call(whom, &self.shared.lifecycle, thread) {
                    self.failed.get_or_insert(error);
                }
            }
        }
    }

    /// A partition's answer to an oracle.
    pub fn answer_oracle(&mut self, oracle: usize, of: PartitionId, message: &Message) {
        let links = self.elsewhere.as_ref().map(|elsewhere| &elsewhere.links);
        if let Some(port) = links.and_then(|links| links.port(PeerId::Oracle(oracle))) {
            self.answers
                .between(port, Address::Partition(of), ORACLE, message);
        }
    }

    /// What came on a connection that this thread made. An error ends it.
    pub fn hear_link(&mut self, whom: PeerId, frame: FrameRef<'_>) -> Result<()> {
        let PeerId::Oracle(oracle) = whom else {
            return match frame.head.verb {
                REFUSED => Err(decode_refusal(frame.body)),
                verb => Err(bad_argument(format!(
                    "verb {verb} on a connection that goes one way"
                ))),
            };
        };
        match frame.head.verb {
            MESSAGE => {
                if let Message::Stamps { ticket, result } = Message::decode(frame.body)? {
                    self.stamps_came(oracle, ticket, result);
                }
                Ok(())
            }
            BETWEEN => {
                let to = frame.head.request;
                if let (Address::Oracle(_), message @ Message::KeepBound { .. }) =
                    read_between(frame.body)?
                    && self.hosts(to)
                {
                    self.deliver(Address::Oracle(oracle as u32), to, message);
                }
                Ok(())
            }
            MAP => {
                if let Some(elsewhere) = &self.elsewhere {
                    elsewhere.links.member.learn(Map::decode(frame.body)?);
                }
                Ok(())
            }
            REFUSED => {
                let error = decode_refusal(frame.body);
                self.shared
                    .lifecycle
                    .note(format!("an oracle refuses this process: {error}"));
                Err(error)
            }
            verb => Err(bad_argument(format!("verb {verb} of an oracle"))),
        }
    }

    /// What another process says to a partition here.
    pub fn hear_member(&mut self, frame: FrameRef<'_>) -> Result<()> {
        let to = frame.head.request;
        if frame.head.verb != BETWEEN || !self.hosts(to) {
            return Err(bad_argument(
                "this connection brings messages for partitions of its thread",
            ));
        }
        match read_between(frame.body)? {
            (from @ Address::Partition(id), message) if !self.layout.is_here(id) => {
                self.deliver(from, to, message);
                Ok(())
            }
            _ => Err(bad_argument(
                "another process speaks for its own partitions alone",
            )),
        }
    }

    fn stamps_came(&mut self, oracle: usize, ticket: u64, result: Result<Stamp>) {
        let Some(elsewhere) = &mut self.elsewhere else {
            return;
        };
        for (want, stamp) in elsewhere.asker.answered(self.now, oracle, ticket, result) {
            match want {
                Want::Floor => self.recovered(stamp),
                Want::Message(from, _, Message::TakeStamps { ticket, .. }) => {
                    let result = Ok(stamp);
                    self.say(from, ORACLE, &Message::Stamps { ticket, result });
                }
                Want::Message(from, to, mut message) => {
                    if let Message::OneShot { stamp: place, .. } = &mut message {
                        *place = Some(stamp);
                    }
                    self.deliver(from, to, message);
                }
            }
        }
    }

    fn recovered(&mut self, floor: Stamp) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.recovering = false;
            elsewhere.links.member.begun.store(true, Ordering::Release);
        }
        if let Err(error) = self.finish_recovery(floor) {
            self.failed.get_or_insert(error);
        }
    }
}
