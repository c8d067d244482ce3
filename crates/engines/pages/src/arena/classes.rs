//! The sizes of slots. A span holds a whole number of equal slots, so that bytes are lost only
//! within a slot (by rounding) and never between two.

use crate::PAGE_BYTES;
use crate::index::entry::UNIT_BYTES;

/// The unit in which memory is handed out to classes.
pub const SPAN_BYTES: usize = 64 * 1024;
const LEAST_BYTES: usize = 128;
/// The most slots of a span.
pub const MOST_SLOTS: usize = SPAN_BYTES / LEAST_BYTES;

/// A class of slots of one size: an index into the sizes, from short to long.
pub type Class = u8;

#[derive(Debug)]
pub struct Classes {
    sizes: Vec<u16>,
    /// The class for each length, in units of [`UNIT_BYTES`].
    of_units: Vec<Class>,
}

impl Classes {
    /// One size for each number of slots that fit a span, from 16 whole pages to the shortest
    /// slots.
    pub fn new() -> Self {
        let unit = UNIT_BYTES as usize;
        let mut sizes: Vec<u16> = (SPAN_BYTES / PAGE_BYTES..=MOST_SLOTS)
            .map(|slots| (SPAN_BYTES / slots / unit * unit) as u16)
            .collect();
        sizes.reverse();
        sizes.dedup();
        let class_for = |bytes: usize| sizes.partition_point(|&size| usize::from(size) < bytes);
        let units = PAGE_BYTES / unit;
        let of_units = (0..=units)
            .map(|units| class_for(units * unit) as Class)
            .collect();
        Self { sizes, of_units }
    }

    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The class of the shortest slot for `bytes`, at most a page.
    #[inline(always)]
    pub fn for_bytes(&self, bytes: usize) -> Class {
        self.of_units[bytes.div_ceil(UNIT_BYTES as usize)]
    }

    /// The class whose slots hold a page as it is.
    pub fn whole_page(&self) -> Class {
        (self.sizes.len() - 1) as Class
    }

    #[inline(always)]
    pub fn bytes(&self, class: Class) -> usize {
        usize::from(self.sizes[usize::from(class)])
    }

    /// How many slots of this class a span holds.
    #[inline(always)]
    pub fn slots(&self, class: Class) -> usize {
        SPAN_BYTES / self.bytes(class)
    }

    /// The longest slot that is shorter than a whole page.
    pub fn longest_that_pays(&self) -> usize {
        usize::from(self.sizes[self.sizes.len() - 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_the_shortest_slot_that_holds_it() {
        let classes = Classes::new();
        assert!(classes.count() <= usize::from(Class::MAX));
        for bytes in 1..=PAGE_BYTES {
            let class = classes.for_bytes(bytes);
            assert!(classes.bytes(class) >= bytes);
            assert!(class == 0 || classes.bytes(class - 1) < bytes);
        }
        assert_eq!(classes.bytes(classes.whole_page()), PAGE_BYTES);
    }

    #[test]
    fn a_span_loses_little_to_rounding() {
        let classes = Classes::new();
        for class in 0..classes.count() as Class {
            let used = classes.bytes(class) * classes.slots(class);
            assert!(
                SPAN_BYTES - used < SPAN_BYTES / 50,
                "{}",
                classes.bytes(class)
            );
        }
    }
}
