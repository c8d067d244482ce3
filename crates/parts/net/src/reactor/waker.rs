//! Wakes a sleeping reactor from another thread, at no cost while it is awake.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crate::port::sleep::event_counter;

/// Wakes one [`crate::Reactor`]; clones wake the same one.
#[derive(Debug, Clone)]
pub struct Waker(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    counter: File,
    asleep: AtomicBool,
    called: AtomicBool,
}

impl Waker {
    pub(super) fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::new(Shared {
            counter: event_counter()?.into(),
            asleep: AtomicBool::new(false),
            called: AtomicBool::new(false),
        })))
    }

    /// Makes the reactor's present or next sleep end at once. What it should find must be in place
    /// before.
    pub fn wake(&self) {
        let shared = &self.0;
        shared.called.store(true, Ordering::Release);
        // The fence here and that of `announce_sleep` order each side's store before its load, so
        // at least one of the two sees the other's flag, and a call is never slept through.
        fence(Ordering::SeqCst);
        if shared.asleep.swap(false, Ordering::AcqRel) {
            // A counter that is full wakes the reactor as well.
            let _ = (&shared.counter).write(&1_u64.to_ne_bytes());
        }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.counter.as_fd()
    }

    /// Announces a sleep. Returns false if `wake` was called, so that the reactor must not sleep.
    pub(super) fn announce_sleep(&self) -> bool {
        self.0.asleep.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        !self.0.called.load(Ordering::Acquire)
    }

    pub(super) fn woke(&self) {
        self.0.asleep.swap(false, Ordering::AcqRel);
        self.0.called.swap(false, Ordering::AcqRel);
    }

    pub(super) fn clear(&self) {
        // If there is nothing to read, that is what is wanted.
        let _ = (&self.0.counter).read(&mut [0; 8]);
    }
}
