//! Moves pages together across classes, for a write that found no slot.
//!
//! An attempt looks at every entry up to five times, which is worth it only when it frees a span.
//! So a store that has more than its limit is promised to hold rests after each attempt, and any
//! store rests after many attempts in a row that won nothing: as many writes go without one as make
//! an attempt cheap beside them. Those writes find a slot, overwrite their page in its own slot, or
//! are refused at once. Without the rest each write would win a slot or two by work on all pages.

use std::sync::atomic::Ordering::Relaxed;

use parking_lot::MutexGuard;

use super::compact::Compacted;
use super::handle::Form;
use super::slot_access::{Extent, extent};
use super::{BESIDE_SPANS, Store};
use crate::arena::classes::{Class, SPAN_BYTES};
use crate::arena::slots::Target;
use crate::index::entry::{Entry, Stored};
use crate::index::lock::LOCKED;

/// The most spans of each class that one attempt empties into others.
const SPANS: usize = 32;
/// The fewest bytes of slots that packing pages again into one span must win.
const LEAST_WON: usize = SPAN_BYTES / 8;

/// The length of the longest rest, in writes for each span of the store. To look at the entries of
/// one span costs an attempt about as much as four writes cost.
const RESTS: u64 = 8;
/// How many attempts in a row may win nothing before a rest follows. There is more than one,
/// because a write that finds no slot can often overwrite its page where it lies. Its failed
/// attempt does no harm then, while the next write may depend on one. After these, each attempt in
/// vain doubles the rest.
const PATIENCE: u32 = 8;
/// The rest ends early when the bytes in use have shrunk by one part in this many.
const FREED_SHARE: u64 = 128;

/// What is known of the attempts so far.
#[derive(Debug, Default)]
pub struct Attempts {
    /// Fingerprint of the slots at the last attempt, if that won nothing. While the slots have it,
    /// another attempt would win nothing either.
    in_vain: Option<u64>,
    /// Attempts in a row that won nothing.
    vain: u32,
    /// Writes that still go without an attempt.
    rest: u64,
    /// Bytes of slots that were in use when the rest began.
    used_bytes: u64,
}

impl Attempts {
    fn note(&mut self, changed: bool, fingerprint: u64) {
        self.in_vain = (!changed).then_some(fingerprint);
        self.vain = if changed {
            0
        } else {
            self.vain.saturating_add(1)
        };
    }

    /// How many writes go without an attempt after `vain` attempts in a row won
    /// nothing: none up to [`PATIENCE`] attempts, then 1, 3, 7 and so on.
    fn rest_in_vain(&self) -> u64 {
        let doublings = self.vain.saturating_sub(PATIENCE).min(u64::BITS - 1);
        (1 << doublings) - 1
    }
}

impl Store {
    /// Moves pages together. Returns false if nothing has changed its place.
    pub(super) fn consolidate(&self) -> bool {
        // One thread does it. The count is read before the wait for the lock: threads that waited
        // while another one moved pages look for a slot again instead of repeating its work.
        let before = self.consolidated.load(Relaxed);
        let mut attempts = self.attempts();
        if self.consolidated.load(Relaxed) != before {
            return true;
        }
        if self.rests(&mut attempts) {
            return false;
        }
        let fingerprint = self.slots.fingerprint();
        if attempts.in_vain == Some(fingerprint) {
            return false;
        }
        // Slots that are only a little longer than the form come first, because the rest of a slot
        // is lost while the store is full.
        let mut done = self.move_together(SPANS, Target::Near);
        if !done.changed() {
            done = self.repack();
        }
        if !done.changed() {
            done = self.move_together(SPANS, Target::Any);
        }
        self.consolidated.fetch_add(1, Relaxed);
        attempts.note(done.changed(), fingerprint);
        let longest = RESTS * u64::from(self.memory.layout().spans);
        attempts.rest = if self.live_bytes() > self.restful_bytes() {
            longest
        } else {
            attempts.rest_in_vain().min(longest)
        };
        attempts.used_bytes = self.slots.used_bytes();
        done.changed()
    }

    /// Whether the next write goes without an attempt. The rest ends early when much has become
    /// free since it began: what left the store may lie in slots that only moving makes useful.
    fn rests(&self, attempts: &mut Attempts) -> bool {
        if attempts.rest == 0 {
            return false;
        }
        let enough = attempts.used_bytes - attempts.used_bytes / FREED_SHARE;
        if self.slots.used_bytes() < enough {
            attempts.rest = 0
        } else {
            attempts.rest -= 1
        }
        attempts.rest > 0
    }

    /// Bytes of all pages in slots, without the rounding to slots. Pages that share a slot each
    /// count.
    fn live_bytes(&self) -> u64 {
        let live = |page| {
            let found = Entry::unpack(self.peek(page) & !LOCKED)?;
            extent(found.stored).map(|extent| extent.len as u64)
        };
        self.touched_from(0).filter_map(live).sum()
    }

    /// Live bytes from which on a store rests after each attempt. They are more than
    /// [`Settings::limit_bytes`](super::Settings::limit_bytes) promises to hold, so that a store
    /// that was over the promise for a moment still keeps it afterwards.
    fn restful_bytes(&self) -> u64 {
        let spans = u64::from(self.memory.layout().spans.saturating_sub(BESIDE_SPANS));
        let limit_bytes = spans * SPAN_BYTES as u64;
        (limit_bytes / 100 * 97).saturating_sub(4 * SPAN_BYTES as u64)
    }

    /// Runs `moving` while no write moves pages. No class gives out slots of closed spans, so a
    /// write may find no slot meanwhile; it waits for the lock and looks again instead of being
    /// refused.
    pub(super) fn alone(&self, moving: impl FnOnce() -> Compacted) -> Compacted {
        let _attempts = self.attempts();
        let done = moving();
        self.consolidated.fetch_add(1, Relaxed);
        done
    }

    /// Ends the rest, because pages have left memory and an attempt may now win something.
    pub(super) fn consolidate_anew(&self) {
        self.attempts().rest = 0;
    }

    /// Notes that a page was overwritten in its own slot. If that slot is now too long for it, the
    /// next attempt has something to win.
    pub(super) fn note_overwritten(&self, form: &Form, stored: Stored) {
        let classes = self.slots.classes();
        let has = extent(stored).map(|extent| self.slots.class_of(extent.at));
        if has > Some(classes.for_bytes(form.stored_bytes())) {
            self.attempts().in_vain = None;
        }
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        // Nothing in these sections can panic between two changes of it.
        self.attempts.lock()
    }

    /// Moves pages that lie in longer slots than they need into the kept span, which is given to
    /// the class that wins most by it. The slots that become free are of use to any page, and free
    /// spans to the next move.
    ///
    /// A full store overwrites a page in the slot that it has, however short the page is now, so
    /// that no slot would ever become free without this.
    fn repack(&self) -> Compacted {
        let opened = self.class_to_repack().is_some_and(|class| {
            self.slots
                .open_kept(class, |span, class| self.assign(span, class))
        });
        if opened {
            self.move_pages(Vec::new(), Target::Near)
        } else {
            Compacted::default()
        }
    }

    /// The class that wins most by one more span, filled with pages that lie in longer slots now;
    /// `None` if that is less than the work is worth.
    fn class_to_repack(&self) -> Option<Class> {
        let classes = self.slots.classes();
        let count = classes.count();
        // Counts pages by the class that they would fit and the one that they are in.
        let mut pages = vec![0_usize; count * count];
        for page in self.touched_from(0) {
            if let Some(found) = Entry::unpack(self.peek(page))
                && let Ok(Extent { at, len }) = self.extent_of(found.stored, page)
                && let Stored::Packed { .. } = found.stored
            {
                let fits = usize::from(classes.for_bytes(len));
                pages[usize::from(self.slots.class_of(at)) * count + fits] += 1;
            }
        }
        let won_bytes = |class: usize| {
            let bytes = |class: usize| classes.bytes(class as Class);
            // The span is filled from the longest slots downwards, because a page wins more the
            // longer the slot is that it leaves.
            let mut room = classes.slots(class as Class);
            let mut won = 0;
            for has in (class + 1..count).rev() {
                let fit: usize = pages[has * count..=has * count + class].iter().sum();
                won += fit.min(room) * (bytes(has) - bytes(class));
                room -= fit.min(room);
            }
            won
        };
        let (class, won) = (0..count)
            .map(|class| (class, won_bytes(class)))
            .max_by_key(|&(_, won)| won)?;
        (won >= LEAST_WON).then_some(class as Class)
    }
}
