//! Which slots are taken. Nothing of this is in the store's memory: who opens it again finds it in
//! the index. Each class has a lock of its own, held for a few loads and stores; all room is taken
//! when the store is made.

mod closing;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

pub use closing::Target;

use super::classes::{Class, Classes, MOST_SLOTS, SPAN_BYTES};
use crate::PAGE_BYTES;

const NONE: u32 = u32::MAX;
const WORDS: usize = MOST_SLOTS / 64;

/// A slot: its span, and which one of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Byte of the arena at which it begins.
    pub at: usize,
    /// Class of its span.
    pub class: Class,
    /// Spans of that class, when no slot so far into this one was taken before since it came to the
    /// class.
    pub fresh: Option<u32>,
}

/// What is known of a span. Changed under the lock of its class alone.
#[derive(Debug)]
struct Span {
    taken: [AtomicU64; WORDS],
    /// Neighbours in the list of spans of the class that have slots free.
    next: AtomicU32,
    before: AtomicU32,
    used: AtomicU16,
    /// Slots from here on were not taken since the span came to its class.
    top: AtomicU16,
    class: AtomicU8,
    /// Being emptied: no slot of it is given out, and it is in no list.
    draining: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct ClassState {
    /// First span with a slot free.
    open: u32,
    spans: u32,
    used: u64,
}

/// Spans that belong to no class: those whose memory the system holds on top.
#[derive(Debug)]
struct Pool {
    /// The lowest of them is kept for moving pages.
    free: Vec<u32>,
    /// From here on, spans were used before and their memory was not given back.
    clean: usize,
}

/// What a class holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassUse {
    /// Bytes of a slot.
    pub slot_bytes: usize,
    /// Spans of the class.
    pub spans: u32,
    /// Slots taken.
    pub used: u64,
}

/// The slots of an arena.
#[derive(Debug)]
pub struct Slots {
    classes: Classes,
    spans: Box<[Span]>,
    states: Box<[Mutex<ClassState>]>,
    pool: Mutex<Pool>,
    /// A span of whole pages that belongs to no class, through which a full store overwrites.
    reserve: Option<u32>,
    /// Which slots of it are taken.
    reserve_taken: AtomicU16,
    /// Free spans that no write takes: one, through which pages are moved when no other is free.
    /// None in a memory of one span and the reserve, as versions without it made.
    kept: usize,
}

impl Slots {
    /// All spans free.
    pub fn new(spans: u32) -> Self {
        let classes = Classes::new();
        let empty = ClassState {
            open: NONE,
            spans: 0,
            used: 0,
        };
        let states = (0..classes.count()).map(|_| Mutex::new(empty)).collect();
        // Low spans are given out first.
        let free: Vec<u32> = (0..spans).rev().collect();
        let clean = free.len();
        let kept = usize::from(spans > 2);
        let spans = (0..spans).map(|_| Span::new()).collect();
        Self {
            classes,
            spans,
            states,
            pool: Mutex::new(Pool { free, clean }),
            reserve: None,
            reserve_taken: AtomicU16::new(0),
            kept,
        }
    }

    /// Takes a free span, the one that would be given out last, for the reserve; nothing when none
    /// is free.
    pub fn keep_reserve(&mut self) -> Option<u32> {
        let pool = self.pool.get_mut();
        if pool.free.is_empty() {
            return None;
        }
        let span = pool.free.remove(0);
        pool.clean = pool.clean.saturating_sub(1);
        self.reserve = Some(span);
        self.reserve
    }

    /// A slot of the reserve, long enough for every form, as the byte at which it begins.
    pub fn take_reserve(&self) -> Option<usize> {
        let span = self.reserve?;
        let take = |taken: u16| (taken != u16::MAX).then(|| taken | (taken + 1));
        let before = self
            .reserve_taken
            .fetch_update(std::sync::atomic::Ordering::Acquire, Relaxed, take)
            .ok()?;
        let slot = before.trailing_ones() as usize;
        Some(span as usize * SPAN_BYTES + slot * PAGE_BYTES)
    }

    /// Gives a slot of the reserve back.
    pub fn free_reserve(&self, at: usize) {
        let slot = at % SPAN_BYTES / PAGE_BYTES;
        // Released, so that the next one to take it does not write into it before this one is done.
        self.reserve_taken
            .fetch_and(!(1 << slot), std::sync::atomic::Ordering::Release);
    }

    /// The sizes.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Bytes of memory beside the arena that this takes.
    pub fn overhead_bytes(&self) -> u64 {
        (self.spans.len() * (size_of::<Span>() + size_of::<u32>())) as u64
    }

    /// Takes a slot for `bytes`: of the shortest class that holds them, else, when no span is left
    /// for it, of the next one that has a slot free. `assign` is told when a span gets a class.
    pub fn take(&self, bytes: usize, assign: impl Fn(u32, Class)) -> Option<Slot> {
        let fits = self.classes.for_bytes(bytes);
        if let Some(slot) = self.take_of(fits, Some(&assign)) {
            return Some(slot);
        }
        self.take_shortest(fits + 1..self.classes.count() as Class)
    }

    /// Takes a slot of `class`; without `assign`, of a span that the class has already.
    pub fn take_of(&self, class: Class, assign: Option<&impl Fn(u32, Class)>) -> Option<Slot> {
        let mut state = self.lock(class);
        if state.open == NONE {
            let assign = assign?;
            let span = grasp(&self.pool).take(self.kept)?;
            self.give(&mut state, span, class, assign);
        }
        let number = state.open;
        let span = &self.spans[number as usize];
        let slots = self.classes.slots(class);
        let slot = span.first_free(slots)?;
        span.taken[slot / 64].fetch_or(1 << (slot % 64), Relaxed);
        state.used += 1;
        let fresh = slot >= usize::from(span.top.load(Relaxed));
        if fresh {
            span.top.store(slot as u16 + 1, Relaxed);
        }
        if usize::from(span.used.fetch_add(1, Relaxed)) + 1 == slots {
            self.unlink(&mut state, number);
        }
        let at = number as usize * SPAN_BYTES + slot * self.classes.bytes(class);
        Some(Slot {
            at,
            class,
            fresh: fresh.then_some(state.spans),
        })
    }

    /// Gives a free span to `class`, whose state this is.
    fn give(&self, state: &mut ClassState, span: u32, class: Class, assign: &impl Fn(u32, Class)) {
        self.spans[span as usize].class.store(class, Relaxed);
        self.spans[span as usize].top.store(0, Relaxed);
        state.spans += 1;
        assign(span, class);
        self.link(state, span);
    }

    /// The class of the span of byte `at`, of which a slot is taken.
    pub fn class_of(&self, at: usize) -> Class {
        self.spans[at / SPAN_BYTES].class.load(Relaxed)
    }

    /// Gives the slot that begins at byte `at` back. What is not a slot that is taken is left
    /// alone: an entry was damaged then, and reading it was refused.
    pub fn free(&self, at: usize) {
        let number = (at / SPAN_BYTES) as u32;
        let Some(span) = self.spans.get(number as usize) else {
            return;
        };
        // The class of a span with a slot taken does not change.
        let class = span.class.load(Relaxed);
        let slot = at % SPAN_BYTES / self.classes.bytes(class);
        let mut state = self.lock(class);
        let before = span.taken[slot / 64].fetch_and(!(1 << (slot % 64)), Relaxed);
        if before >> (slot % 64) & 1 == 0 {
            return;
        }
        state.used -= 1;
        let used = usize::from(span.used.fetch_sub(1, Relaxed)) - 1;
        if span.draining.load(Relaxed) {
            return;
        }
        if used + 1 == self.classes.slots(class) {
            self.link(&mut state, number);
        }
        // One empty span stays with its class, so that a page written to and fro costs nothing.
        let only = state.open == number && span.next.load(Relaxed) == NONE;
        if used == 0 && !only {
            self.unlink(&mut state, number);
            state.spans -= 1;
            grasp(&self.pool).free.push(number);
        }
    }

    /// Marks the slot at `at` of a span of `class` as taken, for who opens a memory again. False
    /// when no slot of the class begins there, the span has another class, or the slot is taken.
    pub fn claim(&mut self, at: usize, class: Class) -> bool {
        let (number, inside) = (at / SPAN_BYTES, at % SPAN_BYTES);
        let Some(span) = self.spans.get(number) else {
            return false;
        };
        if usize::from(class) >= self.classes.count() {
            return false;
        }
        let size = self.classes.bytes(class);
        let slot = inside / size;
        if inside % size != 0 || slot >= self.classes.slots(class) {
            return false;
        }
        if span.used.load(Relaxed) > 0 && span.class.load(Relaxed) != class {
            return false;
        }
        span.class.store(class, Relaxed);
        if span.taken[slot / 64].fetch_or(1 << (slot % 64), Relaxed) >> (slot % 64) & 1 == 1 {
            return false;
        }
        span.used.fetch_add(1, Relaxed);
        span.top.fetch_max(slot as u16 + 1, Relaxed);
        true
    }

    /// Sorts the spans into lists when all slots are claimed.
    pub fn settle(&mut self) {
        let mut free = Vec::with_capacity(self.spans.len());
        for number in (0..self.spans.len()).rev() {
            let span = &self.spans[number];
            let used = span.used.load(Relaxed);
            let class = span.class.load(Relaxed);
            if used == 0 {
                free.push(number as u32);
                continue;
            }
            let mut state = self.lock(class);
            state.spans += 1;
            state.used += u64::from(used);
            if usize::from(used) < self.classes.slots(class) {
                self.link(&mut state, number as u32);
            }
        }
        // What free spans hold of the dead process's bytes is not known; they count as dirty.
        *grasp(&self.pool) = Pool { free, clean: 0 };
    }

    /// Bytes of the slots of `span` that are free; all of it when it has no class.
    pub fn free_bytes(&self, span: u32) -> usize {
        let Some(span) = self.spans.get(span as usize) else {
            return SPAN_BYTES;
        };
        let used = usize::from(span.used.load(Relaxed));
        if used == 0 {
            return SPAN_BYTES;
        }
        let class = span.class.load(Relaxed);
        (self.classes.slots(class) - used.min(self.classes.slots(class)))
            * self.classes.bytes(class)
    }

    /// Calls `give_back` for each free span whose memory the system still holds, until it fails.
    ///
    /// # Errors
    /// Those of `give_back`.
    pub fn trim<E>(&self, give_back: impl Fn(u32) -> Result<(), E>) -> Result<usize, E> {
        let mut given = 0;
        loop {
            let mut pool = grasp(&self.pool);
            if pool.free.len() <= pool.clean {
                return Ok(given);
            }
            // Held, so that no thread takes the span meanwhile; it is one system call.
            give_back(pool.free[pool.clean])?;
            pool.clean += 1;
            given += 1;
        }
    }

    /// Calls `give_back` with the runs of whole pages, as byte and length, that no taken slot of
    /// the first `most` open spans of `class` lies on. Spans that once were full hold memory there
    /// that nothing else would give back. Returns the bytes.
    ///
    /// # Errors
    /// Those of `give_back`.
    pub fn trim_open<E>(
        &self,
        class: Class,
        most: usize,
        give_back: impl Fn(usize, usize) -> Result<(), E>,
    ) -> Result<usize, E> {
        // Held, so that no slot is taken in between; those taken before are known.
        let state = self.lock(class);
        let mut given = 0;
        let mut number = state.open;
        for _ in 0..most {
            let Some(span) = self.spans.get(number as usize) else {
                break;
            };
            let mut run = 0;
            for page in 0..=SPAN_BYTES / PAGE_BYTES {
                let unused =
                    page * PAGE_BYTES < SPAN_BYTES && !self.page_is_used(span, class, page);
                if unused {
                    run += PAGE_BYTES;
                } else if run > 0 {
                    let end = number as usize * SPAN_BYTES + page * PAGE_BYTES;
                    give_back(end - run, run)?;
                    given += std::mem::take(&mut run);
                }
            }
            number = span.next.load(Relaxed);
        }
        Ok(given)
    }

    /// Whether a taken slot of `span` lies on its page `page`.
    fn page_is_used(&self, span: &Span, class: Class, page: usize) -> bool {
        let size = self.classes.bytes(class);
        let first = page * PAGE_BYTES / size;
        let last = ((page + 1) * PAGE_BYTES - 1) / size;
        (first..=last.min(MOST_SLOTS - 1))
            .any(|slot| span.taken[slot / 64].load(Relaxed) >> (slot % 64) & 1 == 1)
    }

    /// What each class holds.
    pub fn usage(&self) -> Vec<ClassUse> {
        let classes = 0..self.classes.count() as Class;
        let of = |class| {
            let state = self.lock(class);
            let slot_bytes = self.classes.bytes(class);
            ClassUse {
                slot_bytes,
                spans: state.spans,
                used: state.used,
            }
        };
        classes.map(of).collect()
    }

    fn lock(&self, class: Class) -> MutexGuard<'_, ClassState> {
        grasp(&self.states[usize::from(class)])
    }

    fn link(&self, state: &mut ClassState, number: u32) {
        let span = &self.spans[number as usize];
        span.before.store(NONE, Relaxed);
        span.next.store(state.open, Relaxed);
        if state.open != NONE {
            self.spans[state.open as usize]
                .before
                .store(number, Relaxed);
        }
        state.open = number;
    }

    fn unlink(&self, state: &mut ClassState, number: u32) {
        let span = &self.spans[number as usize];
        let (before, next) = (span.before.load(Relaxed), span.next.load(Relaxed));
        if before == NONE {
            state.open = next;
        } else {
            self.spans[before as usize].next.store(next, Relaxed);
        }
        if next != NONE {
            self.spans[next as usize].before.store(before, Relaxed);
        }
    }
}

impl Span {
    fn new() -> Self {
        Self {
            taken: [const { AtomicU64::new(0) }; WORDS],
            next: AtomicU32::new(NONE),
            before: AtomicU32::new(NONE),
            used: AtomicU16::new(0),
            top: AtomicU16::new(0),
            class: AtomicU8::new(0),
            draining: AtomicBool::new(false),
        }
    }

    /// The lowest, so that the memory behind stays untouched as long as it can.
    fn first_free(&self, slots: usize) -> Option<usize> {
        for (at, word) in self.taken.iter().enumerate() {
            let free = !word.load(Relaxed);
            if free != 0 {
                let slot = at * 64 + free.trailing_zeros() as usize;
                return (slot < slots).then_some(slot);
            }
        }
        None
    }
}

impl Pool {
    /// Spans whose memory is there go first; `kept` of them stay.
    fn take(&mut self, kept: usize) -> Option<u32> {
        let span = if self.free.len() > kept {
            self.free.pop()
        } else {
            None
        };
        self.clean = self.clean.min(self.free.len());
        span
    }
}

/// A thread that panicked here left counts and lists whole: nothing in these sections can panic
/// between two of their stores.
fn grasp<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
