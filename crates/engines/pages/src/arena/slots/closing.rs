//! Empties spans, so that other classes can have them: which ones to choose, and what becomes of
//! them.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::{ClassState, NONE, Slot, Slots, grasp};
use crate::arena::classes::Class;

/// Which slots a page may move to when its span is emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Slots of the same class only, so that nothing is lost to rounding.
    SameClass,
    /// Slots of its class, and those that are longer by an eighth at most.
    Near,
    /// All slots that are not shorter.
    Any,
}

impl Target {
    fn longest_bytes(self, bytes: usize) -> usize {
        match self {
            Self::SameClass => bytes,
            Self::Near => bytes + bytes / 8,
            Self::Any => usize::MAX,
        }
    }
}

impl Slots {
    /// Chooses spans to empty so that what is in use would lie in as few as possible, the emptiest
    /// of each class first, and closes them. `most` bounds how many of each class.
    ///
    /// It goes from the longest slots to the shortest: a span is closed if what it holds fits into
    /// the free slots that no page of another closed span needs. A page of a shorter class takes
    /// the shortest of them, so that the longer ones are left, and the plan holds in whichever
    /// order the pages move. It is only a plan: other threads take and free slots meanwhile.
    pub fn close_emptiest(&self, most: usize, target: Target) -> Vec<u32> {
        let mut closed = Vec::new();
        let mut unclaimed = vec![0; self.classes.count()];
        for class in (0..self.classes.count() as Class).rev() {
            let within = self.within(class, target);
            let within = usize::from(within.start)..usize::from(within.end);
            let mut state = self.lock(class);
            let slots = self.classes.slots(class);
            let open = self.emptiest_first(&state);
            let used = |span: u32| usize::from(self.spans[span as usize].used.load(Relaxed));
            let mut own: usize = open.iter().map(|&span| slots - used(span)).sum();
            // The class itself still counts 0 in `unclaimed`, so `longer` has the other classes
            // alone.
            let longer: usize = unclaimed[within.clone()].iter().sum();
            let mut leaving = 0;
            for span in open.into_iter().take(most) {
                let of_others = own - (slots - used(span));
                if leaving + used(span) > of_others + longer {
                    break;
                }
                leaving += used(span);
                own = of_others;
                self.close(&mut state, span);
                closed.push(span);
            }
            unclaimed[usize::from(class)] = own;
            for free in &mut unclaimed[within] {
                let claimed = leaving.min(*free);
                *free -= claimed;
                leaving -= claimed;
            }
        }
        closed
    }

    /// The classes that a page of `class` may move to.
    pub fn within(&self, class: Class, target: Target) -> Range<Class> {
        let longest = target.longest_bytes(self.classes.bytes(class));
        let end = (class + 1..self.classes.count() as Class)
            .find(|&longer| self.classes.bytes(longer) > longest);
        class..end.unwrap_or(self.classes.count() as Class)
    }

    /// Takes a free slot of the shortest of `classes` that has one. None of them gets a span for
    /// it.
    pub fn allocate_shortest(&self, mut classes: Range<Class>) -> Option<Slot> {
        classes.find_map(|class| self.allocate_in(class, None::<&fn(u32, Class)>))
    }

    /// Gives a free span to `class`, if need be the last one, which no write takes. Returns false
    /// if no span is free.
    pub fn open_kept(&self, class: Class, assign: impl Fn(u32, Class)) -> bool {
        let mut state = self.lock(class);
        let Some(span) = grasp(&self.pool).pop(0) else {
            return false;
        };
        self.give(&mut state, span, class, &assign);
        true
    }

    /// A number that almost surely differs between two moments if a class has other spans or slots
    /// in use.
    pub fn fingerprint(&self) -> u64 {
        (0..self.classes.count() as Class).fold(0, |sum: u64, class| {
            let state = self.lock(class);
            let of_class = u64::from(state.spans) << 40 ^ state.used;
            // A multiplication by an odd number without a pattern (the golden ratio) spreads each
            // class over all bits.
            (sum.rotate_left(5) ^ of_class).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }

    /// Bytes of the slots that are in use.
    pub fn used_bytes(&self) -> u64 {
        (0..self.classes.count() as Class)
            .map(|class| self.lock(class).used * self.classes.bytes(class) as u64)
            .sum()
    }

    /// Whether `span` is being emptied.
    pub fn is_draining(&self, span: u32) -> bool {
        self.spans[span as usize].draining.load(Relaxed)
    }

    /// Ends the emptying of `span`, and returns whether it is free now.
    pub fn reopen(&self, span: u32) -> bool {
        let number = span as usize;
        let class = self.spans[number].class.load(Relaxed);
        let mut state = self.lock(class);
        self.spans[number].draining.store(false, Relaxed);
        // The flag is cleared and the span linked under the same lock: `free` skips the lists of a
        // draining span, so a slot freed in between would be lost to them.
        let used = usize::from(self.spans[number].used.load(Relaxed));
        if used == 0 {
            state.spans -= 1;
            grasp(&self.pool).free.push(span);
        } else if used < self.classes.slots(class) {
            self.link(&mut state, span);
        }
        used == 0
    }

    /// The spans of a class that have free slots, those with the fewest taken slots first.
    fn emptiest_first(&self, state: &ClassState) -> Vec<u32> {
        let mut open = Vec::new();
        let mut at = state.open;
        while at != NONE {
            open.push(at);
            at = self.spans[at as usize].next.load(Relaxed);
        }
        open.sort_by_key(|&span| self.spans[span as usize].used.load(Relaxed));
        open
    }

    fn close(&self, state: &mut ClassState, span: u32) {
        self.unlink(state, span);
        self.spans[span as usize].draining.store(true, Relaxed);
    }
}
