//! Parts on their way to the store, a bounded number at once.

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
pub(crate) struct Lanes {
    jobs: Option<Sender<Part>>,
    outcomes: Receiver<Outcome>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    in_flight: usize,
    /// By part, from the first.
    digests: Vec<Option<Digest>>,
}

impl Lanes {
    pub fn start(uploader: Uploader, in_flight: usize) -> Self {
        let (jobs, taken) = channel::<Part>();
        let (done, outcomes) = channel();
        let taken = Arc::new(Mutex::new(taken));
        let uploader = Arc::new(uploader);
        let stop = Arc::new(AtomicBool::new(false));
        let lane = |_| {
            let (taken, done, uploader, stop) =
                (taken.clone(), done.clone(), uploader.clone(), stop.clone());
            std::thread::spawn(move || {
                loop {
                    let next = taken.lock().recv();
                    let Ok(part) = next else { return };
                    let outcome = match stop.load(Ordering::Relaxed) {
                        true => Err(uploader.closed()),
                        false => uploader.upload(&part),
                    };
                    if done.send((part, outcome)).is_err() {
                        return;
                    }
                }
            })
        };
        Self {
            threads: (0..in_flight.max(1)).map(lane).collect(),
            jobs: Some(jobs),
            outcomes,
            stop,
            in_flight: 0,
            digests: Vec::new(),
        }
    }

    /// Sends a part off and returns memory for the next one: waits while every lane is busy.
    pub fn put(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, ObjectError> {
        self.digests.push(None);
        let number = self.digests.len() as u16;
        let jobs = self.jobs.as_ref().expect("jobs are taken until the end");
        let sent = jobs.send(Part { number, bytes });
        sent.expect("lanes live as long as jobs are taken");
        self.in_flight += 1;
        if self.in_flight <= self.threads.len() {
            return Ok(Vec::new());
        }
        self.settle()
    }

    pub fn parts(&self) -> usize {
        self.digests.len()
    }

    /// Waits for one part.
    fn settle(&mut self) -> Result<Vec<u8>, ObjectError> {
        let outcome = self.outcomes.recv();
        let (part, outcome) = outcome.expect("lanes answer every job");
        self.in_flight -= 1;
        self.digests[usize::from(part.number) - 1] = Some(outcome?);
        let mut bytes = part.bytes;
        bytes.clear();
        Ok(bytes)
    }

    /// Waits for all parts; their digests in order.
    pub fn finish(&mut self) -> Result<Vec<Digest>, ObjectError> {
        while self.in_flight > 0 {
            self.settle()?;
        }
        Ok(self.digests.iter().flatten().cloned().collect())
    }
}

impl Drop for Lanes {
    /// Nothing is under way when this returns, so that what was uploaded can be taken back.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A lane that panicked has said so, and holds nothing.
            let _ = thread.join();
        }
    }
}
