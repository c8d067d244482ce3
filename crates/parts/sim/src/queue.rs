//! Writes at once, on the simulated disk.

use std::collections::VecDeque;
use std::io;

use dyno_io::{Completion, Device, IoError, Meanwhile, Queue, Request};

use crate::file::SimFile;
use dyno_random::Random;

/// Stands for io_uring: writes end in any order, short or with the disk's errors.
#[derive(Debug)]
pub struct SimQueue {
    file: SimFile,
    depth: usize,
    /// Writes that have not ended, with the number of those that are stable when they end.
    pending: Vec<(Request, Option<Result<u64, IoError>>)>,
    /// Writes through which the submitter slept: they have ended, and are reported next.
    ended: VecDeque<Completion>,
    random: Random,
}

impl SimQueue {
    /// A queue for `depth` writes to `file` at once.
    pub fn new(file: SimFile, depth: usize, seed: u64) -> Self {
        Self {
            file,
            depth,
            pending: Vec::new(),
            ended: VecDeque::new(),
            random: Random::new(seed),
        }
    }

    fn end_one(&mut self) -> Completion {
        // Any of the pending writes ends next, because a device may reorder what it was given at
        // once.
        let at = self.random.below(self.pending.len());
        let (request, begun) = self.pending.swap_remove(at);
        self.end(request, begun)
    }

    fn end(&mut self, request: Request, begun: Option<Result<u64, IoError>>) -> Completion {
        let (offset_bytes, rest) = request.rest();
        let written = match begun {
            Some(begun) => begun.and_then(|number| self.file.end(number)),
            None => self.file.write_some_at(offset_bytes, rest),
        };
        let outcome = match written {
            Err(IoError::System { source, .. }) => Err(source),
            written => written.map_err(io::Error::other),
        };
        Completion { request, outcome }
    }
}

impl Queue for SimQueue {
    fn device(&self) -> &dyn Device {
        &self.file
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.pending.len() + self.ended.len()
    }

    fn submit(&mut self, request: Request, meanwhile: Meanwhile) -> Result<(), IoError> {
        assert!(self.in_flight() < self.depth, "more writes than places");
        let (offset_bytes, rest) = request.rest();
        let stable = self.file.is_stable();
        let begun = stable.then(|| self.file.begin(offset_bytes, rest));
        match meanwhile {
            Meanwhile::GoesOn => self.pending.push((request, begun)),
            Meanwhile::Sleeps => {
                let ended = self.end(request, begun);
                self.ended.push_back(ended);
            }
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        if let Some(ended) = self.ended.pop_front() {
            return Some(ended);
        }
        let looks = self.file.slow_one_in();
        (!self.pending.is_empty() && self.random.one_in(looks)).then(|| self.end_one())
    }

    fn wait(&mut self) -> Result<Option<Completion>, IoError> {
        if let Some(ended) = self.ended.pop_front() {
            return Ok(Some(ended));
        }
        Ok((!self.pending.is_empty()).then(|| self.end_one()))
    }
}

impl Drop for SimQueue {
    /// Ends the writes that are pending, because the kernel carries out what it was given.
    fn drop(&mut self) {
        while !self.pending.is_empty() {
            // The owner has dropped the queue, so nothing asks how these writes ended.
            let _ = self.end_one();
        }
    }
}
