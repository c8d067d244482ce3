//! A region of memory that is larger than the memory it takes: its pages live compressed in a
//! store, and come back when they are touched. Has `unsafe`: the area as a slice.
//!
//! What it is: [`Region`], a `[u8]` of all pages of a store, of which at most a given number are
//! really in memory. A touch of another page is a fault that the system hands to a thread of ours
//! (userfaultfd, Linux 5.7 or later), which puts the page in place and packs the one that has been
//! there longest instead. A page that was only read is dropped without packing.
//!
//! **Privileges.** Full access needs `CAP_SYS_PTRACE`, or the right to open `/dev/userfaultfd`, or
//! `vm.unprivileged_userfaultfd = 1`. Without any of them the region still works for loads and
//! stores of the program, but a system call fails with EFAULT if it is given a part of the region
//! that is not in memory ([`Access::ProgramOnly`]). Where even that is forbidden, there is
//! [`RegionError::NotAllowed`].
//!
//! **Direct I/O.** A page that the kernel has pinned for a transfer stays in memory until the
//! transfer is over, even beyond the limit. That takes Linux 6.8; on an older kernel the region is
//! only for system calls that copy ([`Access::CopiesOnly`]). Pages that the kernel uses by
//! reference and not by a pin (direct I/O on NFS, `vmsplice`) cannot be noticed: keep such memory
//! out of a region.
//!
//! What it is not: durable, or kept when it is dropped; [`Region::store_all`] stores everything. A
//! page that comes back damaged raises SIGBUS where it is touched, as failing memory does.
//!
//! ```
//! use std::sync::Arc;
//! use dyno_pages::{Settings, Store};
//! use dyno_pages_region::{Region, RegionError};
//!
//! let store = Arc::new(Store::create(Settings::new(1000, 1 << 20))?);
//! let mut region = match Region::new(store, 16) {
//!     Err(RegionError::NotAllowed { .. }) => return Ok(()),
//!     made => made?,
//! };
//! region.fill(42);
//! assert!(region.iter().all(|&byte| byte == 42));
//! assert!(region.figures().resident_pages <= 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod area;
mod error;
mod pager;
pub mod userfault;

use std::io::{PipeWriter, Write};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use dyno_pages::{PAGE_BYTES, Store, StoreError};

pub use area::Area;
pub use error::RegionError;
use pager::{Pager, STORE_ALL};
pub use userfault::Access;
use userfault::Userfault;

/// The fewest pages that a region keeps in memory: one instruction can touch a few at once, and
/// none of them may push out another before it is done.
pub const LEAST_RESIDENT_PAGES: u64 = 8;

/// A `[u8]` of all pages of a store, of which a limited number are in memory.
#[derive(Debug)]
pub struct Region {
    area: Arc<Area>,
    access: Access,
    counters: Arc<Counters>,
    /// Orders to the pager thread, which ends when this closes.
    orders: Option<PipeWriter>,
    done: Receiver<Result<(), StoreError>>,
    pager: Option<JoinHandle<()>>,
}

/// Counters that the pager writes and [`Region::figures`] reads.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub resident: AtomicU64,
    pub faults: AtomicU64,
    pub changes: AtomicU64,
    pub dropped: AtomicU64,
    pub packed: AtomicU64,
    pub refused: AtomicU64,
    pub pinned: AtomicU64,
    pub poisoned: AtomicU64,
}

/// Figures of one moment. All but the first count since the region was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Pages that are uncompressed in memory now.
    pub resident_pages: u64,
    /// Pages that were brought in by a touch.
    pub faults: u64,
    /// First writes to pages that had been brought in by a read; each is a fault of its own.
    pub changes: u64,
    /// Pages taken out without packing, because nothing had changed them.
    pub dropped: u64,
    /// Pages that were packed into the store.
    pub packed: u64,
    /// How often the store had no space for a page, which then stayed in memory.
    pub refused: u64,
    /// How often the kernel was using a page (direct I/O, registered buffers), which then stayed in
    /// memory, beyond the limit if necessary.
    pub pinned: u64,
    /// Damaged pages; a touch of them raises SIGBUS.
    pub poisoned: u64,
}

impl Region {
    /// Maps all pages of `store`, with their contents. At most `resident_pages` of them are
    /// uncompressed at any moment, unless the store has no space left for the others or the kernel
    /// is using them: then pages stay, and [`Figures::refused`] and [`Figures::pinned`] count them.
    /// No other part of the program may use the store meanwhile.
    ///
    /// # Errors
    /// [`RegionError::NotAllowed`], or when the system has no address space or thread.
    pub fn new(store: Arc<Store>, resident_pages: u64) -> Result<Self, RegionError> {
        if resident_pages < LEAST_RESIDENT_PAGES {
            return Err(RegionError::TooFew {
                pages: resident_pages,
            });
        }
        let area = Arc::new(Area::new(store.pages() as usize * PAGE_BYTES)?);
        let (faults, access) = Userfault::open()?;
        faults.register(area.start(), area.bytes())?;
        let (orders, end) = std::io::pipe().map_err(RegionError::system("make a pipe"))?;
        let (answers, done) = channel();
        let counters = Arc::new(Counters::default());
        let aside = Area::new(PAGE_BYTES)?;
        faults.register(aside.start(), aside.bytes())?;
        let pager = Pager::new(
            Arc::clone(&area),
            aside,
            faults,
            resident_pages,
            Arc::clone(&counters),
            answers,
        );
        let pager = std::thread::Builder::new()
            .name("region-pager".to_owned())
            .spawn(move || pager.run(&store, orders))
            .map_err(RegionError::system("start a thread"))?;
        Ok(Self {
            area,
            access,
            counters,
            orders: Some(end),
            done,
            pager: Some(pager),
        })
    }

    /// Which code may touch the region, as far as this system allows.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Stores every page that was changed; the pages stay in memory. If a transfer goes into a page
    /// meanwhile, what is there now is stored; what comes later is stored later.
    ///
    /// # Errors
    /// [`StoreError::NoSpace`]; pages before the failing one are stored.
    pub fn store_all(&mut self) -> Result<(), StoreError> {
        let system = |source| StoreError::System {
            what: "cannot reach the thread that pages",
            source,
        };
        if let Some(orders) = &mut self.orders {
            orders.write_all(&[STORE_ALL]).map_err(system)?;
        }
        match self.done.recv() {
            Ok(done) => done,
            Err(_) => Err(system(std::io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Reads the counters, each by itself.
    pub fn figures(&self) -> Figures {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        Figures {
            resident_pages: of(&self.counters.resident),
            faults: of(&self.counters.faults),
            changes: of(&self.counters.changes),
            dropped: of(&self.counters.dropped),
            packed: of(&self.counters.packed),
            refused: of(&self.counters.refused),
            pinned: of(&self.counters.pinned),
            poisoned: of(&self.counters.poisoned),
        }
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, of any content; changed through `&mut self`
        // alone. The pager moves pages as the system does when it swaps, without changing a byte.
        unsafe { std::slice::from_raw_parts(self.area.start(), self.area.bytes()) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: see above; and the borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.area.start(), self.area.bytes()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(pager) = self.pager.take() {
            // The pager aborts the process rather than panics, because a thread that waits for a
            // page could not go on without it.
            let _ = pager.join();
        }
    }
}
