//! One virtual machine: the thread that reads its events and serves its faults.
//!
//! **Order.** The kernel hands out faults before other events, and refuses every order while one of
//! these waits to be read (EAGAIN). So all events are read first, pages that were given up are
//! marked, and then faults are answered; an answer that is refused is tried again after the next
//! look at the events. A fault behind a removal cannot be read before it, because the thread that
//! gives pages up goes on only when its event was read.
//!
//! **What a page is.** A page that was put in place once, or was given up, is zeros from then on
//! (`spent.rs`). So an answer that comes twice, or to a fault that another answer has settled, does
//! no harm: the page is there, the kernel says so, and the threads that wait are woken.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_pages::{Handle, PAGE_BYTES, Page};
use dyno_pages_region::userfault::{Event, Fault, Ordered, Userfault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::{error, warn};

use crate::PagerError;
use crate::figures::{Counters, add};
use crate::layout::Layout;
use crate::plan::{Plan, Recorder};
use crate::prefetch::{Prefetch, Window};
use crate::snapshot::Snapshot;
use crate::spent::Spent;

const PAGE: u64 = PAGE_BYTES as u64;
/// How long the thread waits for events before it looks whether the VMM is still there.
const LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// How long it asks again and again for the next fault before it sleeps, if the last one came as
/// soon. A thread that is woken for a page and touches the next one takes less, and to be woken
/// costs the pager more than to serve a page.
const SOON: Duration = Duration::from_micros(40);
/// How long it waits between two tries while the memory is being changed.
const RETRY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000,
};
const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Everything by which a machine is served.
#[derive(Debug)]
pub struct Machine {
    /// The number by which messages name it.
    pub number: u32,
    pub layout: Layout,
    pub faults: Arc<Userfault>,
    pub spent: Spent,
    /// The connection of the handshake; `None` once it has ended, or if an earlier pager had it.
    pub connection: Option<UnixStream>,
    pub counters: Arc<Counters>,
}

/// Why a machine is not served any longer.
#[derive(Debug)]
pub enum End {
    /// Its process has ended, and its memory with it.
    Gone,
    /// The pager stops; the machine lives, and the next pager takes it over.
    Stopped,
}

/// Takes a recording at its end: the recorder, or `None` if nothing can be concluded from it. It
/// does not wait for a disk, because faults would wait too.
pub type Recorded<'a> = &'a dyn Fn(Option<Recorder>);

/// A machine that is being served.
pub struct Serving<'a> {
    machine: Machine,
    plan: Plan,
    /// Takes what was recorded.
    recorded: Recorded<'a>,
    prefetch: Option<Prefetch>,
    handle: Handle<'a>,
    page: Box<Page>,
    /// Addresses of faults that are not answered yet.
    waiting: Vec<u64>,
    /// Whether the last answer was refused because the memory was being changed.
    refused: bool,
    /// Whether the last events came within [`SOON`].
    soon: bool,
}

/// What there is to do.
struct Ready {
    events: bool,
    hung_up: bool,
    stop: bool,
    nothing: bool,
}

impl<'a> Serving<'a> {
    pub fn new(
        machine: Machine,
        snapshot: &'a Snapshot,
        plan: Plan,
        recorded: Recorded<'a>,
    ) -> Result<Self, PagerError> {
        let prefetch = match &plan {
            Plan::Prefetch(set) => Some(Prefetch::new(Arc::clone(set))),
            Plan::Faults | Plan::Record(_) => None,
        };
        Ok(Self {
            machine,
            plan,
            recorded,
            prefetch,
            handle: snapshot.store().handle()?,
            page: Box::new([0; PAGE_BYTES]),
            waiting: Vec::new(),
            refused: false,
            soon: false,
        })
    }

    /// Has threads touch again what they wait for. The kernel hands out a fault once: those that an
    /// earlier pager read and did not answer would wait for ever.
    pub fn wake_all(&self) -> Result<(), PagerError> {
        for region in self.machine.layout.regions() {
            self.machine
                .faults
                .wake_all(region.base, region.bytes)
                .map_err(PagerError::system("wake threads that wait for pages"))?;
        }
        Ok(())
    }

    /// Serves until the machine ends or `stop` closes at its other end.
    ///
    /// # Errors
    /// When the system refuses what it should do; the machine is not served any longer then.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<End, PagerError> {
        let served = self.serve(stop);
        if let Plan::Record(recorder) = std::mem::replace(&mut self.plan, Plan::Faults) {
            // A machine that was cut off by a stop of the pager may have touched half of what it
            // would have.
            let whole = matches!(served, Ok(End::Gone));
            (self.recorded)(whole.then_some(recorder));
        }
        served
    }

    fn serve(&mut self, stop: BorrowedFd<'_>) -> Result<End, PagerError> {
        let mut events = Vec::new();
        loop {
            let ready = self.wait(stop)?;
            if ready.stop {
                return Ok(End::Stopped);
            }
            if ready.events {
                let read = PagerError::system("read the events of a machine");
                let all = self.machine.faults.events(&mut events).map_err(read)?;
                for event in events.drain(..) {
                    self.take(event);
                }
                // Events that explain these faults may be among those that are left.
                if !all {
                    continue;
                }
            }
            // The end of the connection is a hint only: a VMM may close it and live on.
            if (ready.hung_up || ready.nothing) && self.is_gone()? {
                return Ok(End::Gone);
            }
            if self.answer_all()? || self.bring_ahead()? {
                return Ok(End::Gone);
            }
            self.end_recording();
        }
    }

    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<Ready, PagerError> {
        let timeout = match (self.refused, &self.prefetch) {
            (true, _) => RETRY,
            (false, Some(_)) => AT_ONCE,
            (false, None) => LOOK,
        };
        let may_sleep = timeout == LOOK;
        let machine = &self.machine;
        // A machine that was taken over has no connection. The stop is then looked at twice, with
        // nothing asked of it the second time.
        let (third, of_third) = match &machine.connection {
            Some(connection) => (connection.as_fd(), PollFlags::RDHUP),
            None => (stop, PollFlags::empty()),
        };
        let mut files = [
            PollFd::from_borrowed_fd(machine.faults.file(), PollFlags::IN),
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(third, of_third),
        ];
        let began = Instant::now();
        let mut some = false;
        while may_sleep && self.soon && !some && began.elapsed() < SOON {
            some = poll_for(&mut files, &AT_ONCE)?;
        }
        if !some {
            poll_for(&mut files, &timeout)?;
        }
        self.soon = began.elapsed() < SOON;
        let found = |at: usize| files[at].revents();
        if found(0).intersects(PollFlags::ERR | PollFlags::NVAL) {
            // The kernel says so of a descriptor whose reads wait, as the VMM can make them.
            let error = io::Error::other("its descriptor does not tell of faults any more");
            return Err(PagerError::system("wait for events")(error));
        }
        let ready = Ready {
            events: !found(0).is_empty(),
            stop: !found(1).is_empty(),
            hung_up: !found(2).is_empty(),
            nothing: files.iter().all(|file| file.revents().is_empty()),
        };
        if ready.hung_up {
            self.machine.connection = None;
        }
        Ok(ready)
    }

    fn is_gone(&self) -> Result<bool, PagerError> {
        let first = self.machine.layout.regions()[0].base;
        self.machine
            .faults
            .is_gone(first)
            .map_err(PagerError::system("look for a machine's memory"))
    }

    fn take(&mut self, event: Event) {
        let number = self.machine.number;
        match event {
            Event::Fault(Fault {
                protected: true,
                address,
                ..
            }) => {
                warn!(
                    "microVM {number}: {address:#x} is protected from writing, which is not served"
                );
            }
            Event::Fault(fault) => {
                add(&self.machine.counters.faults, 1);
                self.waiting.push(fault.address & !(PAGE - 1));
            }
            Event::Removed(addresses) | Event::Unmapped(addresses) => {
                let Machine {
                    layout,
                    spent,
                    counters,
                    ..
                } = &mut self.machine;
                for pages in layout.pages_in(&addresses) {
                    add(&counters.removed, pages.end - pages.start);
                    spent.insert(pages);
                }
            }
            Event::Remapped { from, to, bytes } => {
                error!(
                    "microVM {number}: {bytes} bytes of its memory moved from {from:#x} to {to:#x}, where they are not \
                     served"
                );
            }
            Event::Forked(_) => {
                error!("microVM {number}: the VMM forks, and its child is not served");
            }
        }
    }

    /// Answers all faults that wait. Returns true if the process has ended.
    fn answer_all(&mut self) -> Result<bool, PagerError> {
        self.refused = false;
        let mut waiting = std::mem::take(&mut self.waiting);
        for &address in &waiting {
            match self.answer(address)? {
                Ordered::Gone => return Ok(true),
                Ordered::Changing => {
                    add(&self.machine.counters.deferred, 1);
                    self.refused = true;
                    self.waiting.push(address);
                }
                Ordered::Done(_) | Ordered::Exists | Ordered::Unmapped => {}
            }
        }
        if self.waiting.is_empty() {
            // The allocation is kept for the next faults.
            waiting.clear();
            self.waiting = waiting;
        }
        Ok(false)
    }

    /// Answers one fault, and says what the kernel said.
    fn answer(&mut self, address: u64) -> Result<Ordered, PagerError> {
        let Some(page) = self.machine.layout.page_at(address) else {
            let number = self.machine.number;
            error!(
                "microVM {number}: {address:#x} lies in no region of the handshake; a touch of it raises SIGBUS"
            );
            return Ok(self.poison(address)?.unwrap_or(Ordered::Done(0)));
        };
        let spent = self.machine.spent.contains(page);
        let done = if spent {
            self.zero(address)?
        } else {
            match self.handle.read(page, &mut self.page) {
                Ok(()) if is_zero(&self.page) => self.zero(address)?,
                Ok(()) => self.place(address)?,
                Err(why) => {
                    let number = self.machine.number;
                    error!("microVM {number}: {why}; a touch of it raises SIGBUS");
                    match self.poison(address)? {
                        Some(done) => done,
                        // Not marked, or the page would be zeros for the next thread that asks.
                        None => return Ok(Ordered::Done(0)),
                    }
                }
            }
        };
        match done {
            Ordered::Done(_) | Ordered::Exists if !spent => {
                self.machine.spent.insert(page..page + 1);
                if let Plan::Record(recorder) = &mut self.plan {
                    recorder.touched(page);
                }
            }
            _ => {}
        }
        if matches!(done, Ordered::Exists | Ordered::Unmapped) {
            // The kernel wakes threads only for what it has done. One that waits for a page that
            // came by another answer has to look again.
            self.machine
                .faults
                .wake_all(address, PAGE)
                .map_err(PagerError::system("wake threads that wait for a page"))?;
        }
        Ok(done)
    }

    fn place(&self, address: u64) -> Result<Ordered, PagerError> {
        let done = again_later(self.machine.faults.copy(address, &*self.page))
            .map_err(PagerError::system("put a page in place"))?;
        if matches!(done, Ordered::Done(_)) {
            add(&self.machine.counters.placed, 1);
        }
        Ok(done)
    }

    fn zero(&self, address: u64) -> Result<Ordered, PagerError> {
        let done = again_later(self.machine.faults.zero(address, PAGE))
            .map_err(PagerError::system("put zeros in place"))?;
        if matches!(done, Ordered::Done(_)) {
            add(&self.machine.counters.placed, 1);
            add(&self.machine.counters.zeros, 1);
        }
        Ok(done)
    }

    /// Makes touches of a page raise SIGBUS. Returns `None` if the kernel cannot do it, as before
    /// Linux 6.6: a thread that waits for ever is better than one that goes on with wrong bytes.
    fn poison(&self, address: u64) -> Result<Option<Ordered>, PagerError> {
        add(&self.machine.counters.poisoned, 1);
        match self.machine.faults.poison_in(address) {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let number = self.machine.number;
                error!("microVM {number}: this kernel cannot do that ({error}): the thread waits");
                Ok(None)
            }
            Err(error) => Err(PagerError::system("poison a page")(error)),
        }
    }

    /// Brings some pages ahead if no fault waits. Returns true if the process has ended.
    fn bring_ahead(&mut self) -> Result<bool, PagerError> {
        let Some(prefetch) = &mut self.prefetch else {
            return Ok(false);
        };
        if !self.waiting.is_empty() {
            return Ok(false);
        }
        match prefetch.window(&mut self.machine, &mut self.handle)? {
            Window::More => {}
            Window::Refused => self.refused = true,
            Window::Over => self.prefetch = None,
            Window::Gone => return Ok(true),
        }
        Ok(false)
    }

    fn end_recording(&mut self) {
        if matches!(&self.plan, Plan::Record(recorder) if recorder.is_over())
            && let Plan::Record(recorder) = std::mem::replace(&mut self.plan, Plan::Faults)
        {
            (self.recorded)(Some(recorder));
        }
    }
}

/// Whether one of these has something to tell within that time.
fn poll_for(files: &mut [PollFd<'_>], timeout: &Timespec) -> Result<bool, PagerError> {
    match poll(files, Some(timeout)) {
        Ok(found) => Ok(found > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(PagerError::system("wait for events")(error)),
    }
}

/// A system that is short of memory for the moment may have some later.
pub fn again_later(done: io::Result<Ordered>) -> io::Result<Ordered> {
    match done {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOMEM.raw_os_error()) => {
            Ok(Ordered::Changing)
        }
        done => done,
    }
}

/// Whether a page is all zeros.
pub fn is_zero(page: &Page) -> bool {
    let (words, _) = page.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0)
}
