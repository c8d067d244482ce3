//! Comments: two draws each, for where a slice of the text pool begins and how long it is.

use super::room;
use crate::draws::{Draw, LANES, each, each_line};
use crate::random::Stream;
use crate::text::POOL_BYTES;
use crate::values::Passages;

/// How a column of comments is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Comments {
    shortest: u32,
    longest: u32,
    offset: Draw,
    length: Draw,
}

/// The comments of a batch.
#[derive(Default)]
pub(crate) struct Slices {
    pub(crate) offsets: Vec<u32>,
    pub(crate) lengths: Vec<u8>,
}

impl Comments {
    /// Comments of an average length, up to `per_unit` of them in a unit. dbgen lets lengths vary
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

    /// One comment for each unit.
    pub(crate) fn fill(&self, first: u64, units: usize, slices: &mut Slices) {
        each(&self.offset, first, 0, room(&mut slices.offsets, units));
        let lengths = room(&mut slices.lengths, units);
        each(&self.length, first, self.shortest as u8, lengths);
    }

    /// One comment for each line of each unit.
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
    /// The first `rows` of them.
    pub(crate) fn passages(&self, rows: usize) -> Passages<'_> {
        Passages {
            offsets: &self.offsets[..rows],
            lengths: &self.lengths[..rows],
            remarks: &[],
            first_row: 0,
        }
    }
}
