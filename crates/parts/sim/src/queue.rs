//! Writes at once, on the simulated disk.

use std::io;

use dyno_io::{Completion, Device, IoError, Queue, Request};

use crate::file::SimFile;
use dyno_random::Random;

/// Stands for io_uring: writes end in any order, short or with the disk's errors.
#[derive(Debug)]
pub struct SimQueue {
    file: SimFile,
    depth: usize,
    /// With the number of those that are stable when they end.
    going: Vec<(Request, Option<Result<u64, IoError>>)>,
    random: Random,
}

impl SimQueue {
    /// A queue for `depth` writes to `file` at once.
    pub fn new(file: SimFile, depth: usize, seed: u64) -> Self {
        Self {
            file,
            depth,
            going: Vec::new(),
            random: Random::new(seed),
        }
    }

    fn end_one(&mut self) -> Completion {
        let at = self.random.below(self.going.len());
        let (request, begun) = self.going.swap_remove(at);
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
        self.going.len()
    }

    fn submit(&mut self, request: Request) -> Result<(), IoError> {
        assert!(self.going.len() < self.depth, "more writes than places");
        let (offset_bytes, rest) = request.rest();
        let stable = self.file.is_stable();
        let begun = stable.then(|| self.file.begin(offset_bytes, rest));
        self.going.push((request, begun));
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        let looks = self.file.slow_one_in();
        (!self.going.is_empty() && self.random.one_in(looks)).then(|| self.end_one())
    }

    fn wait(&mut self) -> Result<Option<Completion>, IoError> {
        Ok((!self.going.is_empty()).then(|| self.end_one()))
    }
}

impl Drop for SimQueue {
    /// The kernel carries out what it was given.
    fn drop(&mut self) {
        while !self.going.is_empty() {
            // Who drops a queue asks no more how its writes ended.
            let _ = self.end_one();
        }
    }
}
