//! Pages brought ahead of their faults, in the recorded order, a few at a time: between two windows
//! the thread looks for faults, which come first.
//!
//! A window is sorted by address, so that neighbours go into place by one order to the kernel. The
//! order within a window does not matter much, because all of it takes less than a millisecond.

use std::sync::Arc;

use dyno_pages::{Handle, PAGE_BYTES};
use dyno_pages_region::userfault::Ordered;

use crate::PagerError;
use crate::figures::add;
use crate::machine::{Machine, again_later, is_zero};
use crate::working_set::WorkingSet;

const PAGE: u64 = PAGE_BYTES as u64;
/// Pages of a window: a fault that comes meanwhile waits for as long as they take.
const WINDOW_PAGES: usize = 64;

/// The place in the order.
#[derive(Debug)]
pub struct Prefetch {
    set: Arc<WorkingSet>,
    next: usize,
}

/// What became of a window.
pub enum Window {
    /// It is done, and there are more pages.
    More,
    /// The memory is being changed; the same window is tried again.
    Refused,
    /// It is done, and was the last one.
    Over,
    /// The process has ended, and its memory with it.
    Gone,
}

/// Neighbours in memory that are all zeros, or none of them.
struct Run {
    address: u64,
    /// Numbers of the pages in the snapshot.
    pages: Vec<u64>,
    /// Their bytes; none if they are zeros.
    bytes: Vec<u8>,
}

impl Prefetch {
    pub fn new(set: Arc<WorkingSet>) -> Self {
        Self { set, next: 0 }
    }

    /// Puts the next pages in place, those that are not there yet.
    pub fn window(
        &mut self,
        machine: &mut Machine,
        handle: &mut Handle<'_>,
    ) -> Result<Window, PagerError> {
        let pages = self.set.pages();
        let end = pages.len().min(self.next + WINDOW_PAGES);
        for run in runs(&pages[self.next..end], machine, handle) {
            match run.place(machine)? {
                Ordered::Changing => return Ok(Window::Refused),
                Ordered::Gone => return Ok(Window::Gone),
                Ordered::Done(_) | Ordered::Exists | Ordered::Unmapped => {}
            }
        }
        self.next = end;
        Ok(if end == pages.len() {
            Window::Over
        } else {
            Window::More
        })
    }
}

/// Reads the pages that are still to come, and joins those that are neighbours in one region.
fn runs(pages: &[u32], machine: &Machine, handle: &mut Handle<'_>) -> Vec<Run> {
    let missing = pages
        .iter()
        .map(|&page| u64::from(page))
        .filter(|&page| !machine.spent.contains(page));
    let mut places: Vec<(u64, u64)> = missing
        .filter_map(|page| Some((machine.layout.address_of(page)?, page)))
        .collect();
    places.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    let mut bytes = Box::new([0; PAGE_BYTES]);
    for (address, page) in places {
        // A damaged page is left to the fault that asks for it, which says so.
        if handle.read(page, &mut bytes).is_err() {
            continue;
        }
        let zero = is_zero(&bytes);
        // An order must not reach into another mapping, and regions are mappings.
        let joins = |run: &Run| {
            run.bytes.is_empty() == zero
                && run.address + run.pages.len() as u64 * PAGE == address
                && !machine.layout.begins_region(address)
        };
        if !runs.last().is_some_and(joins) {
            runs.push(Run {
                address,
                pages: Vec::new(),
                bytes: Vec::new(),
            });
        }
        if let Some(run) = runs.last_mut() {
            run.pages.push(page);
            if !zero {
                run.bytes.extend_from_slice(&*bytes);
            }
        }
    }
    runs
}

impl Run {
    /// Puts a run in place. A page that is there already divides it: the kernel stops in front of
    /// it, and the rest is another order.
    fn place(&self, machine: &mut Machine) -> Result<Ordered, PagerError> {
        let zero = self.bytes.is_empty();
        let mut done = 0;
        while done < self.pages.len() {
            let address = self.address + done as u64 * PAGE;
            let left = (self.pages.len() - done) as u64 * PAGE;
            let ordered = if zero {
                machine.faults.zero(address, left)
            } else {
                machine
                    .faults
                    .copy(address, &self.bytes[done * PAGE_BYTES..])
            };
            let ordered = again_later(ordered).map_err(PagerError::system("bring pages ahead"))?;
            let settled = match ordered {
                Ordered::Done(bytes) => {
                    let pages = bytes / PAGE_BYTES;
                    add(&machine.counters.prefetched, pages as u64);
                    if zero {
                        add(&machine.counters.zeros, pages as u64);
                    }
                    pages
                }
                // An earlier pager served a fault there and did not live to mark it.
                Ordered::Exists => 1,
                // The addresses are unmapped, or the VMM has divided the mapping within them. The
                // rest is left to faults, and is not marked: no page of it came.
                Ordered::Unmapped => return Ok(Ordered::Unmapped),
                Ordered::Changing | Ordered::Gone => return Ok(ordered),
            };
            for &page in &self.pages[done..done + settled] {
                machine.spent.insert(page..page + 1);
            }
            done += settled;
        }
        Ok(Ordered::Done(done * PAGE_BYTES))
    }
}
