//! What a nemesis can do to the connections of a proxy, and counts of what was done.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dyno_net::{Address, Stream};
use dyno_sim::Random;
use parking_lot::Mutex;

/// What a proxy has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were accepted and passed on.
    pub connections: u64,
    /// Connections cut without regard to what they were doing.
    pub cut: u64,
    /// Connections cut after a commit went out and before its answer came back.
    pub cut_in_commit: u64,
    /// Connections that could not be accepted or passed on.
    pub failed: u64,
}

/// Both ends of a connection, by which it can be cut.
#[derive(Debug)]
struct Ends {
    client: Stream,
    server: Stream,
}

/// The handle on a running proxy.
#[derive(Debug)]
pub struct Control {
    target: Mutex<Address>,
    links: Mutex<BTreeMap<u64, Ends>>,
    /// How many of the next commits lose their answers.
    armed: AtomicU64,
    delay_us: AtomicU64,
    connections: AtomicU64,
    cut: AtomicU64,
    cut_in_commit: AtomicU64,
    failed: AtomicU64,
}

impl Control {
    pub(super) fn new(target: Address) -> Self {
        Self {
            target: Mutex::new(target),
            links: Mutex::default(),
            armed: AtomicU64::new(0),
            delay_us: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            cut_in_commit: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// The address that new connections are passed on to.
    pub fn target(&self) -> Address {
        self.target.lock().clone()
    }

    /// Passes new connections on to another address, and cuts those that are open.
    pub fn set_target(&self, target: Address) {
        // The target changes before the cut, so that a client that reconnects at once reaches the
        // new one.
        *self.target.lock() = target;
        self.cut_all();
    }

    /// The next `commits` commits lose their answers with their connections.
    pub fn arm(&self, commits: u64) {
        self.armed.store(commits, Ordering::Release);
    }

    /// How many armed cuts have not happened.
    pub fn armed(&self) -> u64 {
        self.armed.load(Ordering::Acquire)
    }

    /// Delays every piece of data by this much, in both directions.
    pub fn set_delay(&self, delay: Duration) {
        let delay_us = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.delay_us.store(delay_us, Ordering::Relaxed);
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_us.load(Ordering::Relaxed))
    }

    /// Cuts one connection at random. Returns false if there is none.
    pub fn cut_one(&self, random: &mut Random) -> bool {
        let links = self.links.lock();
        let chosen = links.values().nth(random.below(links.len()));
        if let Some(ends) = chosen {
            ends.cut();
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
        chosen.is_some()
    }

    /// Cuts every connection that is open now.
    pub fn cut_all(&self) {
        let links = self.links.lock();
        links.values().for_each(Ends::cut);
        self.cut.fetch_add(links.len() as u64, Ordering::Relaxed);
    }

    /// What the proxy has done so far.
    pub fn counts(&self) -> Counts {
        Counts {
            connections: self.connections.load(Ordering::Relaxed),
            cut: self.cut.load(Ordering::Relaxed),
            cut_in_commit: self.cut_in_commit.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Returns whether this commit is to lose its answer, and uses up one of the armed cuts if so.
    pub(super) fn take_armed(&self) -> bool {
        let taken = self
            .armed
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |armed| {
                armed.checked_sub(1)
            })
            .is_ok();
        if taken {
            self.cut_in_commit.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Keeps a connection until [`Control::forget`] is called with the number that is returned.
    pub(super) fn keep(&self, client: &Stream, server: &Stream) -> io::Result<u64> {
        let ends = Ends {
            client: client.try_clone()?,
            server: server.try_clone()?,
        };
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        self.links.lock().insert(number, ends);
        Ok(number)
    }

    pub(super) fn forget(&self, number: u64) {
        self.links.lock().remove(&number);
    }

    /// Closes both ends of a connection and forgets it.
    pub(super) fn cut_off(&self, number: u64) {
        let ends = self.links.lock().remove(&number);
        if let Some(ends) = ends {
            ends.cut();
        }
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ends {
    fn cut(&self) {
        self.client.shutdown();
        self.server.shutdown();
    }
}
