//! The clients of one worker thread: which connections are theirs, and what waits for them.

use std::collections::{HashSet, VecDeque};

use dyno_net::PortId;

use super::answers::Answers;
use super::batch::Batch;
use super::last_timestamps::LastTimestamps;
use crate::threads::{Envelope, HostedFrontEnd};

#[derive(Default)]
pub(crate) struct Clients {
    authenticated: HashSet<PortId>,
    /// The one of them that spoke last. Most often it speaks next, and is then not looked up.
    last_speaker: Option<PortId>,
    pub last_timestamps: LastTimestamps,
    /// Messages that need a timestamp while none may be issued. No client is read from until this
    /// is empty again.
    pub awaiting_timestamp: VecDeque<Envelope>,
    pub batch: Batch,
    /// Connections that have asked for another thread, and which.
    pub moving: Vec<Move>,
    /// Frames to clients, and to other processes.
    pub answers: Answers,
    /// A server of another protocol that runs on this thread.
    pub front_end: Option<HostedFrontEnd>,
}

/// A connection that is to be handed to another thread.
pub(crate) struct Move {
    pub port: PortId,
    pub thread: usize,
}

impl Clients {
    pub fn authenticate(&mut self, port: PortId) {
        self.authenticated.insert(port);
    }

    pub fn is_authenticated(&self, port: PortId) -> bool {
        self.authenticated.contains(&port)
    }

    /// Whether a frame on this connection is one of an authenticated client.
    pub fn is_client(&mut self, port: PortId) -> bool {
        if self.last_speaker == Some(port) {
            return true;
        }
        if !self.is_authenticated(port) {
            return false;
        }
        self.last_speaker = Some(port);
        true
    }

    pub fn forget(&mut self, port: PortId) {
        self.authenticated.remove(&port);
        self.last_timestamps.forget(port);
        // It may be this very connection.
        self.last_speaker = None;
    }
}
