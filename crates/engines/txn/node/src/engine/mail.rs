//! What threads of an engine send each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_net::{Port, Waker};
use dyno_txn_core::message::{Address, Message, PartitionId};

use crate::member::Whom;

/// Messages that may wait for one thread. More are dropped, which the protocol bears: what is not
/// answered is sent again.
pub(crate) const MAIL_MAX: usize = 16 << 10;
/// How long threads stand still at most, and how long somebody may look.
const HOLD_MOST: Duration = Duration::from_secs(4);
const LOOK_MOST: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(50);

pub(crate) enum Mail {
    /// For a partition.
    Message {
        from: Address,
        to: PartitionId,
        message: Message,
    },
    /// A connection that has said who it is, and whether that is another process of the database.
    Port(Box<Port>, bool),
    /// A connection to another process.
    Link(Whom, Box<Port>),
    /// A store that was away is there again.
    Store(usize, Box<Port>),
    /// Stand still for a moment.
    Hold(Arc<Hold>),
}

/// A moment at which no log moves: every thread stands still, somebody looks, all go on.
#[derive(Debug)]
pub(crate) struct Hold {
    began: Instant,
    standing: AtomicUsize,
    over: AtomicBool,
}

impl Hold {
    pub fn new() -> Self {
        let (standing, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self {
            began: Instant::now(),
            standing,
            over,
        }
    }

    /// A thread stands still here.
    pub fn stand(&self) {
        self.standing.fetch_add(1, Ordering::AcqRel);
        while !self.over.load(Ordering::Acquire) && self.began.elapsed() < HOLD_MOST {
            thread::sleep(PAUSE);
        }
    }

    /// Looks while all `threads` stand; none when they did not come, or looking took too long.
    pub fn look<T>(&self, threads: usize, look: impl FnOnce() -> T) -> Option<T> {
        while self.standing.load(Ordering::Acquire) < threads && self.began.elapsed() < LOOK_MOST {
            thread::sleep(PAUSE);
        }
        let all = self.standing.load(Ordering::Acquire) == threads;
        let seen = all.then(look).filter(|_| self.began.elapsed() < HOLD_MOST);
        self.over.store(true, Ordering::Release);
        seen
    }
}

/// A thread as others see it.
#[derive(Clone)]
pub(crate) struct Mate {
    pub sender: SyncSender<Mail>,
    pub waker: Waker,
}

impl Mate {
    /// Posts something; false when it was dropped.
    pub fn post(&self, mail: Mail) -> bool {
        match self.sender.try_send(mail) {
            Ok(()) => {
                self.waker.wake();
                true
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}
