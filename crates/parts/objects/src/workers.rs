//! Uploads the parts of an object in parallel, a bounded number at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::error::ObjectError;
use crate::part::{Digest, Part, Uploader};

type Outcome = (Part, Result<Digest, ObjectError>);

/// Threads that upload the parts of one object. Memory: as many parts as threads.
#[derive(Debug)]
pub(crate) struct Workers {
    jobs: Option<Sender<Part>>,
    outcomes: Receiver<Outcome>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    in_flight: usize,
    /// The digest of each part, by its number less one; `None` while it is on its way.
    digests: Vec<Option<Digest>>,
}

impl Workers {
    pub fn start(uploader: Uploader, in_flight: usize) -> Self {
        let (jobs, taken) = channel::<Part>();
        let (done, outcomes) = channel();
        let taken = Arc::new(Mutex::new(taken));
        let uploader = Arc::new(uploader);
        let stop = Arc::new(AtomicBool::new(false));
        let worker = |_| {
            let (taken, done, uploader, stop) =
                (taken.clone(), done.clone(), uploader.clone(), stop.clone());
            std::thread::spawn(move || {
                loop {
                    // One idle worker waits for a part and the others wait for the lock, which
                    // comes to the same.
                    let next = taken.lock().recv();
                    let Ok(part) = next else { return };
                    let outcome = if stop.load(Ordering::Relaxed) {
                        // The upload is given up. A part that is still in the queue would be sent
                        // for nothing.
                        Err(uploader.closed())
                    } else {
                        uploader.upload(&part)
                    };
                    if done.send((part, outcome)).is_err() {
                        return;
                    }
                }
            })
        };
        Self {
            threads: (0..in_flight.max(1)).map(worker).collect(),
            jobs: Some(jobs),
            outcomes,
            stop,
            in_flight: 0,
            digests: Vec::new(),
        }
    }

    /// Queues a part and returns memory for the next one. Waits while every worker is busy.
    pub fn push(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, ObjectError> {
        self.digests.push(None);
        let number = self.digests.len() as u16;
        let jobs = self.jobs.as_ref().expect("jobs are taken until the end");
        let sent = jobs.send(Part { number, bytes });
        sent.expect("workers live as long as jobs are taken");
        self.in_flight += 1;
        // Until every worker has a part there is no memory to reuse, so the caller allocates.
        if self.in_flight <= self.threads.len() {
            return Ok(Vec::new());
        }
        self.settle()
    }

    pub fn parts(&self) -> usize {
        self.digests.len()
    }

    /// Waits until any one part is uploaded, and returns its memory.
    fn settle(&mut self) -> Result<Vec<u8>, ObjectError> {
        let outcome = self.outcomes.recv();
        let (part, outcome) = outcome.expect("workers answer every job");
        self.in_flight -= 1;
        // Parts complete in any order, and the object is put together by their numbers.
        self.digests[usize::from(part.number) - 1] = Some(outcome?);
        let mut bytes = part.bytes;
        bytes.clear();
        Ok(bytes)
    }

    /// Waits for all parts, and returns their digests in order.
    pub fn finish(&mut self) -> Result<Vec<Digest>, ObjectError> {
        while self.in_flight > 0 {
            self.settle()?;
        }
        Ok(self.digests.iter().flatten().cloned().collect())
    }
}

impl Drop for Workers {
    /// Waits for the uploads in progress, so that an abort that follows removes all parts.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // An error means that the worker has panicked, which was printed then.
            let _ = thread.join();
        }
    }
}
