//! One-shot transactions under way at once: a thread for each connection, since the server runs one
//! at a time on each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_txn_api::{Code, Committed, Error, Options, Pipeline, Request, Result};
use parking_lot::Mutex;

use crate::database::Inner;

type Done = (u64, Result<Committed>);

/// The threads.
pub struct Threads {
    requests: Option<Sender<(u64, Request)>>,
    done: Receiver<Done>,
    /// Taken in while there was no room for another one.
    early: VecDeque<Done>,
    window: usize,
    /// Submitted, and not come back yet.
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

    fn take(&mut self, wait: Duration) -> Option<Done> {
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
            // Each has a deadline of its own, after which its answer comes.
            if let Some(done) = self.take(Duration::from_secs(1)) {
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
            _ => self.take(wait),
        }
    }

    fn outstanding(&self) -> usize {
        self.under_way + self.early.len()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.requests = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing to be waited for.
            let _ = thread.join();
        }
    }
}
