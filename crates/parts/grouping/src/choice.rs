//! Finds the rows of a block that all filters choose.

use std::sync::Arc;

use dyno_formats::parquet_read::BLOCK_ROWS;

use crate::GroupError;
use crate::chosen::{first_choice, next_choice};
use crate::column::{Block, Column};
use crate::error::Failure;
use crate::lens::Lens;
use crate::query::{Filter, Inputs, Test};

/// The filters of a query, and the rows of the current block that they have chosen.
pub(crate) struct Choice {
    filters: Vec<Filter>,
    /// For each code whether rows with it are chosen. A byte each, so that the answers to thousands
    /// of codes lie in the first-level cache.
    answers: Vec<Lens<bool>>,
    /// Numbers of the chosen rows within the block.
    places: Box<[u32; BLOCK_ROWS]>,
}

impl Choice {
    pub(crate) fn new(filters: &[Filter]) -> Self {
        Self {
            filters: filters.to_vec(),
            answers: filters.iter().map(|_| Lens::default()).collect(),
            places: Box::new([0; BLOCK_ROWS]),
        }
    }

    /// False if the dictionary of a filter shows that it chooses no row of the row group in which
    /// the columns have been opened.
    pub(crate) fn is_possible(&mut self, columns: &[Column]) -> Result<bool, GroupError> {
        for (filter, answers) in self.filters.iter().zip(&mut self.answers) {
            let column = &columns[filter.column];
            if column.strings().is_some() {
                let chosen =
                    answers.results(column, |inputs, out| test(&filter.test, inputs, out))?;
                if !chosen.contains(&true) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns how many rows of the block all filters choose. [`Choice::places`] has which ones.
    /// `left` rows follow from the block's first on, this block included.
    pub(crate) fn choose(
        &mut self,
        columns: &mut [Column],
        rows: usize,
        left: usize,
    ) -> Result<usize, Failure> {
        let mut count = rows;
        for (filter, answers) in self.filters.iter().zip(&mut self.answers) {
            let column = &mut columns[filter.column];
            let block = column.load_codes(rows, left)?;
            let answers = answers.results(column, |inputs, out| test(&filter.test, inputs, out))?;
            // The answers have a power of two as length, above all codes of the block. So the mask
            // changes no code, and proves the index in bounds.
            let mask = answers.len() - 1;
            let answer = |code: u32| answers[code as usize & mask];
            count = match block {
                Block::Same(code) if !answer(code) => 0,
                Block::Same(_) => count,
                _ if count == rows => {
                    first_choice(&mut self.places, &column.codes()[..rows], answer)
                }
                _ => next_choice(&mut self.places[..count], column.codes(), answer),
            };
            if count == 0 {
                break;
            }
        }
        Ok(count)
    }

    /// The numbers of the `count` chosen rows within the block, or `None` if they are all of
    /// `rows`.
    pub(crate) fn places(&self, count: usize, rows: usize) -> Option<&[u32]> {
        (count < rows).then(|| &self.places[..count])
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.answers.iter().map(Lens::heap_bytes).sum()
    }
}

fn test(test: &Arc<dyn Test>, inputs: Inputs<'_>, out: &mut Vec<bool>) -> Result<(), GroupError> {
    test.test(inputs, out).map_err(GroupError::Caller)
}
