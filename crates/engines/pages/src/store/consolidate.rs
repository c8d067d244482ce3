//! Pages moved together across classes, for a write that found no slot.
//!
//! An attempt looks at every entry up to four times, and is worth that when it frees a span. After one that did
//! not suffice the next writes do without, the more of them the larger the store is, so that a store that gets more pages
//! than it can hold still refuses most of them at once.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError};

use super::Store;
use super::compact::Compacted;
use super::lane::Form;
use super::place::extent;
use crate::arena::classes::{Class, SPAN_BYTES};
use crate::arena::slots::Target;
use crate::index::entry::{Entry, Stored};

/// Spans of each class that one attempt empties into others at most.
const SPANS: usize = 32;
/// Bytes of slots that packing pages again into one span must win.
const LEAST_WON: usize = SPAN_BYTES / 8;

/// A store of so many spans lets one write at least go without an attempt after one that did not suffice.
const SPANS_A_REST: u32 = 32;

/// What is known of the last attempt.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The state of the slots in which it won nothing.
    in_vain: Option<u64>,
    /// Writes that go without one, and how many it were the last time.
    rest: u32,
    last_rest: u32,
}

impl Store {
    /// Moves pages together; `again` when the same write had it done before, which did not suffice. False when
    /// nothing is where it was not before.
    pub(super) fn consolidate(&self, again: bool) -> bool {
        // One thread does it; those that waited for it look for a slot again.
        let before = self.consolidated.load(Relaxed);
        let mut attempts = self.attempts();
        if self.consolidated.load(Relaxed) != before {
            return true;
        }
        if attempts.rest > 0 && !again {
            attempts.rest -= 1;
            return false;
        }
        let fingerprint = self.slots.fingerprint();
        if attempts.in_vain == Some(fingerprint) {
            return false;
        }
        // Slots that are not much longer first, as what they have too much is lost while the store is full.
        let mut done = self.move_together(SPANS, Target::Near);
        if !done.changed() {
            done = self.repack();
        }
        if !done.changed() {
            done = self.move_together(SPANS, Target::Any);
        }
        self.consolidated.fetch_add(1, Relaxed);
        attempts.in_vain = (!done.changed()).then_some(fingerprint);
        if done.freed_spans > 1 {
            attempts.last_rest = 0;
        }
        done.changed()
    }

    /// A write made attempts that did not suffice: the store has more than fits, and the next writes go without.
    /// Twice as many as the last time, until an attempt frees spans.
    pub(super) fn rest(&self) {
        let spans = self.memory.layout().spans;
        let mut attempts = self.attempts();
        attempts.rest = (attempts.last_rest * 2).clamp(spans / SPANS_A_REST, spans);
        attempts.last_rest = attempts.rest;
    }

    /// A write found a slot after an attempt. In a store that has more than fits the next one may not.
    pub(super) fn sufficed(&self) {
        let mut attempts = self.attempts();
        attempts.last_rest = attempts.last_rest.saturating_sub(1);
        attempts.rest = attempts.last_rest;
    }

    /// Moves pages while no write does. A write that finds no slot meanwhile, as no class has those of closed spans,
    /// waits and looks again instead of being refused.
    pub(super) fn alone(&self, moving: impl FnOnce() -> Compacted) -> Compacted {
        let _attempts = self.attempts();
        let done = moving();
        self.consolidated.fetch_add(1, Relaxed);
        done
    }

    /// Pages have left memory: the next write may have an attempt at once.
    pub(super) fn consolidate_anew(&self) {
        self.attempts().rest = 0;
    }

    /// A page was overwritten in its own slot. When that is too long for it now, there is something to win.
    pub(super) fn note_overwritten(&self, form: &Form, stored: Stored) {
        let classes = self.slots.classes();
        let has = extent(stored).map(|(at, _)| self.slots.class_of(at));
        if has > Some(classes.for_bytes(form.stored_bytes())) {
            self.attempts().in_vain = None;
        }
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        // Nothing in these sections can panic between two changes of it.
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts pages that lie in longer slots than they need into a span that is kept for it, of the class by which
    /// most is won. The slots that become free are of use to any page, and spans to move together.
    ///
    /// A full store overwrites a page in the slot that it has, however short the page is now, so that no slot would
    /// ever become free without this.
    fn repack(&self) -> Compacted {
        let opened = self.class_to_repack().is_some_and(|class| {
            self.slots
                .open_kept(class, |span, class| self.assign(span, class))
        });
        match opened {
            true => self.move_pages(Vec::new(), Target::Near),
            false => Compacted::default(),
        }
    }

    /// The class of which a span more, full of pages that lie in longer slots now, wins most; none when that is less
    /// than the work is worth.
    fn class_to_repack(&self) -> Option<Class> {
        let classes = self.slots.classes();
        let count = classes.count();
        // Pages by the class that they fit and the one that they have.
        let mut pages = vec![0_usize; count * count];
        for page in self.touched_from(0) {
            if let Some(found) = Entry::unpack(self.peek(page))
                && let Ok((at, len)) = self.extent_of(found.stored, page)
                && let Stored::Packed { .. } = found.stored
            {
                let fits = usize::from(classes.for_bytes(len));
                pages[usize::from(self.slots.class_of(at)) * count + fits] += 1;
            }
        }
        let won_bytes = |class: usize| {
            let bytes = |class: usize| classes.bytes(class as Class);
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
