//! A client node, whose sessions take their timestamps together.

use dyno_sim::NodeId;
use dyno_txn_api::Timestamp;
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::oracle::Batcher;

use super::cluster::{Cluster, Timer};

/// Addresses of clients from here on are those of their batchers.
pub(super) const BATCHERS: u64 = 1 << 32;

/// The times after which a client asks the other oracle for timestamps: without an answer, and
/// after a refusal.
const AGAIN_NS: u64 = 120_000_000;
const PAUSE_NS: u64 = 40_000_000;

pub(super) struct Client {
    pub node: NodeId,
    batcher: Batcher,
    /// The oracle that it believes to serve.
    oracle: usize,
    /// Counts requests, so that a late timer does not repeat a later one.
    requests: u64,
    under_way: bool,
}

impl Client {
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            batcher: Batcher::default(),
            oracle: 0,
            requests: 0,
            under_way: false,
        }
    }
}

impl Cluster {
    /// Takes a timestamp for a session, in one request with those of other sessions.
    pub(super) fn want_timestamp(&mut self, client: usize, session: usize) {
        let message = self.clients[client].batcher.want(session as u64);
        self.ask_for_timestamps(client, message);
    }

    fn ask_for_timestamps(&mut self, client: usize, message: Option<Message>) {
        let Some(message) = message else {
            return;
        };
        let asking = &mut self.clients[client];
        let oracle = Address::Oracle(asking.oracle as u32);
        asking.requests += 1;
        asking.under_way = true;
        let (node, request) = (asking.node, asking.requests);
        let from = Address::Client(BATCHERS + client as u64);
        self.post(node, from, oracle, message);
        let again = Timer::Timestamps { client, request };
        self.world.set_timer(node, AGAIN_NS, again);
    }

    pub(super) fn on_timestamps_timeout(&mut self, client: usize, request: u64) {
        let asking = &mut self.clients[client];
        if asking.under_way && asking.requests == request {
            let message = asking.batcher.again();
            asking.oracle = (asking.oracle + 1) % self.oracles.nodes.len().max(1);
            self.ask_for_timestamps(client, message);
        }
    }

    /// Handles the refusal of an oracle that does not serve: asks the other one after a pause.
    pub(super) fn on_timestamps_refused(&mut self, client: usize) {
        let asking = &self.clients[client];
        if asking.under_way {
            let (node, request) = (asking.node, asking.requests);
            let again = Timer::Timestamps { client, request };
            self.world.set_timer(node, PAUSE_NS, again);
        }
    }

    /// Hands the timestamps of an answer to the sessions that wait for them.
    pub(super) fn on_timestamps(&mut self, client: usize, ticket: u64, first: Timestamp) {
        let (given, next) = self.clients[client].batcher.answered(ticket, Ok(first));
        // The answer to a request that was repeated may come twice. Nothing waits for the second
        // one.
        if given.is_empty() {
            return;
        }
        self.clients[client].under_way = false;
        self.ask_for_timestamps(client, next);
        for (session, result) in given {
            self.timestamp_arrived(session as usize, result);
        }
    }
}
