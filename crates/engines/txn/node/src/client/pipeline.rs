//! Many one-shots under way on one thread's connections.

use std::collections::VecDeque;
use std::time::Duration;

use dyno_net::PortId;
use dyno_txn_api::{Code, Committed, Error, Options, Pipeline, Request, Result};
use dyno_txn_core::message::Message;

use super::node::{Node, unanswered, until};
use super::session::Session;
use crate::error::bad_argument;

/// Requests under way at most.
const WINDOW_MAX: usize = 1 << 20;
/// Bits of a ticket that say where its request is kept.
const PLACE_BITS: u32 = 20;
/// Requests that are sent together at most, before they go out and answers are taken in.
const TOGETHER: u32 = 32;
/// How often it is looked for requests that are late.
const LOOK_NS: u64 = 50_000_000;

/// A request under way.
struct Sent {
    ticket: u64,
    /// The caller's own number.
    number: u64,
    port: Option<PortId>,
    until: u64,
}

pub(crate) struct NodePipeline<'a> {
    node: &'a Node,
    session: Option<Session>,
    options: Options,
    window: usize,
    sent: Vec<Option<Sent>>,
    free: Vec<usize>,
    count: usize,
    done: VecDeque<(u64, Result<Committed>)>,
    unflushed: u32,
    losses: u64,
    next_look: u64,
}

impl<'a> NodePipeline<'a> {
    pub fn new(node: &'a Node, window: usize, options: &Options) -> Result<Self> {
        if !(1..=WINDOW_MAX).contains(&window) {
            return Err(bad_argument(format!(
                "a window of {window} requests: 1 to {WINDOW_MAX}"
            )));
        }
        let session = node.session()?;
        Ok(Self {
            node,
            losses: session.losses,
            next_look: session.now() + LOOK_NS,
            session: Some(session),
            options: options.clone(),
            window,
            sent: Vec::new(),
            free: Vec::new(),
            count: 0,
            done: VecDeque::new(),
            unflushed: 0,
        })
    }

    /// The session; it is there until this is dropped.
    fn session(&mut self) -> Result<&mut Session> {
        let gone = || Error::new(Code::Finished, "the pipeline is over");
        self.session.as_mut().ok_or_else(gone)
    }

    fn take_in(&mut self) -> Result<()> {
        while let Some((_, message)) = self.session()?.next() {
            let Message::Done { ticket, result } = message else {
                continue;
            };
            let place = (ticket & ((1 << PLACE_BITS) - 1)) as usize;
            let known = self.sent.get_mut(place);
            let Some(sent) = known.and_then(|sent| sent.take_if(|sent| sent.ticket == ticket))
            else {
                continue;
            };
            self.free.push(place);
            self.count -= 1;
            self.done.push_back((sent.number, result));
        }
        let session = self.session()?;
        let (now, losses) = (session.now(), session.losses);
        if losses != self.losses || now >= self.next_look {
            self.losses = losses;
            self.next_look = now + LOOK_NS;
            self.give_up(now)?;
        }
        Ok(())
    }

    /// Those whose connection has ended, or whose time is over.
    fn give_up(&mut self, now: u64) -> Result<()> {
        let refusal = self.session()?.refusal();
        for place in 0..self.sent.len() {
            let Some(sent) = &self.sent[place] else {
                continue;
            };
            let session = self.session.as_ref();
            let lives = sent
                .port
                .is_some_and(|port| session.is_some_and(|s| s.lives(port)));
            let error = match (lives, now >= sent.until) {
                (true, false) => continue,
                (false, _) => unanswered(refusal.clone(), "the connection ended before its answer"),
                (true, true) => unanswered(None, "no answer came in time"),
            };
            self.done.push_back((sent.number, Err(error)));
            self.sent[place] = None;
            self.free.push(place);
            self.count -= 1;
        }
        Ok(())
    }

    fn wait(&mut self, until: u64) -> Result<bool> {
        self.unflushed = 0;
        let until = until.min(self.next_look);
        let came = self.session()?.wait(until)?;
        self.take_in()?;
        Ok(came)
    }
}

impl Pipeline for NodePipeline<'_> {
    fn submit(&mut self, ticket: u64, request: Request) -> Result<()> {
        while self.count >= self.window {
            self.wait(u64::MAX)?;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.sent.push(None);
            self.sent.len() - 1
        });
        let number = ticket;
        let options = self.options.clone();
        let node = self.node;
        let session = self.session()?;
        let ticket = session.ticket() << PLACE_BITS | place as u64;
        let sent = node
            .one_shot(ticket, request, &options)
            .and_then(|(to, message)| {
                session.send(to, &message)?;
                Ok(Sent {
                    ticket,
                    number,
                    port: session.port_of(to),
                    until: until(session.now(), &options),
                })
            });
        match sent {
            Ok(sent) => self.sent[place] = Some(sent),
            Err(error) => {
                self.free.push(place);
                return Err(error);
            }
        }
        self.count += 1;
        self.unflushed += 1;
        if self.unflushed >= TOGETHER {
            self.unflushed = 0;
            self.session()?.flush()?;
            self.take_in()?;
        }
        Ok(())
    }

    fn next(&mut self, wait: Duration) -> Option<(u64, Result<Committed>)> {
        if let Some(done) = self.done.pop_front() {
            return Some(done);
        }
        let now = self.session.as_ref()?.now();
        let until = now.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        while self.count > 0 && self.done.is_empty() {
            // A connection that cannot be polled is one that has ended; its requests say so.
            let waited = self.wait(until);
            let now = self.session.as_ref()?.now();
            if waited.is_err() {
                self.give_up(u64::MAX).ok()?;
            } else if now >= until {
                break;
            }
        }
        self.done.pop_front()
    }

    fn outstanding(&self) -> usize {
        self.count + self.done.len()
    }
}

impl Drop for NodePipeline<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.node.give_back(session);
        }
    }
}
