//! The bits of an entry. FORMAT.md has the table.

/// The longest stored form is a whole page.
const LEN_BITS: u32 = 13;
const KIND_AT: u32 = 1;
const AGE_AT: u32 = 4;
const STUBBORN_AT: u32 = 6;
const LEN_AT: u32 = 7;
const PLACE_AT: u32 = LEN_AT + LEN_BITS;
/// Where kinds without a length have their checksum.
const SUM_AT: u32 = 7;
const REST_AT: u32 = SUM_AT + 32;

/// Places are counted in units of so many bytes.
pub const UNIT_BYTES: u64 = 16;
/// The oldest age: not touched for so many passes or more.
pub const AGE_MAX: u8 = 3;
/// Whole pages and places in the file are counted in pages, with so many bits.
pub const PAGE_PLACE_BITS: u32 = 64 - REST_AT;

/// What a page is stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// Never written, or discarded: reads as zeros.
    Empty,
    /// Two bytes again and again, kept in the entry itself.
    Fill {
        /// The two bytes.
        pattern: u16,
        /// Checksum of the page.
        sum: u32,
    },
    /// The page as it is.
    Raw {
        /// Which page of the arena, counted from 0.
        place: u32,
        /// Checksum of the page.
        sum: u32,
    },
    /// The page as it is, in the file.
    File {
        /// Which page of the file, counted from 0.
        place: u32,
        /// Checksum of the page.
        sum: u32,
    },
    /// In a slot, behind its checksum.
    Packed {
        /// How.
        packing: Packing,
        /// Bytes behind the checksum.
        len: u16,
        /// Where in the arena, in units of [`UNIT_BYTES`].
        place: u64,
    },
}

/// The forms that lie in slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Eight bytes that repeat.
    Word,
    /// An LZ4 block.
    Lz4,
    /// A zstd frame.
    Zstd,
}

/// An entry, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What and where.
    pub stored: Stored,
    /// Passes of ageing since it was last touched, at most [`AGE_MAX`].
    pub age: u8,
    /// The second tier was tried and did not pay.
    pub stubborn: bool,
}

impl Entry {
    /// One just written.
    pub fn fresh(stored: Stored) -> Self {
        Self {
            stored,
            age: 0,
            stubborn: false,
        }
    }

    /// As a word, unlocked.
    pub fn pack(self) -> u64 {
        let in_page = |sum: u32, rest: u32| u64::from(sum) << SUM_AT | u64::from(rest) << REST_AT;
        let (kind, body) = match self.stored {
            Stored::Empty => (0, 0),
            Stored::Fill { pattern, sum } => (1, in_page(sum, u32::from(pattern))),
            Stored::Raw { place, sum } => (2, in_page(sum, place)),
            Stored::File { place, sum } => (3, in_page(sum, place)),
            Stored::Packed {
                packing,
                len,
                place,
            } => {
                let kind = match packing {
                    Packing::Word => 4,
                    Packing::Lz4 => 5,
                    Packing::Zstd => 6,
                };
                (kind, u64::from(len) << LEN_AT | place << PLACE_AT)
            }
        };
        let flags = u64::from(self.age) << AGE_AT | u64::from(self.stubborn) << STUBBORN_AT;
        body | kind << KIND_AT | flags
    }

    /// From a word; nothing when no entry has such bits.
    pub fn unpack(word: u64) -> Option<Self> {
        let bits = |at: u32, len: u32| word >> at & ((1 << len) - 1);
        let sum = bits(SUM_AT, 32) as u32;
        let rest = (word >> REST_AT) as u32;
        let packed = |packing| Stored::Packed {
            packing,
            len: bits(LEN_AT, LEN_BITS) as u16,
            place: word >> PLACE_AT,
        };
        let stored = match bits(KIND_AT, 3) {
            0 => Stored::Empty,
            1 => Stored::Fill {
                pattern: u16::try_from(rest).ok()?,
                sum,
            },
            2 => Stored::Raw { place: rest, sum },
            3 => Stored::File { place: rest, sum },
            4 => packed(Packing::Word),
            5 => packed(Packing::Lz4),
            6 => packed(Packing::Zstd),
            _ => return None,
        };
        let age = bits(AGE_AT, 2) as u8;
        let stubborn = bits(STUBBORN_AT, 1) == 1;
        Some(Self {
            stored,
            age,
            stubborn,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored() -> impl Strategy<Value = Stored> {
        let page_place = 0..1u32 << PAGE_PLACE_BITS;
        let packing = prop_oneof![Just(Packing::Word), Just(Packing::Lz4), Just(Packing::Zstd)];
        prop_oneof![
            Just(Stored::Empty),
            (any::<u16>(), any::<u32>()).prop_map(|(pattern, sum)| Stored::Fill { pattern, sum }),
            (page_place.clone(), any::<u32>()).prop_map(|(place, sum)| Stored::Raw { place, sum }),
            (page_place, any::<u32>()).prop_map(|(place, sum)| Stored::File { place, sum }),
            (packing, 0..4097u16, 0..1u64 << (64 - PLACE_AT)).prop_map(|(packing, len, place)| {
                Stored::Packed {
                    packing,
                    len,
                    place,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn entries_come_back(stored in stored(), age in 0..=AGE_MAX, stubborn in any::<bool>()) {
            let entry = Entry { stored, age, stubborn };
            let word = entry.pack();
            prop_assert_eq!(word & crate::index::lock::LOCKED, 0);
            prop_assert_eq!(Entry::unpack(word), Some(entry));
        }

        #[test]
        fn any_word_is_judged_without_panic(word in any::<u64>()) {
            let _entry_or_not = Entry::unpack(word);
        }
    }
}
