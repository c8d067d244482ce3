//! A bounded list of things to do, and threads that do them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::partition::lock;

/// Things that wait to be done, in the order in which they came.
pub struct Jobs<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    most: usize,
}

struct State<T> {
    waiting: VecDeque<T>,
    stopped: bool,
}

impl<T> Jobs<T> {
    /// An empty list that takes up to `most`.
    pub fn new(most: usize) -> Jobs<T> {
        Jobs {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                stopped: false,
            }),
            arrived: Condvar::new(),
            most,
        }
    }

    /// Puts one on the list; given back when the list is full or stopped.
    pub fn push(&self, job: T) -> Result<(), T> {
        let mut state = lock(&self.state);
        if state.stopped || state.waiting.len() >= self.most {
            return Err(job);
        }
        state.waiting.push_back(job);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for one. None: the list is stopped and empty.
    pub fn next(&self) -> Option<T> {
        let mut first = self.take(1);
        first.pop()
    }

    /// Waits for some, and takes up to `most`. Nothing: the list is stopped and empty.
    pub fn take(&self, most: usize) -> Vec<T> {
        let mut state = lock(&self.state);
        while state.waiting.is_empty() && !state.stopped {
            state = self
                .arrived
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let count = most.min(state.waiting.len());
        state.waiting.drain(..count).collect()
    }

    /// Takes up to `most` of those that are there.
    pub fn take_now(&self, most: usize) -> Vec<T> {
        let mut state = lock(&self.state);
        let count = most.min(state.waiting.len());
        state.waiting.drain(..count).collect()
    }

    /// Takes no more; what is there is still handed out.
    pub fn stop(&self) {
        lock(&self.state).stopped = true;
        self.arrived.notify_all();
    }
}
