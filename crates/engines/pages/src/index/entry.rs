//! The bits of an index entry. docs/formats/page-store.md has the table.

/// The longest stored form is a whole page.
const LEN_BITS: u32 = 13;
const KIND_AT: u32 = 1;
const AGE_AT: u32 = 4;
const STUBBORN_AT: u32 = 6;
const LEN_AT: u32 = 7;
const PLACE_AT: u32 = LEN_AT + LEN_BITS;
/// Enough for every slot: the arena has at most 2^37 bytes, in units of [`UNIT_BYTES`].
const PLACE_BITS: u32 = 33;
/// Where entries that point at slots have their check.
const CHECK_AT: u32 = PLACE_AT + PLACE_BITS;
const CHECK_BITS: u32 = 64 - CHECK_AT;
/// The bits that the check covers: kind, length and place. Age and lock change too often to be
/// covered, and damage to them changes no page.
const CHECKED: u64 = 0b111 << KIND_AT | ((1 << CHECK_AT) - 1) & !((1 << LEN_AT) - 1);
/// Where kinds without a length have the checksum of their page.
const SUM_AT: u32 = 7;
const REST_AT: u32 = SUM_AT + 32;

/// The unit in which the places of packed forms are counted.
pub const UNIT_BYTES: u64 = 16;
/// The highest age: not touched for this many passes or more.
pub const AGE_MAX: u8 = 3;
/// Bits of the place of a whole page, which is counted in pages, in the arena and in the file.
pub const PAGE_PLACE_BITS: u32 = 64 - REST_AT;

/// What a page is stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// Never written, or discarded: reads as zeros.
    Empty,
    /// Two bytes that repeat, kept in the entry itself.
    Fill { pattern: u16, sum: u32 },
    /// The page as it is.
    Raw {
        /// Number of the page of the arena.
        place: u32,
        sum: u32,
    },
    /// The page as it is, in the file.
    File {
        /// Number of the page of the file.
        place: u32,
        sum: u32,
    },
    /// In a slot, behind its checksum.
    Packed {
        packing: Packing,
        /// Bytes of the form, without the checksum in front of it.
        len: u16,
        /// Where in the arena, in units of [`UNIT_BYTES`].
        place: u64,
    },
}

impl Stored {
    /// Whether it has a form that the second tier makes for idle pages.
    #[inline(always)]
    pub fn is_second_tier(self) -> bool {
        matches!(
            self,
            Self::Packed {
                packing: Packing::Zstd | Packing::Dictionary,
                ..
            }
        )
    }
}

/// How a form in a slot is packed: one word of eight bytes that repeats, an LZ4 block, a zstd
/// frame, or a form that was made with the store's dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Word,
    Lz4,
    Zstd,
    Dictionary,
}

/// An index entry, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub stored: Stored,
    /// Passes of ageing since it was last touched, at most [`AGE_MAX`].
    pub age: u8,
    /// Whether the second tier was tried and did not pay.
    pub stubborn: bool,
}

impl Entry {
    /// The entry of a page that was written now.
    pub fn fresh(stored: Stored) -> Self {
        Self {
            stored,
            age: 0,
            stubborn: false,
        }
    }

    /// Whether the page was packed for being idle, and was touched since the last pass of ageing:
    /// another touch then says that it is not idle.
    #[inline(always)]
    pub fn was_wrongly_idle(self) -> bool {
        self.age == 0 && self.stored.is_second_tier()
    }

    /// Encodes the entry as a word with the lock bit clear.
    pub fn pack(self) -> u64 {
        let in_page = |sum: u32, rest: u32| u64::from(sum) << SUM_AT | u64::from(rest) << REST_AT;
        let (kind, body) = match self.stored {
            // An empty entry has no other bit, so that an entry of another kind that lost the bits
            // of its kind is not taken for an empty page.
            Stored::Empty => return 0,
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
                    Packing::Dictionary => 7,
                };
                let body = u64::from(len) << LEN_AT | place << PLACE_AT;
                (kind, body | check_of(body | kind << KIND_AT))
            }
        };
        let flags = u64::from(self.age) << AGE_AT | u64::from(self.stubborn) << STUBBORN_AT;
        body | kind << KIND_AT | flags
    }

    /// Decodes a word whose lock bit is clear; `None` if no entry has such bits. The sums of kinds
    /// 1 to 3 are compared with the page's bytes when it is read; all else is checked here, so that
    /// one bit that changed in memory never yields a page of zeros, or the page of a neighbour.
    pub fn unpack(word: u64) -> Option<Self> {
        let bits = |at: u32, len: u32| word >> at & ((1 << len) - 1);
        let sum = bits(SUM_AT, 32) as u32;
        let rest = (word >> REST_AT) as u32;
        let packed = |packing| Stored::Packed {
            packing,
            len: bits(LEN_AT, LEN_BITS) as u16,
            place: bits(PLACE_AT, PLACE_BITS),
        };
        let kind = bits(KIND_AT, 3);
        if kind >= FIRST_IN_SLOT && word & !((1 << CHECK_AT) - 1) != check_of(word) {
            return None;
        }
        let stored = match kind {
            0 if word == 0 => Stored::Empty,
            0 => return None,
            1 => Stored::Fill {
                pattern: u16::try_from(rest).ok()?,
                sum,
            },
            2 => Stored::Raw { place: rest, sum },
            3 => Stored::File { place: rest, sum },
            4 => packed(Packing::Word),
            5 => packed(Packing::Lz4),
            6 => packed(Packing::Zstd),
            _ => packed(Packing::Dictionary),
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

/// The first of the kinds that have a length, a place and a check.
const FIRST_IN_SLOT: u64 = 4;

/// A word that is not an entry, because its check is not the one of its other bits. It marks a page
/// whose entry was found damaged.
pub const DAMAGED: u64 = 7 << KIND_AT;

/// The check of an entry, in its position: the covered bits, folded by exclusive or. Each of them
/// goes into one bit of the check, so that a change of any single one is detected.
#[inline(always)]
fn check_of(word: u64) -> u64 {
    let covered = word & CHECKED;
    let folded = covered
        ^ covered >> CHECK_BITS
        ^ covered >> (2 * CHECK_BITS)
        ^ covered >> (3 * CHECK_BITS)
        ^ covered >> (4 * CHECK_BITS);
    folded << CHECK_AT
}

/// Adds the check that entries of versions 1 and 2 lack. An entry that already has it stays as it
/// is, so that an upgrade that was cut short can be repeated.
pub fn upgraded(word: u64) -> u64 {
    let in_slot = word >> KIND_AT & 0b111 >= FIRST_IN_SLOT && word != DAMAGED;
    if in_slot && word >> CHECK_AT == 0 {
        return word | check_of(word);
    }
    word
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored() -> impl Strategy<Value = Stored> {
        let page_place = 0..1u32 << PAGE_PLACE_BITS;
        let packing = prop_oneof![
            Just(Packing::Word),
            Just(Packing::Lz4),
            Just(Packing::Zstd),
            Just(Packing::Dictionary),
        ];
        prop_oneof![
            Just(Stored::Empty),
            (any::<u16>(), any::<u32>()).prop_map(|(pattern, sum)| Stored::Fill { pattern, sum }),
            (page_place.clone(), any::<u32>()).prop_map(|(place, sum)| Stored::Raw { place, sum }),
            (page_place, any::<u32>()).prop_map(|(place, sum)| Stored::File { place, sum }),
            (packing, 0..4097u16, 0..1u64 << PLACE_BITS).prop_map(|(packing, len, place)| {
                Stored::Packed {
                    packing,
                    len,
                    place,
                }
            }),
        ]
    }

    /// A kind that is added without its row, or documented without being read, fails here.
    #[test]
    fn the_page_of_the_format_has_every_kind_and_no_other() {
        let page = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/formats/page-store.md"
        ))
        .expect("the page");
        let documented = |kind: u64| page.contains(&format!("\n| {kind} | in a slot"));
        for kind in FIRST_IN_SLOT..8 {
            let word = kind << KIND_AT;
            let read = Entry::unpack(word | check_of(word)).is_some();
            assert_eq!(read, documented(kind), "kind {kind}");
        }
    }

    #[test]
    fn the_mark_of_damage_is_not_an_entry() {
        assert_eq!(Entry::unpack(DAMAGED), None);
        assert_eq!(upgraded(DAMAGED), DAMAGED);
    }

    proptest! {
        #[test]
        fn entries_come_back(stored in stored(), age in 0..=AGE_MAX, stubborn in any::<bool>()) {
            let entry = match stored {
                Stored::Empty => Entry::fresh(stored),
                _ => Entry { stored, age, stubborn },
            };
            let word = entry.pack();
            prop_assert_eq!(word & crate::index::lock::LOCKED, 0);
            prop_assert_eq!(Entry::unpack(word), Some(entry));
        }

        #[test]
        fn one_bit_of_a_slots_place_is_never_another_place(stored in stored(), bit in 1..64u32) {
            let word = Entry::fresh(stored).pack();
            let damaged = word ^ 1 << bit;
            let Some(read) = Entry::unpack(damaged) else {
                return Ok(());
            };
            // What is read all the same differs in its age, or is of a kind whose sum is compared.
            let summed = |stored| !matches!(stored, Stored::Empty | Stored::Packed { .. });
            prop_assert!(read.stored == stored || summed(read.stored), "{:?}", read);
        }

        #[test]
        fn entries_without_a_check_get_one_and_keep_it(stored in stored(), age in 0..=AGE_MAX) {
            let word = match stored {
                Stored::Empty => 0,
                _ => Entry { stored, age, stubborn: false }.pack(),
            };
            let old = match stored {
                Stored::Packed { .. } => word & ((1 << CHECK_AT) - 1),
                _ => word,
            };
            prop_assert_eq!(upgraded(old), word);
            prop_assert_eq!(upgraded(word), word);
        }

        #[test]
        fn any_word_is_judged_without_panic(word in any::<u64>()) {
            let _entry_or_not = Entry::unpack(word);
        }
    }
}
