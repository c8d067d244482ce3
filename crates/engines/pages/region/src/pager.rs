//! The thread that brings pages in and out. Has `unsafe`: waiting for two descriptors at once, and a
//! line to standard error.
//!
//! It alone knows which pages are in memory, so it needs no lock. A thread that waits for a page can
//! wait for nobody else: what cannot be mended here ends the process, with the reason on standard error.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

use dyno_pages::{Lane, PAGE_BYTES, Page, Store, StoreError};

use crate::Counters;
use crate::area::Area;
use crate::userfault::{Fault, Userfault};

/// The order to store every changed page.
pub const STORE_ALL: u8 = 1;
/// Pages that are tried when the store has no space for the first.
const MOST_TRIED: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the store alone.
    Out,
    /// In memory as in the store, and protected: a write is handed over first.
    Clean,
    /// In memory, perhaps not as in the store.
    Changed,
    /// Damaged; a touch raises SIGBUS.
    Poisoned,
}

/// See the top.
pub struct Pager {
    area: Arc<Area>,
    faults: Userfault,
    states: Box<[State]>,
    /// Pages in memory, the one that has been there longest first.
    resident: VecDeque<u64>,
    most_resident: u64,
    counters: Arc<Counters>,
    said: Sender<Result<(), StoreError>>,
    page: Box<Page>,
}

/// Ends the process if the pager does not end as it should.
struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

impl Pager {
    /// For the pages of `area`.
    pub fn new(
        area: Arc<Area>,
        faults: Userfault,
        most_resident: u64,
        counters: Arc<Counters>,
        said: Sender<Result<(), StoreError>>,
    ) -> Self {
        let pages = area.bytes() / PAGE_BYTES;
        Self {
            states: vec![State::Out; pages].into(),
            resident: VecDeque::with_capacity(most_resident.min(pages as u64) as usize + 1),
            area,
            faults,
            most_resident,
            counters,
            said,
            page: Box::new([0; PAGE_BYTES]),
        }
    }

    /// Serves faults until the other end of `orders` closes.
    pub fn run(mut self, store: &Store, mut orders: PipeReader) {
        let _last = Last;
        let served = store
            .lane()
            .map_err(io::Error::other)
            .and_then(|mut lane| self.serve(&mut lane, &mut orders));
        if let Err(error) = served {
            say(&format!("cannot bring pages in any more: {error}"));
            std::process::abort();
        }
    }

    fn serve(&mut self, lane: &mut Lane<'_>, orders: &mut PipeReader) -> io::Result<()> {
        let mut faults = Vec::new();
        loop {
            let (faulted, ordered) = self.wait(orders)?;
            if faulted {
                self.faults.faults(&mut faults)?;
            }
            for fault in faults.drain(..) {
                self.fault(lane, fault)?;
            }
            if ordered {
                if orders.read(&mut [0])? == 0 {
                    return Ok(());
                }
                let stored = self.store_all(lane)?;
                // The region waits for it.
                let _ = self.said.send(stored);
            }
        }
    }

    /// Whether there are faults, and whether there are orders or the end of them.
    fn wait(&self, orders: &PipeReader) -> io::Result<(bool, bool)> {
        let mut both =
            [self.faults.file().as_raw_fd(), orders.as_raw_fd()].map(|fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            });
        // SAFETY: the structures live through the call.
        if unsafe { libc::poll(both.as_mut_ptr(), 2, -1) } < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok((false, false)),
                _ => Err(error),
            };
        }
        Ok((both[0].revents != 0, both[1].revents != 0))
    }

    fn fault(&mut self, lane: &mut Lane<'_>, fault: Fault) -> io::Result<()> {
        let number = (fault.address - self.area.start() as u64) / PAGE_BYTES as u64;
        let at = self.area.page(number);
        match self.states[number as usize] {
            State::Out if fault.protected => self.faults.wake(at),
            State::Out => self.bring_in(lane, number, fault.write),
            State::Clean if fault.write => {
                self.states[number as usize] = State::Changed;
                self.counters.changes.fetch_add(1, Relaxed);
                self.faults.protect(at, false)
            }
            // Two threads had touched it at once; the second one only has to look again.
            State::Clean | State::Changed => self.faults.wake(at),
            State::Poisoned => self.faults.wake(at),
        }
    }

    fn bring_in(&mut self, lane: &mut Lane<'_>, number: u64, write: bool) -> io::Result<()> {
        let at = self.area.page(number);
        if let Err(error) = lane.read(number, &mut self.page) {
            say(&error.to_string());
            self.counters.poisoned.fetch_add(1, Relaxed);
            self.states[number as usize] = State::Poisoned;
            self.faults.poison(at)?;
            return self.faults.wake(at);
        }
        self.states[number as usize] = if write { State::Changed } else { State::Clean };
        self.resident.push_back(number);
        self.counters.faults.fetch_add(1, Relaxed);
        self.counters.resident.fetch_add(1, Relaxed);
        if !self.faults.place(at, &self.page, !write)? {
            return Err(io::Error::other(format!("page {number} came by itself")));
        }
        // Whoever waited goes on; the room for the next page is made meanwhile.
        self.make_room(lane)
    }

    /// Takes pages out until one more is within the bound.
    fn make_room(&mut self, lane: &mut Lane<'_>) -> io::Result<()> {
        let mut tries = 0;
        while self.resident.len() as u64 >= self.most_resident && tries < MOST_TRIED {
            tries += 1;
            let Some(number) = self.resident.pop_front() else {
                return Ok(());
            };
            if !self.take_out(lane, number)? {
                self.resident.push_back(number);
            }
        }
        Ok(())
    }

    /// False: the store has no space for it.
    fn take_out(&mut self, lane: &mut Lane<'_>, number: u64) -> io::Result<bool> {
        let at = self.area.page(number);
        let changed = self.states[number as usize] == State::Changed;
        if changed {
            if self.keep(lane, number)?.is_err() {
                self.counters.refused.fetch_add(1, Relaxed);
                return Ok(false);
            }
            self.counters.packed.fetch_add(1, Relaxed);
        } else {
            self.counters.dropped.fetch_add(1, Relaxed);
        }
        self.states[number as usize] = State::Out;
        self.counters.resident.fetch_sub(1, Relaxed);
        self.area.drop_page(number)?;
        // Who came to write while it was protected finds it missing now.
        self.faults.wake(at)?;
        Ok(true)
    }

    /// Stores a changed page, which is clean then; it stays as it was when the store has no space.
    fn keep(&mut self, lane: &mut Lane<'_>, number: u64) -> io::Result<Result<(), StoreError>> {
        let at = self.area.page(number);
        self.faults.protect(at, true)?;
        self.area.copy_out(number, &mut self.page);
        let stored = lane.write(number, &self.page);
        match stored {
            Ok(()) => self.states[number as usize] = State::Clean,
            Err(_) => self.faults.protect(at, false)?,
        }
        Ok(stored)
    }

    fn store_all(&mut self, lane: &mut Lane<'_>) -> io::Result<Result<(), StoreError>> {
        for at in 0..self.resident.len() {
            let number = self.resident[at];
            if self.states[number as usize] == State::Changed {
                let stored = self.keep(lane, number)?;
                if stored.is_err() {
                    return Ok(stored);
                }
                self.counters.packed.fetch_add(1, Relaxed);
            }
        }
        Ok(Ok(()))
    }
}

/// A line on standard error, past the lock of the standard library: who holds that may be waiting for a
/// page.
fn say(what: &str) {
    let line = format!("region: {what}\n");
    // SAFETY: the bytes live through the call. Where nobody can be told, nothing is lost but the line.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
