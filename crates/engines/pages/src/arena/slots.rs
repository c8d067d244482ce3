//! Which slots are taken. The store's memory does not say so; a process that opens it again
//! rebuilds this from the index. Each class has a lock of its own, held for a few loads and stores.
//! All room is allocated when the store is made.

mod closing;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

pub use closing::Target;

use super::classes::{Class, Classes, MOST_SLOTS, SPAN_BYTES};
use crate::PAGE_BYTES;

const NONE: u32 = u32::MAX;
const WORDS: usize = MOST_SLOTS / 64;

/// A slot that was just taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Byte of the arena at which it begins.
    pub at: usize,
    pub class: Class,
    /// How many spans the class has, if no slot this far into the span was taken since the span
    /// came to the class: then the memory behind it was not touched yet.
    pub fresh: Option<u32>,
}

/// The state of a span. It changes only under the lock of the span's class.
#[derive(Debug)]
struct Span {
    taken: [AtomicU64; WORDS],
    /// Neighbours in the class's list of spans that have free slots.
    next: AtomicU32,
    before: AtomicU32,
    used: AtomicU16,
    /// Slots from here on were not taken since the span came to its class.
    top: AtomicU16,
    class: AtomicU8,
    /// The span is being emptied: it gives out no slots, and is in no list.
    draining: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct ClassState {
    /// The first span of the list of spans with free slots.
    open: u32,
    spans: u32,
    used: u64,
}

/// Spans that belong to no class.
#[derive(Debug)]
struct Pool {
    /// Free spans; the last one is given out next, and the first one is kept for moving pages.
    free: Vec<u32>,
    /// From here on, spans were used before and their memory was not given back.
    clean: usize,
}

/// The usage of one class of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassUse {
    /// Length of a slot of this class, in bytes.
    pub slot_bytes: usize,
    /// Spans that belong to the class now.
    pub spans: u32,
    /// Slots of the class that hold a page.
    pub used: u64,
}

#[derive(Debug)]
pub struct Slots {
    classes: Classes,
    spans: Box<[Span]>,
    states: Box<[Mutex<ClassState>]>,
    pool: Mutex<Pool>,
    /// A span of whole pages that belongs to no class, through which a full store overwrites pages.
    reserve: Option<u32>,
    /// Bitmap of the slots of the reserve that are taken.
    reserve_taken: AtomicU16,
    /// Free spans that no write takes: one, through which pages are moved when no other span is
    /// free. It is 0 in a memory of one span and the reserve, as versions without it made.
    kept: usize,
}

impl Slots {
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

    /// Takes the free span that would be given out last as the reserve; `None` if no span is free.
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

    /// Takes a slot of the reserve, long enough for every form, and returns the byte at which it
    /// begins.
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
        // Release order keeps the next owner's bytes behind the last access of this one.
        self.reserve_taken
            .fetch_and(!(1 << slot), std::sync::atomic::Ordering::Release);
    }

    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Bytes of memory, outside the arena, that spans and lists take.
    pub fn overhead_bytes(&self) -> u64 {
        (self.spans.len() * (size_of::<Span>() + size_of::<u32>())) as u64
    }

    /// Takes a slot for `bytes`: one of the shortest class that holds them, or, if no span is left
    /// for that, one of the next class that has a slot free. `assign` is called when a span gets a
    /// class.
    pub fn allocate(&self, bytes: usize, assign: impl Fn(u32, Class)) -> Option<Slot> {
        let fits = self.classes.for_bytes(bytes);
        if let Some(slot) = self.allocate_in(fits, Some(&assign)) {
            return Some(slot);
        }
        self.allocate_shortest(fits + 1..self.classes.count() as Class)
    }

    /// Takes a slot of `class`. Without `assign`, the class gets no further span for it.
    pub fn allocate_in(&self, class: Class, assign: Option<&impl Fn(u32, Class)>) -> Option<Slot> {
        let mut state = self.lock(class);
        if state.open == NONE {
            let assign = assign?;
            let span = grasp(&self.pool).pop(self.kept)?;
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

    /// Gives a free span to `class`; `state` is that of the class, locked by the caller.
    fn give(&self, state: &mut ClassState, span: u32, class: Class, assign: &impl Fn(u32, Class)) {
        self.spans[span as usize].class.store(class, Relaxed);
        self.spans[span as usize].top.store(0, Relaxed);
        state.spans += 1;
        assign(span, class);
        self.link(state, span);
    }

    /// The class of the span of byte `at`. It is stable while a slot of that span is taken.
    pub fn class_of(&self, at: usize) -> Class {
        self.spans[at / SPAN_BYTES].class.load(Relaxed)
    }

    /// Frees the slot that begins at byte `at`. A position that is not a taken slot is ignored: it
    /// comes from a damaged entry, whose page was refused.
    pub fn free(&self, at: usize) {
        let number = (at / SPAN_BYTES) as u32;
        let Some(span) = self.spans.get(number as usize) else {
            return;
        };
        // The class of a span does not change while a slot of it is taken, so it can be read before
        // the lock of that class is held.
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
        // One empty span stays with its class, so that a page that is written and discarded in turn
        // does not move a span to and fro.
        let only = state.open == number && span.next.load(Relaxed) == NONE;
        if used == 0 && !only {
            self.unlink(&mut state, number);
            state.spans -= 1;
            grasp(&self.pool).free.push(number);
        }
    }

    /// Marks the slot at `at` of a span of `class` as taken, for a memory that is opened again.
    /// Returns false if no slot of the class begins there, the span has another class, or the slot
    /// is taken already.
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

    /// Sorts the spans into lists once all slots are claimed.
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
        // Whether the system holds memory for the free spans is not known; they count as if it
        // does, so that the next trim gives it back.
        *grasp(&self.pool) = Pool { free, clean: 0 };
    }

    /// Bytes of the free slots of `span`; all of the span if it is empty.
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
            // The pool stays locked, so that no thread takes the span meanwhile; it is one system
            // call.
            give_back(pool.free[pool.clean])?;
            pool.clean += 1;
            given += 1;
        }
    }

    /// Calls `give_back` with the runs of whole pages, as byte and length, that no taken slot of
    /// the first `most` open spans of `class` lies on: a span that once was full holds memory there
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
        // The class stays locked, so that no slot is taken while its memory goes away.
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

    /// Whether a taken slot of `span` reaches into its page `page`.
    fn page_is_used(&self, span: &Span, class: Class, page: usize) -> bool {
        let size = self.classes.bytes(class);
        let first = page * PAGE_BYTES / size;
        let last = ((page + 1) * PAGE_BYTES - 1) / size;
        (first..=last.min(MOST_SLOTS - 1))
            .any(|slot| span.taken[slot / 64].load(Relaxed) >> (slot % 64) & 1 == 1)
    }

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
        // A span without a predecessor is the first of the list.
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

    /// The lowest free slot, so that the memory behind it stays untouched as long as possible.
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
    /// Takes a free span, those whose memory is still there first, unless only `kept` are left.
    fn pop(&mut self, kept: usize) -> Option<u32> {
        let span = if self.free.len() > kept {
            self.free.pop()
        } else {
            None
        };
        self.clean = self.clean.min(self.free.len());
        span
    }
}

/// A panic cannot leave counts and lists inconsistent: nothing in these sections can panic between
/// two of their stores.
fn grasp<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
