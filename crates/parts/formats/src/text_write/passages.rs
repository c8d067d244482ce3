//! Text columns that are not dictionaries, by row.

use crate::columns::{Codes, Values, gather};

/// What a writer copies at once, at least.
pub(super) const MOVE_BYTES: usize = 64;

/// The text of a column, wherever it lies.
#[derive(Clone, Copy)]
pub(super) enum Texts<'a> {
    /// One after the other.
    Run { offsets: &'a [u32], bytes: &'a [u8] },
    /// Words of a dictionary, printed with the quotes that they need.
    Coded {
        codes: Codes<'a>,
        offsets: &'a [u32],
        bytes: &'a [u8],
    },
}

impl<'a> Texts<'a> {
    /// Where the text of a row begins in [`Texts::bytes`], and its length.
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

    /// What [`Texts::place`] points into.
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

/// Scattered text, copied together. Fetching each piece when its row is written took half as long
/// again, prefetches and all: a loop that does nothing but copy has more reads under way.
#[derive(Default)]
pub(super) struct Copied {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
}

impl Copied {
    /// Takes the text of a column of slices; other columns leave it empty.
    pub(super) fn take(&mut self, values: &Values<'_>) {
        let Values::Slices(slices) = *values else {
            return;
        };
        gather(slices, MOVE_BYTES, &mut self.offsets, &mut self.bytes);
    }

    /// What [`Copied::take`] took.
    pub(super) fn texts(&self) -> Texts<'_> {
        Texts::Run {
            offsets: &self.offsets,
            bytes: &self.bytes,
        }
    }
}
