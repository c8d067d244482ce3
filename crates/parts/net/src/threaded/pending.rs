//! Requests that wait for their answers, by id.

use std::collections::HashMap;
use std::time::Instant;

use crate::{Frame, NetError};

/// The callback for an answer. It runs on the thread that reads the connection, so it must not
/// wait.
pub type OnAnswer = Box<dyn FnOnce(Result<Frame, NetError>) + Send>;

pub struct Waiting {
    pub on_answer: OnAnswer,
    pub deadline: Option<Instant>,
    pub wait_ms: u64,
}

/// The requests of one connection. An id is used again only after four billion others, so an answer
/// that comes late never meets a younger request.
#[derive(Default)]
pub struct Pending {
    waiting: HashMap<u32, Waiting>,
    last: u32,
    /// Threads that wait for room in the window.
    pub blocked: usize,
    /// Set once: why the connection has ended.
    dead: Option<NetError>,
}

impl Pending {
    /// Enters a request and returns its id, or the reason why the connection has ended.
    pub fn add(&mut self, waiting: Waiting) -> Result<u32, (Waiting, NetError)> {
        if let Some(dead) = &self.dead {
            return Err((waiting, dead.clone()));
        }
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.waiting.contains_key(&self.last) {
                break;
            }
        }
        self.waiting.insert(self.last, waiting);
        Ok(self.last)
    }

    pub fn remove(&mut self, request: u32) -> Option<Waiting> {
        self.waiting.remove(&request)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn dead(&self) -> Option<&NetError> {
        self.dead.as_ref()
    }

    /// Removes and returns the requests whose deadline has passed.
    pub fn late(&mut self, now: Instant) -> Vec<Waiting> {
        let late: Vec<u32> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.deadline.is_some_and(|deadline| deadline <= now))
            .map(|(request, _)| *request)
            .collect();
        late.iter()
            .filter_map(|request| self.remove(*request))
            .collect()
    }

    /// Ends the connection, and returns the requests that must be told `why`. The first reason
    /// stays.
    pub fn end(&mut self, why: NetError) -> Vec<Waiting> {
        self.dead.get_or_insert(why);
        self.waiting.drain().map(|(_, waiting)| waiting).collect()
    }
}
