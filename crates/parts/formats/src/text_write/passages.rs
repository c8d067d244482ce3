//! Finds the text of each row in columns whose text does not lie in slots.

use crate::columns::{Codes, Values, gather};

/// How many bytes are copied at once.
pub(super) const MOVE_BYTES: usize = 64;

/// The text of a column, in either of the forms that it can have.
#[derive(Clone, Copy)]
pub(super) enum Texts<'a> {
    /// The texts of the rows lie one after the other.
    Run { offsets: &'a [u32], bytes: &'a [u8] },
    /// Rows have codes of printed entries, which contain the quotes that they need.
    Coded {
        codes: Codes<'a>,
        offsets: &'a [u32],
        bytes: &'a [u8],
    },
}

impl<'a> Texts<'a> {
    /// The start of a row's text in [`Texts::bytes`], and its length.
    #[inline(always)]
    pub(super) fn place(&self, row: usize) -> (usize, usize) {
        match self {
            Texts::Run { offsets, .. } => {
                let (from, to) = (offsets[row] as usize, offsets[row + 1] as usize);
                (from, to - from)
            }
            Texts::Coded { codes, offsets, .. } => {
                let code = codes.get(row);
                let (from, to) = (offsets[code] as usize, offsets[code + 1] as usize);
                (from, to - from)
            }
        }
    }

    /// The bytes that [`Texts::place`] points into.
    pub(super) fn bytes(&self) -> &'a [u8] {
        match self {
            Texts::Run { bytes, .. } | Texts::Coded { bytes, .. } => bytes,
        }
    }

    /// The text of a row.
    pub(super) fn get(&self, row: usize) -> &'a [u8] {
        let (from, length) = self.place(row);
        &self.bytes()[from..from + length]
    }
}

/// Scattered text, copied together. Fetching each piece only when its row is written took half as
/// long again, even with prefetches, because a loop that does nothing but copy has more reads under
/// way.
#[derive(Default)]
pub(super) struct Copied {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
}

impl Copied {
    /// Copies the text of a column of slices. It does nothing for other columns.
    pub(super) fn copy(&mut self, values: &Values<'_>) {
        let Values::Slices(slices) = *values else {
            return;
        };
        gather(slices, MOVE_BYTES, &mut self.offsets, &mut self.bytes);
    }

    /// The text that [`Copied::copy`] copied last.
    pub(super) fn texts(&self) -> Texts<'_> {
        Texts::Run {
            offsets: &self.offsets,
            bytes: &self.bytes,
        }
    }
}
