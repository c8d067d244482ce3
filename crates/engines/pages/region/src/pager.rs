//! The thread that brings pages in and out. Has `unsafe`: waiting for two descriptors at once, and
//! writing a line to standard error.
//!
//! **Pages that the kernel uses.** A transfer (O_DIRECT, registered buffers of io_uring) pins the
//! pages that it goes into, and ends in them whether they are mapped or not. If such a page were
//! copied out and dropped meanwhile, what comes later would be lost. So a changed page is not
//! copied where it is: it is moved out first, a step that the system refuses for a pinned page, and
//! copied from there. A page that was not changed since it came in is not pinned for writing,
//! because that would be a write to it.
//!
//! Only this thread knows which pages are in memory, so it needs no lock. A thread that waits for a
//! page cannot be woken by any other thread: what cannot be repaired here ends the process, with
//! the reason on standard error.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

use dyno_pages::{Handle, PAGE_BYTES, Page, Store, StoreError};

use crate::Counters;
use crate::area::Area;
use crate::userfault::{Fault, Moved, Userfault};

/// The order to store every changed page.
pub const STORE_ALL: u8 = 1;
/// How many pages are tried in turn when the first one cannot leave memory.
const MOST_TRIED: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The page is in the store alone.
    Out,
    /// In memory as in the store, and protected: a write faults first.
    Clean,
    /// In memory, perhaps with other contents than in the store.
    Changed,
    /// Damaged in the store; a touch raises SIGBUS.
    Poisoned,
}

/// The state of the thread: which pages are in memory, and in which order they came.
pub struct Pager {
    area: Arc<Area>,
    /// Where a page is moved to be copied; this thread touches it only while a page is there.
    aside: Area,
    faults: Userfault,
    states: Box<[State]>,
    /// Pages in memory, the one that has been there longest first.
    resident: VecDeque<u64>,
    most_resident: u64,
    counters: Arc<Counters>,
    answers: Sender<Result<(), StoreError>>,
    page: Box<Page>,
}

/// What became of a page that was to be stored.
enum StoreOutcome {
    /// The page is in the store.
    Stored,
    /// The kernel uses the page; it stays where it was.
    InUse,
    /// The store has no space for the page; it stays where it was.
    Refused(StoreError),
}

/// Ends the process if the pager panics.
struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

impl Pager {
    pub fn new(
        area: Arc<Area>,
        aside: Area,
        faults: Userfault,
        most_resident: u64,
        counters: Arc<Counters>,
        answers: Sender<Result<(), StoreError>>,
    ) -> Self {
        let pages = area.bytes() / PAGE_BYTES;
        Self {
            states: vec![State::Out; pages].into(),
            resident: VecDeque::with_capacity(most_resident.min(pages as u64) as usize + 1),
            area,
            aside,
            faults,
            most_resident,
            counters,
            answers,
            page: Box::new([0; PAGE_BYTES]),
        }
    }

    /// Serves faults until the other end of `orders` closes.
    pub fn run(mut self, store: &Store, mut orders: PipeReader) {
        let _last = Last;
        let served = store
            .handle()
            .map_err(io::Error::other)
            .and_then(|mut handle| self.serve(&mut handle, &mut orders));
        if let Err(error) = served {
            say(&format!("cannot bring pages in any more: {error}"));
            std::process::abort();
        }
    }

    fn serve(&mut self, handle: &mut Handle<'_>, orders: &mut PipeReader) -> io::Result<()> {
        let mut faults = Vec::new();
        loop {
            let (faulted, ordered) = self.wait(orders)?;
            if faulted {
                self.faults.faults(&mut faults)?;
            }
            for fault in faults.drain(..) {
                self.fault(handle, fault)?;
            }
            if ordered {
                if orders.read(&mut [0])? == 0 {
                    return Ok(());
                }
                let stored = self.store_all(handle)?;
                // The region waits for the answer; if it was dropped instead, there is nothing to
                // tell.
                let _ = self.answers.send(stored);
            }
        }
    }

    /// Waits, and returns whether there are faults, and whether there are orders or the end of
    /// them.
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

    fn fault(&mut self, handle: &mut Handle<'_>, fault: Fault) -> io::Result<()> {
        let number = (fault.address - self.area.start() as u64) / PAGE_BYTES as u64;
        let at = self.area.page(number);
        match self.states[number as usize] {
            // The write waited at a protected page that was taken out meanwhile: woken, it faults
            // again, now because the page is missing.
            State::Out if fault.protected => self.faults.wake(at),
            State::Out => self.bring_in(handle, number, fault.write),
            State::Clean if fault.write => {
                self.states[number as usize] = State::Changed;
                self.counters.changes.fetch_add(1, Relaxed);
                self.faults.protect(at, false)
            }
            // Two threads touched the page at once; the second one only has to look again.
            State::Clean | State::Changed => self.faults.wake(at),
            State::Poisoned => self.faults.wake(at),
        }
    }

    fn bring_in(&mut self, handle: &mut Handle<'_>, number: u64, write: bool) -> io::Result<()> {
        let at = self.area.page(number);
        if let Err(error) = handle.read(number, &mut self.page) {
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
        self.put_back(number, !write)?;
        // The thread that waited goes on already; room for the next page is made while it runs.
        self.make_room(handle)
    }

    /// Takes pages out until one more fits within the limit, or none of a few can leave.
    fn make_room(&mut self, handle: &mut Handle<'_>) -> io::Result<()> {
        let mut tries = 0;
        while self.resident.len() as u64 >= self.most_resident && tries < MOST_TRIED {
            tries += 1;
            let Some(number) = self.resident.pop_front() else {
                return Ok(());
            };
            if !self.take_out(handle, number)? {
                self.resident.push_back(number);
            }
        }
        Ok(())
    }

    /// Takes a page out. Returns false if it stays, because the store has no space for it or the
    /// kernel uses it.
    fn take_out(&mut self, handle: &mut Handle<'_>, number: u64) -> io::Result<bool> {
        let at = self.area.page(number);
        if self.states[number as usize] == State::Changed {
            match self.move_out(handle, number)? {
                StoreOutcome::Stored => self.counters.packed.fetch_add(1, Relaxed),
                StoreOutcome::InUse => {
                    self.counters.pinned.fetch_add(1, Relaxed);
                    return Ok(false);
                }
                StoreOutcome::Refused(_) => {
                    self.counters.refused.fetch_add(1, Relaxed);
                    return Ok(false);
                }
            };
        } else {
            self.counters.dropped.fetch_add(1, Relaxed);
            self.area.drop_page(number)?;
        }
        self.states[number as usize] = State::Out;
        self.counters.resident.fetch_sub(1, Relaxed);
        // A thread may have come to write while the page was protected or on its way; woken, it
        // finds the page missing and faults again.
        self.faults.wake(at)?;
        Ok(true)
    }

    /// Stores a changed page and takes it out of memory.
    fn move_out(&mut self, handle: &mut Handle<'_>, number: u64) -> io::Result<StoreOutcome> {
        let at = self.area.page(number);
        if !self.faults.moves() {
            let outcome = self.copy_out(handle, number)?;
            if matches!(outcome, StoreOutcome::Stored) {
                self.area.drop_page(number)?;
            }
            return Ok(outcome);
        }
        if self.faults.move_page(at, self.aside.start())? == Moved::InUse {
            return Ok(StoreOutcome::InUse);
        }
        // From here on a touch of the page faults and waits for this thread, so nothing can change
        // it between the copy and the store's write.
        self.aside.copy_out(0, &mut self.page);
        self.aside.drop_page(0)?;
        if let Err(error) = handle.write(number, &self.page) {
            self.put_back(number, false)?;
            return Ok(StoreOutcome::Refused(error));
        }
        Ok(StoreOutcome::Stored)
    }

    /// Puts the copied page back where it was, and wakes the threads that wait for it.
    fn put_back(&mut self, number: u64, protect: bool) -> io::Result<()> {
        let at = self.area.page(number);
        if !self.faults.place(at, &self.page, protect)? {
            return Err(io::Error::other(format!("page {number} came by itself")));
        }
        Ok(())
    }

    /// Stores a changed page where it is, for a kernel that cannot move pages; the page is clean
    /// then.
    fn copy_out(&mut self, handle: &mut Handle<'_>, number: u64) -> io::Result<StoreOutcome> {
        let at = self.area.page(number);
        self.faults.protect(at, true)?;
        self.area.copy_out(number, &mut self.page);
        match handle.write(number, &self.page) {
            Ok(()) => {
                self.states[number as usize] = State::Clean;
                Ok(StoreOutcome::Stored)
            }
            Err(error) => {
                self.faults.protect(at, false)?;
                Ok(StoreOutcome::Refused(error))
            }
        }
    }

    /// Stores a changed page, which stays in memory. A page that the kernel is using is stored as
    /// it is now and still counts as changed, because the transfer may change it later.
    fn keep(&mut self, handle: &mut Handle<'_>, number: u64) -> io::Result<StoreOutcome> {
        if !self.faults.moves() {
            return self.copy_out(handle, number);
        }
        match self.move_out(handle, number)? {
            StoreOutcome::Stored => {
                self.put_back(number, true)?;
                self.states[number as usize] = State::Clean;
                Ok(StoreOutcome::Stored)
            }
            StoreOutcome::InUse => {
                let at = self.area.page(number);
                self.faults.protect(at, true)?;
                self.area.copy_out(number, &mut self.page);
                let stored = handle.write(number, &self.page);
                self.faults.protect(at, false)?;
                Ok(stored.map_or_else(StoreOutcome::Refused, |()| StoreOutcome::InUse))
            }
            refused => Ok(refused),
        }
    }

    fn store_all(&mut self, handle: &mut Handle<'_>) -> io::Result<Result<(), StoreError>> {
        for at in 0..self.resident.len() {
            let number = self.resident[at];
            if self.states[number as usize] == State::Changed {
                if let StoreOutcome::Refused(error) = self.keep(handle, number)? {
                    return Ok(Err(error));
                }
                self.counters.packed.fetch_add(1, Relaxed);
            }
        }
        Ok(Ok(()))
    }
}

/// Writes a line to standard error without the lock of the standard library: the thread that holds
/// that lock may be waiting for a page.
fn say(what: &str) {
    let line = format!("region: {what}\n");
    // SAFETY: the bytes live through the call. If standard error is closed, only the line is lost.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
