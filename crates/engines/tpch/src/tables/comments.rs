//! Draws comments. Each takes two draws, for where its slice of the text pool begins and how long
//! it is.

use super::room;
use crate::draws::{Draw, LANES, each, each_line};
use crate::random::Stream;
use crate::text::POOL_BYTES;
use crate::values::Passages;

/// How one column of comments is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Comments {
    shortest: u32,
    longest: u32,
    offset: Draw,
    length: Draw,
}

/// Where the comments of a batch lie in the text pool.
#[derive(Default)]
pub(crate) struct Slices {
    pub(crate) offsets: Vec<u32>,
    pub(crate) lengths: Vec<u8>,
}

impl Comments {
    /// Comments of an average length, of which a unit has up to `per_unit`. In dbgen lengths vary
    /// from four tenths to sixteen tenths of the average.
    pub(crate) const fn new(seed: u32, average: u32, per_unit: u32) -> Comments {
        let (shortest, longest) = (average * 4 / 10, average * 16 / 10);
        let stream = Stream::new(seed, 2 * per_unit);
        Comments {
            shortest,
            longest,
            offset: Draw::nth(stream, 1, 2, POOL_BYTES as u32 - longest + 1),
            length: Draw::nth(stream, 2, 2, longest - shortest + 1),
        }
    }

    /// Draws one comment for each unit.
    pub(crate) fn fill(&self, first: u64, units: usize, slices: &mut Slices) {
        each(&self.offset, first, 0, room(&mut slices.offsets, units));
        let lengths = room(&mut slices.lengths, units);
        each(&self.length, first, self.shortest as u8, lengths);
    }

    /// Draws one comment for each line of each unit, of which there are `rows` together.
    pub(crate) fn fill_lines(&self, first: u64, lines: &[u8], rows: usize, slices: &mut Slices) {
        let offsets = room(&mut slices.offsets, rows + LANES);
        each_line(&self.offset, first, lines, 0, offsets);
        let lengths = room(&mut slices.lengths, rows + LANES);
        each_line(&self.length, first, lines, self.shortest as u8, lengths);
    }

    /// The most bytes that a comment has.
    pub(crate) const fn longest(&self) -> u8 {
        self.longest as u8
    }
}

impl Slices {
    /// The first `rows` of them, without any remarks.
    pub(crate) fn passages(&self, rows: usize) -> Passages<'_> {
        Passages {
            offsets: &self.offsets[..rows],
            lengths: &self.lengths[..rows],
            remarks: &[],
            first_row: 0,
        }
    }
}
