//! The thread that accepts connections, and checks the open ones between two of them.

use std::io;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::connection;
use super::connections::Connections;
use crate::port::is_later;
use crate::port::sleep::{event_counter, wait_readable};
use crate::{Listener, Service, Stream};

/// How long to wait after an accept that failed, mostly for want of descriptors: some become free
/// when a connection ends.
const PAUSE: Duration = Duration::from_millis(20);

/// Tells the accepting thread to stop, and wakes it from its wait.
#[derive(Debug)]
pub struct StopSignal {
    called: AtomicBool,
    counter: std::fs::File,
}

impl StopSignal {
    pub fn new() -> io::Result<StopSignal> {
        Ok(StopSignal {
            called: AtomicBool::new(false),
            counter: event_counter()?.into(),
        })
    }

    pub fn call(&self) {
        self.called.store(true, Ordering::SeqCst);
        // A counter that is full wakes the thread as well, so a failed write does no harm.
        let _ = (&self.counter).write(&1_u64.to_ne_bytes());
    }

    pub fn is_called(&self) -> bool {
        self.called.load(Ordering::SeqCst)
    }
}

/// What the accepting thread owns.
pub struct Accepting<S: Service> {
    pub listener: Listener,
    pub service: Arc<S>,
    pub stop: Arc<StopSignal>,
    pub connections: Arc<Connections>,
}

impl<S: Service> Accepting<S> {
    /// Makes accept return at once. The thread waits for the stop signal and for connections
    /// together, so it must not wait in accept: a client may have gone between the two calls.
    pub fn prepare(&self) -> io::Result<()> {
        self.listener.set_nonblocking()
    }

    /// Accepts connections until the stop signal.
    pub fn run(self) {
        let tick = self.connections.tick();
        let mut next_check = Instant::now() + tick;
        while !self.stop.is_called() {
            // Without connections there is nothing to check, so the thread sleeps until one comes.
            let wait = (self.connections.len() > 0)
                .then(|| next_check.saturating_duration_since(Instant::now()));
            let fds = [self.stop.counter.as_fd(), self.listener.descriptor()];
            let waited = wait_readable(fds, wait);
            match waited.and_then(|()| self.listener.accept()) {
                Ok(stream) if !self.stop.is_called() => self.serve(stream),
                Ok(_) => {}
                Err(error) if is_later(&error) => {}
                Err(_) => thread::sleep(PAUSE),
            }
            let now = Instant::now();
            if now >= next_check {
                self.connections.enforce_limits(now);
                next_check = now + tick;
            }
        }
    }

    /// Starts the thread of a connection. A connection that cannot be served is closed, which its
    /// client sees.
    fn serve(&self, stream: Stream) {
        let Some(stream) = self.connections.make_place(stream) else {
            return;
        };
        connection::start(stream, &self.service, &self.connections);
    }
}
