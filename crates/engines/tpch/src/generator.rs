//! Generates any part of the tables of one scale factor, in any order.

use std::ops::Range;
use std::sync::OnceLock;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::scale::Scale;
use crate::table::Table;
use crate::tables::lines::count_lines;
use crate::tables::partsupp::SUPPLIERS_PER_PART;

/// How many orders lie between two entries of the index of lines.
const INDEX_STEP: u64 = 1 << 16;

/// The tables of one scale factor. Threads share one and fill batches of their own.
pub struct Generator {
    scale: Scale,
    /// How many lines come before every [`INDEX_STEP`]-th order, and how many all orders have. It
    /// is made when rows of `lineitem` are first requested by number.
    lines_before: OnceLock<Vec<u64>>,
}

impl Generator {
    /// Makes a generator for the tables at a scale factor.
    pub fn new(scale: Scale) -> Generator {
        Generator {
            scale,
            lines_before: OnceLock::new(),
        }
    }

    /// The scale factor that was given to [`Generator::new`].
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// The number of rows of a table. For `lineitem` the first call counts the lines of all orders,
    /// which takes about a millisecond for each unit of the scale factor.
    pub fn rows(&self, table: Table) -> u64 {
        match table {
            Table::Partsupp => self.scale.units(table) * SUPPLIERS_PER_PART as u64,
            Table::Lineitem => self.lines_before().last().copied().unwrap_or(0),
            _ => self.scale.units(table),
        }
    }

    /// The units of one of several parts of a table, which differ by at most one unit. All parts,
    /// one after the other, are the table.
    ///
    /// # Errors
    /// [`Error::Part`] when `part` is not in 1..=`parts`.
    pub fn part(&self, table: Table, part: u64, parts: u64) -> Result<Range<u64>> {
        if part == 0 || part > parts {
            return Err(Error::Part { part, parts });
        }
        // In 128 bits, since the caller may ask for any number of parts. Bounds of neighbours come
        // from the same formula, so there is neither a gap nor an overlap between them.
        let units = u128::from(self.scale.units(table));
        let until = |part: u64| (units * u128::from(part) / u128::from(parts)) as u64;
        Ok(until(part - 1)..until(part))
    }

    /// Fills a batch with all rows of some units of its table: orders for `lineitem`, parts for
    /// `partsupp`, rows elsewhere, counted from 0. A few thousand units keep the batch in the
    /// cache.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for units that the table does not have.
    pub fn fill(&self, batch: &mut Batch, units: Range<u64>) -> Result<()> {
        let available = self.scale.units(batch.table());
        within(batch.table(), "unit", &units, available)?;
        batch.fill(&self.scale, units.start, (units.end - units.start) as usize);
        Ok(())
    }

    /// Fills a batch with rows of its table, counted from 0.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for rows that the table does not have.
    pub fn fill_rows(&self, batch: &mut Batch, rows: Range<u64>) -> Result<()> {
        let table = batch.table();
        within(table, "row", &rows, self.rows(table))?;
        let (units, skipped) = match table {
            Table::Partsupp => {
                let each = SUPPLIERS_PER_PART as u64;
                (
                    rows.start / each..rows.end.div_ceil(each),
                    rows.start % each,
                )
            }
            Table::Lineitem => {
                // The order of the last row is wanted too, unless the rows end where an order
                // begins.
                let (first, before) = self.order_of_line(rows.start);
                let (last, before_last) = self.order_of_line(rows.end);
                let end = if before_last < rows.end {
                    last + 1
                } else {
                    last
                };
                (first..end.max(first), rows.start - before)
            }
            _ => (rows.clone(), 0),
        };
        // Whole units are made, because a unit's rows share draws, and then cut to the rows.
        batch.fill(&self.scale, units.start, (units.end - units.start) as usize);
        let wanted = (rows.end - rows.start) as usize;
        batch.narrow(skipped as usize..skipped as usize + wanted);
        Ok(())
    }

    fn lines_before(&self) -> &[u64] {
        self.lines_before.get_or_init(|| {
            let mut before = vec![0];
            let mut lines = Vec::new();
            let (mut first, mut sum) = (0, 0);
            while first < self.scale.orders {
                sum += self.count_block(first, &mut lines);
                before.push(sum);
                first += INDEX_STEP;
            }
            before
        })
    }

    /// Counts the lines of the orders from `first` to the next entry of the index, and leaves the
    /// lines of each in `lines`.
    fn count_block(&self, first: u64, lines: &mut Vec<u8>) -> u64 {
        lines.resize(INDEX_STEP.min(self.scale.orders - first) as usize, 0);
        count_lines(first, lines) as u64
    }

    /// The order that a line belongs to, and how many lines come before that order. For the line
    /// behind the last one it is the number of orders.
    fn order_of_line(&self, line: u64) -> (u64, u64) {
        let index = self.lines_before();
        // The index leads to a block of orders, whose lines are then counted one by one.
        let block = index.partition_point(|&before| before <= line) - 1;
        let (mut order, mut before) = (block as u64 * INDEX_STEP, index[block]);
        // Behind the last block there is nothing to count.
        if order >= self.scale.orders {
            return (self.scale.orders, before);
        }
        let mut lines = Vec::new();
        self.count_block(order, &mut lines);
        for lines in lines {
            if before + u64::from(lines) > line {
                break;
            }
            before += u64::from(lines);
            order += 1;
        }
        (order, before)
    }
}

fn within(table: Table, what: &'static str, given: &Range<u64>, available: u64) -> Result<()> {
    if given.start <= given.end && given.end <= available {
        return Ok(());
    }
    Err(Error::OutOfRange {
        table,
        what,
        given: given.clone(),
        available,
    })
}
