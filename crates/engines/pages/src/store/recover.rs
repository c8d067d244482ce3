//! Opens the memory of a store again after its process died, and checks every page.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use super::dictionary::Dictionary;
use super::file::{Backing, Start};
use super::shared::content_of;
use super::slot_access::{Extent, SUM_BYTES, extent};
use super::{BESIDE_SPANS, Settings, Store};
use crate::PAGE_BYTES;
use crate::arena::classes::SPAN_BYTES;
use crate::arena::layout::Layout;
use crate::arena::memory::Memory;
use crate::arena::slots::Slots;
use crate::error::{Damage, StoreError};
use crate::index::entry::{DAMAGED, Entry, Packing, Stored, upgraded};
use crate::index::lock::LOCKED;

/// What was found in a memory that was opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Pages that hold something.
    pub pages: u64,
    /// Entries whose lock a dead thread held; the pages are as they were before its call.
    pub unlocked: u64,
    /// Entries that pointed at no slot of their own, or at no page of the file. Each is replaced by
    /// a mark: reads of the page are refused until it is written again.
    pub damaged: u64,
}

/// A page that is not what was written.
#[derive(Debug)]
pub struct Bad {
    /// The number of the page.
    pub page: u64,
    /// How the damage shows.
    pub error: StoreError,
}

impl Store {
    /// Opens the memory of a store whose process is gone, however it ended. Sizes come from the
    /// memory, all else from `settings`. A backing file must be named again: without it the pages
    /// in it count as damaged and are lost.
    ///
    /// The index alone says what is where. A write that was cut off has either put its entry in
    /// place, and is done, or has not, and its slot is free.
    ///
    /// # Errors
    /// [`StoreError::Format`] when it is not a store or one of a later version,
    /// [`StoreError::InUse`] while another process has it.
    pub fn reopen(file: OwnedFd, settings: Settings) -> Result<(Self, Recovered), StoreError> {
        super::check(&settings)?;
        let mut memory = Memory::adopt(file)?;
        if !memory.layout().checked {
            upgrade(&mut memory);
        }
        let mut slots = Slots::new(memory.layout().spans);
        let backing = Backing::from_settings(&settings, Start::Kept)?;
        let mut found = Recovered::default();
        let mut places = memory.layout().shared.then(HashMap::new);
        for page in touched(&memory) {
            let entry = memory.entry(page);
            let word = entry.load(Relaxed);
            // The memory is ours alone (`Memory::adopt` holds its lock), so a set bit belongs to a
            // dead thread.
            if word & LOCKED != 0 {
                found.unlocked += 1;
                entry.store(word & !LOCKED, Relaxed);
            }
            match claim(
                &memory,
                &mut slots,
                backing.as_ref(),
                &mut places,
                word & !LOCKED,
            ) {
                Claim::Holds => found.pages += 1,
                Claim::Empty => {}
                Claim::Damaged => {
                    found.damaged += 1;
                    // Left in place, the entry could point at a slot that is given to another page
                    // from now on.
                    entry.store(DAMAGED, Relaxed);
                }
            }
        }
        slots.settle();
        let layout = memory.layout();
        let spans = layout.spans.saturating_sub(BESIDE_SPANS).max(1);
        let settings = Settings {
            pages: layout.pages,
            limit_bytes: u64::from(spans) * SPAN_BYTES as u64,
            share: layout.shared,
            ..settings
        };
        let dictionary = Dictionary::open(&memory)?;
        let store = Self::from_parts(memory, slots, backing, dictionary, settings);
        store.count_shared()?;
        Ok((store, found))
    }

    /// Counts how many entries point at each slot, and hashes what the slots hold.
    fn count_shared(&self) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else {
            return Ok(());
        };
        let mut handle = self.handle()?;
        let mut bytes = [0; PAGE_BYTES];
        for page in self.touched_from(0) {
            let Some(found) = Entry::unpack(self.peek(page)) else {
                continue;
            };
            // A page that repeats one word has a slot that is never shared.
            let stored = found.stored;
            if matches!(
                stored,
                Stored::Packed {
                    packing: Packing::Word,
                    ..
                }
            ) {
                continue;
            }
            // A damaged page equals no other page, but the entries at its slot are counted all the
            // same, so that the slot is freed with the last of them.
            let content = || {
                handle
                    .look(page, &mut bytes)
                    .ok()
                    .map(|()| content_of(&bytes))
            };
            shared.count(stored, content);
        }
        Ok(())
    }

    /// Reads every page, compares its checksum, and looks for two pages in one slot. No thread may
    /// write meanwhile. Returns the bad pages.
    ///
    /// # Errors
    /// When there is no memory for the contexts.
    pub fn check(&self) -> Result<Vec<Bad>, StoreError> {
        let mut handle = self.handle()?;
        let mut bytes = [0; PAGE_BYTES];
        let mut owners = HashMap::new();
        let mut bad = Vec::new();
        for page in self.touched_from(0) {
            let word = self.peek(page);
            if let Err(error) = handle.look(page, &mut bytes) {
                bad.push(Bad { page, error });
            }
            let slot = Entry::unpack(word).and_then(|found| extent(found.stored));
            if self.shared.is_some() {
                continue;
            }
            if let Some(Extent { at, .. }) = slot
                && owners.insert(at, page).is_some()
            {
                bad.push(Bad {
                    page,
                    error: StoreError::Corrupt {
                        page,
                        what: Damage::Shared,
                    },
                });
            }
        }
        Ok(bad)
    }
}

/// The pages whose entries were ever touched.
fn touched(memory: &Memory) -> impl Iterator<Item = u64> + '_ {
    let mut end = 0;
    std::iter::from_fn(move || {
        let run = memory.touched(end)?;
        end = run.end;
        Some(run)
    })
    .flatten()
}

/// Adds checks to the entries of a memory of version 1 or 2. The header changes last: a process
/// that is killed in between leaves an old memory of which some entries have checks, and the next
/// one goes on.
fn upgrade(memory: &mut Memory) {
    for page in touched(memory) {
        let entry = memory.entry(page);
        entry.store(upgraded(entry.load(Relaxed)), Relaxed);
    }
    let layout = *memory.layout();
    memory.renew_header(Layout {
        checked: true,
        ..layout
    });
}

/// What the entry of a page was found to point at.
enum Claim {
    /// The page holds something, and its bytes are claimed for it.
    Holds,
    Empty,
    /// It points at bytes that are not there or belong to another page.
    Damaged,
}

impl Claim {
    fn from_success(claimed: bool) -> Claim {
        if claimed {
            Claim::Holds
        } else {
            Claim::Damaged
        }
    }
}

/// Claims what an entry points at. `places` has the form found in each slot where pages may share
/// slots.
fn claim(
    memory: &Memory,
    slots: &mut Slots,
    backing: Option<&Backing>,
    places: &mut Option<HashMap<usize, Form>>,
    word: u64,
) -> Claim {
    let Some(Entry { stored, .. }) = Entry::unpack(word) else {
        return Claim::Damaged;
    };
    let (at, len) = match (stored, extent(stored)) {
        (Stored::Empty, _) => return Claim::Empty,
        (Stored::File { place, .. }, _) => {
            return Claim::from_success(backing.is_some_and(|backing| backing.claim(place)));
        }
        // Its bytes are in the entry itself.
        (_, None) => return Claim::Holds,
        (_, Some(Extent { at, len })) => (at, len),
    };
    let span = u32::try_from(at / SPAN_BYTES).ok();
    let Some(span) = span.filter(|&span| span < memory.layout().spans) else {
        return Claim::Damaged;
    };
    let class = memory.class(span).load(Relaxed);
    // The class comes from the memory and not from this process, so it is checked before it is used
    // as an index.
    let fits = usize::from(class) < slots.classes().count()
        && len <= slots.classes().bytes(class)
        && len > SUM_BYTES;
    if !fits {
        return Claim::Damaged;
    }
    let form = form_of(stored, len);
    if let (Some(places), true) = (places, form.0 != Some(Packing::Word)) {
        match places.insert(at, form) {
            None => {}
            // Several entries may share a slot if all of them say the same of it. One that says
            // otherwise is damaged, and the first one keeps the slot.
            Some(before) if before == form => return Claim::Holds,
            Some(before) => {
                places.insert(at, before);
                return Claim::Damaged;
            }
        }
    }
    Claim::from_success(slots.claim(at, class))
}

/// The packing and the length of what is in a slot.
type Form = (Option<Packing>, usize);

fn form_of(stored: Stored, len: usize) -> Form {
    match stored {
        Stored::Packed { packing, .. } => (Some(packing), len),
        _ => (None, len),
    }
}
