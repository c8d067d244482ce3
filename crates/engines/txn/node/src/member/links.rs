//! A thread's connections to threads of other processes and to oracles. The thread that has
//! something to say connects, and messages go one way: answers come on a connection of the other
//! thread. Only oracles answer on the same one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_net::{Address as NetAddress, Port, PortId};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::Member;
use crate::error::{from_net, unavailable};
use crate::greet::{Greeting, greet};
use crate::hello::{MEMBER_HELLO, MEMBER_WELCOME, MemberHello, encode_peer_message};
use crate::lifecycle::Lifecycle;
use crate::ports::connect_options;
use crate::threads::{Command, PeerId, PeerThread};

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// Messages that wait for one connection at most, and their bytes.
const BUFFERED_MAX: usize = 1024;
const BUFFERED_BYTES_MAX: usize = 16 << 20;

pub(crate) struct Links {
    pub member: Arc<Member>,
    /// The index of the thread that these belong to.
    thread: usize,
    lifecycle: Arc<Lifecycle>,
    /// The thread itself, to which new connections are sent.
    this: PeerThread,
    open: HashMap<PeerId, PortId>,
    peers: HashMap<PortId, PeerId>,
    connecting: HashSet<PeerId>,
    buffered: HashMap<PeerId, Vec<Buffered>>,
}

/// A message that waits for its connection.
pub(crate) struct Buffered {
    pub to: PartitionId,
    pub body: Vec<u8>,
}

impl Links {
    pub fn new(
        member: Arc<Member>,
        thread: usize,
        lifecycle: Arc<Lifecycle>,
        this: PeerThread,
    ) -> Self {
        Self {
            member,
            thread,
            lifecycle,
            this,
            open: HashMap::new(),
            peers: HashMap::new(),
            connecting: HashSet::new(),
            buffered: HashMap::new(),
        }
    }

    /// The peer at the other end of a connection, if it is one of these.
    pub fn peer(&self, port: PortId) -> Option<PeerId> {
        self.peers.get(&port).copied()
    }

    /// The connection to a peer, if there is one now.
    pub fn port(&self, peer: PeerId) -> Option<PortId> {
        self.open.get(&peer).copied()
    }

    /// Keeps a message until there is a connection. It is dropped if too much waits already, and
    /// its transaction then waits until its deadline.
    pub fn buffer(&mut self, peer: PeerId, from: Address, to: PartitionId, message: &Message) {
        let waiting = self.buffered.entry(peer).or_default();
        let bytes: usize = waiting.iter().map(|buffered| buffered.body.len()).sum();
        let mut body = Vec::new();
        encode_peer_message(from, message, &mut body);
        if waiting.len() < BUFFERED_MAX && bytes + body.len() <= BUFFERED_BYTES_MAX {
            waiting.push(Buffered { to, body });
        }
    }

    pub fn take_buffered(&mut self, peer: PeerId) -> Vec<Buffered> {
        self.buffered.remove(&peer).unwrap_or_default()
    }

    pub fn opened(&mut self, peer: PeerId, port: PortId) {
        self.connecting.remove(&peer);
        if let Some(old) = self.open.insert(peer, port) {
            // What still comes on the older connection is not taken for this peer's any more.
            self.peers.remove(&old);
        }
        self.peers.insert(port, peer);
    }

    /// Forgets a connection that has ended. Returns whose it was.
    pub fn closed(&mut self, port: PortId) -> Option<PeerId> {
        let peer = self.peers.remove(&port)?;
        self.open.remove(&peer);
        Some(peer)
    }

    /// Starts a thread that connects to a peer, unless one is at it. The connection arrives as
    /// [`Command::Connected`]: the worker itself never waits for a handshake, which takes as long
    /// as the other process likes.
    pub fn connect(&mut self, peer: PeerId) -> Result<()> {
        if !self.connecting.insert(peer) {
            return Ok(());
        }
        let (member, thread) = (self.member.clone(), self.thread);
        let (lifecycle, this) = (self.lifecycle.clone(), self.this.clone());
        let run = move || {
            while !lifecycle.is_stopping() {
                match dial(&member, thread, peer) {
                    Ok(port) => {
                        // If the worker's queue is full, the connection is closed and made again.
                        if this.send(Command::Connected(peer, Box::new(port))) {
                            return;
                        }
                    }
                    // An oracle that says this process is not of its database will say so for ever,
                    // so the process ends and its operator learns why. Not if it serves already:
                    // then its clients are served by another oracle, and this one may be the wrong
                    // one.
                    Err(error)
                        if !member.begun.load(Ordering::Acquire) && is_refusal(peer, &error) =>
                    {
                        return lifecycle.fail(format!("an oracle refuses this process: {error}"));
                    }
                    Err(error) => lifecycle.note(error.to_string()),
                }
                thread::sleep(PAUSE);
            }
        };
        let builder = thread::Builder::new().name("txn-connect".to_owned());
        builder.spawn(run).map(drop).map_err(unavailable)
    }
}

/// Whether an oracle said that this process is not of its database.
fn is_refusal(peer: PeerId, error: &Error) -> bool {
    matches!(peer, PeerId::Oracle(_)) && error.kind() == Code::BadArgument
}

fn dial(member: &Member, thread: usize, peer: PeerId) -> Result<Port> {
    let (address, wanted) = match peer {
        PeerId::Oracle(number) => (member.oracles[number].clone(), 0),
        PeerId::Worker { process, thread } => {
            // Looked up for each attempt, because a process may come back at another address.
            let address = member.map().processes[process].address.clone();
            if address.is_empty() {
                return Err(unavailable(format!(
                    "process {process}: no oracle has said where it is"
                )));
            }
            (address, thread)
        }
    };
    let address: NetAddress = address.parse().map_err(from_net)?;
    let options = connect_options(&member.options);
    let token = member.options.token.clone().unwrap_or_default();
    let hello = MemberHello {
        core: wanted as u32,
        part: member.part,
        of: member.of,
        partitions: member.partitions,
        thread: thread as u32,
        threads: member.threads,
        identity: member.identity,
        token: token.into_bytes(),
        address: member.address.clone(),
    };
    let greeting = Greeting {
        verb: MEMBER_HELLO,
        body: &hello.encode(),
        answer: MEMBER_WELCOME,
    };
    greet(&address, &options, member.options.spin, &greeting).map(|(port, _)| port)
}
