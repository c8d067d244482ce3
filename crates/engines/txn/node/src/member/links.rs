//! A thread's connections to threads of other processes, and to oracles: who has something to say calls, and what
//! is said goes one way. Answers come on connections of their own; only oracles answer on the same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_net::{Address as Place, Port, PortId, PortOptions};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::Member;
use crate::error::{from_net, unavailable};
use crate::greet::{Greeting, greet};
use crate::hello::{MEMBER_HELLO, MEMBER_WELCOME, MemberHello, encode_between};
use crate::lifecycle::Lifecycle;
use crate::ports::port_options;
use crate::threads::{Command, PeerId, PeerThread};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// Messages that wait for one connection, and their bytes, at most.
const UNSENT_MAX: usize = 1024;
const UNSENT_BYTES_MAX: usize = 16 << 20;

/// One thread's.
pub(crate) struct Links {
    pub member: Arc<Member>,
    thread: usize,
    open: HashMap<PeerId, PortId>,
    known: HashMap<PortId, PeerId>,
    calling: HashSet<PeerId>,
    /// What waits for a connection that is being made: to which partition, and the body.
    unsent: HashMap<PeerId, Vec<(PartitionId, Vec<u8>)>>,
}

impl Links {
    pub fn new(member: Arc<Member>, thread: usize) -> Self {
        Self {
            member,
            thread,
            open: HashMap::new(),
            known: HashMap::new(),
            calling: HashSet::new(),
            unsent: HashMap::new(),
        }
    }

    /// Who is at the other end of a connection, if it is one of these.
    pub fn whom(&self, port: PortId) -> Option<PeerId> {
        self.known.get(&port).copied()
    }

    /// The connection to somebody, if there is one.
    pub fn port(&self, whom: PeerId) -> Option<PortId> {
        self.open.get(&whom).copied()
    }

    /// Keeps a message until there is a connection. It is lost when too much waits already: then its transaction waits
    /// until its time is over.
    pub fn keep(&mut self, whom: PeerId, from: Address, to: PartitionId, message: &Message) {
        let waiting = self.unsent.entry(whom).or_default();
        let bytes: usize = waiting.iter().map(|(_, body)| body.len()).sum();
        let mut body = Vec::new();
        encode_between(from, message, &mut body);
        if waiting.len() < UNSENT_MAX && bytes + body.len() <= UNSENT_BYTES_MAX {
            waiting.push((to, body));
        }
    }

    /// What waited for a connection.
    pub fn unsent(&mut self, whom: PeerId) -> Vec<(PartitionId, Vec<u8>)> {
        self.unsent.remove(&whom).unwrap_or_default()
    }

    pub fn opened(&mut self, whom: PeerId, port: PortId) {
        self.calling.remove(&whom);
        if let Some(old) = self.open.insert(whom, port) {
            self.known.remove(&old);
        }
        self.known.insert(port, whom);
    }

    /// A connection has ended; who it was to.
    pub fn lost(&mut self, port: PortId) -> Option<PeerId> {
        let whom = self.known.remove(&port)?;
        self.open.remove(&whom);
        Some(whom)
    }

    /// Has somebody called, unless that is under way: the connection comes by mail.
    pub fn call(
        &mut self,
        whom: PeerId,
        lifecycle: &Arc<Lifecycle>,
        to: &PeerThread,
    ) -> Result<()> {
        if !self.calling.insert(whom) {
            return Ok(());
        }
        let (member, thread) = (self.member.clone(), self.thread);
        let (lifecycle, to) = (lifecycle.clone(), to.clone());
        let run = move || {
            while !lifecycle.is_stopping() {
                match connect(&member, thread, whom) {
                    Ok(port) => {
                        if to.send(Command::Connected(whom, Box::new(port))) {
                            return;
                        }
                    }
                    // An oracle that knows its database will not have this process in it, however often it calls.
                    // One that serves already goes on: another one may be the wrong one.
                    Err(error)
                        if !member.begun.load(Ordering::Acquire) && is_refusal(whom, &error) =>
                    {
                        return lifecycle.fail(format!("an oracle refuses this process: {error}"));
                    }
                    Err(error) => lifecycle.note(error.to_string()),
                }
                thread::sleep(PAUSE);
            }
        };
        let builder = thread::Builder::new().name("txn-call".to_owned());
        builder.spawn(run).map(drop).map_err(unavailable)
    }
}

/// Whether an oracle said that this process is not of its database.
fn is_refusal(whom: PeerId, error: &Error) -> bool {
    matches!(whom, PeerId::Oracle(_)) && error.kind() == Code::BadArgument
}

fn connect(member: &Member, thread: usize, whom: PeerId) -> Result<Port> {
    let (address, core) = match whom {
        PeerId::Oracle(number) => (member.oracles[number].clone(), 0),
        PeerId::Worker {
            process: part,
            thread: core,
        } => {
            let address = member.map().parts[part].address.clone();
            if address.is_empty() {
                return Err(unavailable(format!(
                    "process {part}: no oracle has said where it is"
                )));
            }
            (address, core)
        }
    };
    let address: Place = address.parse().map_err(from_net)?;
    let options = PortOptions {
        ring: member.options.ring,
        tls: member.options.tls.clone(),
        ..port_options()
    };
    let hello = MemberHello {
        core: core as u32,
        part: member.part,
        of: member.of,
        partitions: member.partitions,
        thread: thread as u32,
        threads: member.threads,
        identity: member.identity,
        token: member
            .options
            .token
            .clone()
            .unwrap_or_default()
            .into_bytes(),
        address: member.address.clone(),
    };
    let greeting = Greeting {
        verb: MEMBER_HELLO,
        body: &hello.encode(),
        answer: MEMBER_WELCOME,
    };
    greet(&address, &options, member.options.spin, &greeting).map(|(port, _)| port)
}
