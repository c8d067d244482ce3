//! A pipeline of one-shot transactions. It has a thread for each connection, because the server
//! runs one transaction at a time on each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_txn_api::{Code, Committed, Error, Options, Pipeline, Request, Result};
use parking_lot::Mutex;

use crate::database::Inner;

type Done = (u64, Result<Committed>);

/// The threads of a pipeline, with the channels to and from them.
pub struct Threads {
    requests: Option<Sender<(u64, Request)>>,
    done: Receiver<Done>,
    /// Answers that arrived while [`Pipeline::submit`] waited for room.
    early: VecDeque<Done>,
    window: usize,
    /// Requests that were submitted and whose answers have not arrived.
    under_way: usize,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub fn new(inner: Arc<Inner>, threads: usize, window: usize, options: &Options) -> Threads {
        let (requests, to_do) = channel::<(u64, Request)>();
        let (say, done) = channel();
        let to_do = Arc::new(Mutex::new(to_do));
        let threads = (0..threads)
            .map(|_| {
                let (inner, to_do, say) = (Arc::clone(&inner), Arc::clone(&to_do), say.clone());
                let options = options.clone();
                thread::spawn(move || {
                    loop {
                        // Only one thread waits in `recv`, with the lock, and the others wait for
                        // the lock. Each takes one request, so they are distributed to the threads
                        // that are free.
                        let next = to_do.lock().recv();
                        let Ok((ticket, request)) = next else { return };
                        let answer = inner.execute(request, &options);
                        if say.send((ticket, answer)).is_err() {
                            return;
                        }
                    }
                })
            })
            .collect();
        Threads {
            requests: Some(requests),
            done,
            early: VecDeque::new(),
            window,
            under_way: 0,
            threads,
        }
    }

    fn receive(&mut self, wait: Duration) -> Option<Done> {
        match self.done.recv_timeout(wait) {
            Ok(done) => {
                self.under_way -= 1;
                Some(done)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl Pipeline for Threads {
    fn submit(&mut self, ticket: u64, request: Request) -> Result<()> {
        while self.under_way >= self.window {
            // Each request has a deadline, so an answer arrives in the end.
            if let Some(done) = self.receive(Duration::from_secs(1)) {
                self.early.push_back(done);
            }
        }
        let gone = || Error::new(Code::Unavailable, "the threads of a pipeline have ended");
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send((ticket, request)).map_err(|_| gone())?;
        self.under_way += 1;
        Ok(())
    }

    fn next(&mut self, wait: Duration) -> Option<Done> {
        if let Some(done) = self.early.pop_front() {
            return Some(done);
        }
        match self.under_way {
            0 => None,
            _ => self.receive(wait),
        }
    }

    fn outstanding(&self) -> usize {
        self.under_way + self.early.len()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Without a sender the threads get an error from `recv` and end, after the requests that
        // are still queued.
        self.requests = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked needs no further handling.
            let _ = thread.join();
        }
    }
}
