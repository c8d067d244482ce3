//! A process without rows: one thread with connections, which gives stamps or keeps the logs of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use dyno_net::{Address, Listener, Reactor, Waker};
use dyno_txn_api::Result;

use crate::error::{bad_argument, from_net, unavailable};
use crate::options::OpenOptions;
use crate::pin::pin;
use crate::ports::reactor_options;

/// What such a process is called, and what its thread does, for whoever is told of its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub role: &'static str,
    pub does: &'static str,
}

type Figures = dyn Fn() -> Vec<(String, u64)> + Send + Sync;

/// One that runs. Dropping it stops it, and what it held is gone.
pub(crate) struct Lone {
    task: Task,
    thread: Option<JoinHandle<Result<()>>>,
    stopping: Arc<AtomicBool>,
    waker: Waker,
    address: Address,
    figures: Box<Figures>,
}

impl Lone {
    /// Starts it: `run` ends soon after the flag that it is handed is set and the reactor is woken.
    pub fn start<const N: usize>(
        task: Task,
        options: &OpenOptions,
        listener: Listener,
        figures: impl Fn() -> [(&'static str, u64); N] + Send + Sync + 'static,
        run: impl FnOnce(Reactor, &AtomicBool) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let mut reactor = Reactor::new(reactor_options(options.spin)).map_err(from_net)?;
        let Task { role, .. } = task;
        if options.cores.len() > 1 {
            return Err(bad_argument(format!(
                "role `{role}` has one thread: name one core"
            )));
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
        let named = move || figures().map(|(name, value)| (name.to_owned(), value));
        Ok(Self {
            task,
            thread: Some(thread.spawn(pinned).map_err(unavailable)?),
            stopping,
            waker,
            address,
            figures: Box::new(move || named().into()),
        })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Why it stopped by itself.
    pub fn failure(&self) -> Option<String> {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        ended.then(|| format!("the thread that {} has ended", self.task.does))
    }

    /// Names and values.
    pub fn stats(&self) -> Vec<(String, u64)> {
        (self.figures)()
    }

    pub fn stop(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.stopping.store(true, Ordering::Release);
        self.waker.wake();
        let does = self.task.does;
        let panicked = || Err(unavailable(format!("the thread that {does} panicked")));
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| panicked()),
            None => Ok(()),
        }
    }
}

impl Drop for Lone {
    fn drop(&mut self) {
        // Who wants to know how it ended calls `stop`.
        drop(self.join());
    }
}
