//! A process without rows: one thread with connections, which issues timestamps or keeps the logs
//! of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use dyno_net::{Address, Listener, Reactor, Waker};
use dyno_txn_api::Result;

use crate::error::{bad_argument, from_net, unavailable};
use crate::options::OpenOptions;
use crate::pin::pin;
use crate::ports::reactor_options;

/// What such a process is for, in the words of its error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose {
    pub role: &'static str,
    /// Completes "the thread that ...".
    pub activity: &'static str,
}

/// What a service counts, by name. Its thread writes them, and any thread may read them.
pub(crate) type Figures = Vec<(&'static str, Arc<AtomicU64>)>;

/// A running service. Dropping it stops it, and what it held in memory is gone.
pub(crate) struct StandaloneService {
    purpose: Purpose,
    thread: Option<JoinHandle<Result<()>>>,
    stopping: Arc<AtomicBool>,
    waker: Waker,
    address: Address,
    figures: Figures,
}

impl StandaloneService {
    /// Starts the service's thread. `run` must return soon after the flag that it gets is set,
    /// which is followed by a wake-up of the reactor.
    pub fn start(
        purpose: Purpose,
        options: &OpenOptions,
        listener: Listener,
        figures: Figures,
        run: impl FnOnce(Reactor, &AtomicBool) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let mut reactor = Reactor::new(reactor_options(options.spin)).map_err(from_net)?;
        let Purpose { role, .. } = purpose;
        if options.cores.len() > 1 {
            let text = format!("role `{role}` has one thread: name one core");
            return Err(bad_argument(text));
        }
        let core = options.cores.first().copied();
        let address = reactor.listen(listener).map_err(from_net)?;
        let waker = reactor.waker();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = stopping.clone();
        let pinned = move || {
            if let Some(core) = core {
                pin(core)?;
            }
            run(reactor, &stop)
        };
        let thread = thread::Builder::new().name(format!("txn-{role}"));
        Ok(Self {
            purpose,
            thread: Some(thread.spawn(pinned).map_err(unavailable)?),
            stopping,
            waker,
            address,
            figures,
        })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Why it stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        ended.then(|| format!("the thread that {} has ended", self.purpose.activity))
    }

    /// The figures, by name.
    pub fn stats(&self) -> Vec<(String, u64)> {
        let read = |(name, cell): &(&str, Arc<AtomicU64>)| {
            let value = cell.load(Ordering::Relaxed);
            ((*name).to_owned(), value)
        };
        self.figures.iter().map(read).collect()
    }

    pub fn stop(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.stopping.store(true, Ordering::Release);
        self.waker.wake();
        let activity = self.purpose.activity;
        let panicked = || Err(unavailable(format!("the thread that {activity} panicked")));
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| panicked()),
            None => Ok(()),
        }
    }
}

impl Drop for StandaloneService {
    fn drop(&mut self) {
        // A caller that wants to know how it ended calls `stop`.
        drop(self.join());
    }
}
