//! Reads a value column for the rows of a block that are chosen.

use dyno_formats::parquet_read::BLOCK_ROWS;

use crate::chosen::gather;
use crate::column::{Block, Column, Identity};
use crate::error::Failure;
use crate::slots::Slots;
use crate::totals::Values;

/// The values of one column for the chosen rows of a block.
pub(crate) struct Operand {
    pub(crate) values: Box<[i64; BLOCK_ROWS]>,
    codes: Box<[u32; BLOCK_ROWS]>,
    /// What each entry of a dictionary adds to a slot, and below it which dictionary that is.
    addends: Vec<u64>,
    addends_of: Option<(Identity, usize)>,
    /// Whether `codes` has the values, and not `values`.
    coded: bool,
}

impl Operand {
    pub(crate) fn new() -> Self {
        Self {
            values: Box::new([0; BLOCK_ROWS]),
            codes: Box::new([0; BLOCK_ROWS]),
            addends: Vec::new(),
            addends_of: None,
            coded: false,
        }
    }

    /// Reads the column's values of the chosen rows. If `addends` are wanted and the column has
    /// codes, these are codes, with what they add to a slot.
    pub(crate) fn load(
        &mut self,
        column: &mut Column,
        rows: usize,
        chosen: Option<&[u32]>,
        addends: bool,
    ) -> Result<(), Failure> {
        let count = chosen.map_or(rows, <[u32]>::len);
        let values = &mut self.values[..count];
        self.coded = false;
        match column.load(rows)? {
            Block::Unread | Block::Values => gather(column.values(), chosen, values, |value| value),
            Block::Same(code) => {
                values.fill(column.ints().get(code as usize).copied().unwrap_or(0))
            }
            Block::Codes if addends => {
                self.coded = true;
                // Computed again only if codes have got another meaning or entries have been added.
                let of = (column.identity(), column.dictionary_len());
                if self.addends_of != Some(of) {
                    Slots::addends(column.ints(), &mut self.addends);
                    self.addends_of = Some(of);
                }
                gather(column.codes(), chosen, &mut self.codes[..count], |code| {
                    code
                });
            }
            Block::Codes => {
                let ints = column.ints();
                gather(column.codes(), chosen, values, |code| ints[code as usize]);
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, count: usize) -> Values<'_> {
        if self.coded {
            Values::Addends(&self.codes[..count], &self.addends)
        } else {
            Values::Each(&self.values[..count])
        }
    }
}
