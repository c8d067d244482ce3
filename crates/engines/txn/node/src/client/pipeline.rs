//! Many one-shot transactions under way on one thread's connections.

use std::collections::VecDeque;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use dyno_net::PortId;
use dyno_txn_api::{Code, Committed, Error, Options, Pipeline, Request, Result};
use dyno_txn_core::message::Message;

use super::node::{Node, gives_up_at, unanswered};
use super::session::Session;
use crate::error::bad_argument;

/// Requests under way at most.
const WINDOW_MAX: usize = 1 << 20;
/// Bits of a ticket that are the slot of its request.
const SLOT_BITS: u32 = 20;
/// Requests that are collected before they are written and answers are read.
const FLUSH_EVERY: u32 = 32;
/// How often late requests are looked for.
const EXPIRE_EVERY_NS: u64 = 50_000_000;

fn gone() -> Error {
    Error::new(Code::Finished, "the pipeline is over")
}

/// A request under way.
struct InFlight {
    ticket: u64,
    /// The caller's own ticket.
    caller_ticket: u64,
    port: Option<PortId>,
    gives_up_at: u64,
}

/// The node is borrowed or owned.
pub(crate) struct NodePipeline<N: Deref<Target = Node>> {
    node: N,
    /// `None` only while this is dropped.
    session: Option<Session>,
    options: Options,
    /// Requests under way at most.
    window: usize,
    /// By slot.
    in_flight: Vec<Option<InFlight>>,
    free: Vec<usize>,
    /// Requests under way.
    count: usize,
    /// Results that the caller has not fetched, by its tickets.
    done: VecDeque<(u64, Result<Committed>)>,
    unflushed: u32,
    /// Those of the session that have been looked at.
    losses: u64,
    next_expiry: u64,
    /// Whether the session's waits end with a descriptor of the caller.
    is_watching: bool,
}

impl<N: Deref<Target = Node>> NodePipeline<N> {
    pub fn new(node: N, window: usize, options: &Options) -> Result<Self> {
        if !(1..=WINDOW_MAX).contains(&window) {
            return Err(bad_argument(format!(
                "a window of {window} requests: it must be from 1 to {WINDOW_MAX}"
            )));
        }
        let session = node.session()?;
        Ok(Self {
            losses: session.losses,
            next_expiry: session.now() + EXPIRE_EVERY_NS,
            node,
            session: Some(session),
            options: options.clone(),
            window,
            in_flight: Vec::new(),
            free: Vec::new(),
            count: 0,
            done: VecDeque::new(),
            unflushed: 0,
            is_watching: false,
        })
    }

    fn session(&mut self) -> Result<&mut Session> {
        self.session.as_mut().ok_or_else(gone)
    }

    /// Takes the answers that have arrived.
    fn drain(&mut self) -> Result<()> {
        while let Some((_, message)) = self.session()?.next() {
            let Message::Done { ticket, result } = message else {
                continue;
            };
            // The slot may belong to a later request already, because this one was given up and its
            // answer comes too late. The ticket tells them apart: each is used once.
            let slot = (ticket & ((1 << SLOT_BITS) - 1)) as usize;
            let found = self.in_flight.get_mut(slot);
            let found = found.and_then(|request| request.take_if(|it| it.ticket == ticket));
            let Some(request) = found else {
                continue;
            };
            self.free.push(slot);
            self.count -= 1;
            self.done.push_back((request.caller_ticket, result));
        }
        let session = self.session()?;
        let (now, losses) = (session.now(), session.losses);
        if losses != self.losses || now >= self.next_expiry {
            self.losses = losses;
            self.next_expiry = now + EXPIRE_EVERY_NS;
            self.expire(now)?;
        }
        Ok(())
    }

    /// Gives up requests whose connection has ended or whose time is over. Their outcome is not
    /// known: an engine that read them before its connection broke has carried them out.
    fn expire(&mut self, now: u64) -> Result<()> {
        let refusal = self.session()?.refusal();
        for slot in 0..self.in_flight.len() {
            let Some(request) = &self.in_flight[slot] else {
                continue;
            };
            let session = self.session.as_ref();
            let is_open = request
                .port
                .is_some_and(|port| session.is_some_and(|session| session.is_open(port)));
            let error = match (is_open, now >= request.gives_up_at) {
                (true, false) => continue,
                (false, _) => unanswered(refusal.clone(), "the connection ended before its answer"),
                (true, true) => unanswered(None, "no answer came in time"),
            };
            self.done.push_back((request.caller_ticket, Err(error)));
            self.in_flight[slot] = None;
            self.free.push(slot);
            self.count -= 1;
        }
        Ok(())
    }

    /// Waits for an answer, at most until `until` or the next look for late requests.
    fn wait(&mut self, until: u64) -> Result<bool> {
        self.unflushed = 0;
        let until = until.min(self.next_expiry);
        let arrived = self.session()?.wait(until)?;
        self.drain()?;
        Ok(arrived)
    }
}

impl<N: Deref<Target = Node>> Pipeline for NodePipeline<N> {
    fn submit(&mut self, ticket: u64, request: Request) -> Result<()> {
        // A caller that is faster than the engine is held up here, so what is under way stays
        // bounded.
        while self.count >= self.window {
            self.wait(u64::MAX)?;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        let caller_ticket = ticket;
        let options = self.options.clone();
        let session = self.session.as_mut().ok_or_else(gone)?;
        let ticket = session.ticket() << SLOT_BITS | slot as u64;
        let sent = self
            .node
            .one_shot(ticket, request, &options)
            .and_then(|(to, message)| {
                session.send(to, &message)?;
                Ok(InFlight {
                    ticket,
                    caller_ticket,
                    port: session.port_for(to),
                    gives_up_at: gives_up_at(session.now(), &options),
                })
            });
        match sent {
            Ok(request) => self.in_flight[slot] = Some(request),
            // It did not go out, so the caller may submit it again.
            Err(error) => {
                self.free.push(slot);
                return Err(error);
            }
        }
        self.count += 1;
        self.unflushed += 1;
        if self.unflushed >= FLUSH_EVERY {
            self.unflushed = 0;
            self.session()?.flush()?;
            self.drain()?;
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
            // If the connections cannot even be polled, no answer will come on any of them: all
            // requests are given up, whatever time they have left.
            let waited = self.wait(until);
            let now = self.session.as_ref()?.now();
            if waited.is_err() {
                self.expire(u64::MAX).ok()?;
            } else if now >= until || self.session.as_mut()?.take_woken() {
                break;
            }
        }
        self.done.pop_front()
    }

    fn outstanding(&self) -> usize {
        self.count + self.done.len()
    }

    fn wake_on(&mut self, descriptor: BorrowedFd<'_>) -> Result<()> {
        self.is_watching = true;
        self.session()?.wake_on(descriptor)
    }
}

impl<N: Deref<Target = Node>> Drop for NodePipeline<N> {
    fn drop(&mut self) {
        // A session that watches the caller's descriptor is of no use to others.
        if let Some(session) = self.session.take().filter(|_| !self.is_watching) {
            self.node.return_session(session);
        }
    }
}
