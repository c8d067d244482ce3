//! Sums over tables, by which rows from elsewhere are compared with those of the generator, in any
//! order.
//!
//! Every value is hashed together with the key of its row, and the hashes are added up. There is a
//! sum for each column and each block of keys, so that a difference shows where to look. A row that
//! is missing, doubled, changed or has changed places with another changes a sum. The hash is a
//! checksum against accidents and does not withstand a forger.

use std::ops::Range;

use crate::batch::Batch;
use crate::error::Result;
use crate::generator::Generator;
use crate::rules::key_columns;
use crate::scale::Scale;
use crate::table::{Kind, Table};
use crate::tbl;
use crate::text::TextPool;
use crate::values::Values;

/// How many units have their rows summed together.
pub const BLOCK_UNITS: u64 = 4096;
/// How many units the generator makes at a time.
const BATCH_UNITS: u64 = 1024;

/// The sums of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    table: Table,
    units: u64,
    /// The number of rows in each block. The last block is for keys that the table does not have.
    rows: Vec<u64>,
    /// The sums of each block, column after column.
    cells: Vec<u64>,
}

/// For some rows the block that each belongs to and the hash of its key.
#[derive(Debug, Default)]
pub struct RowKeys {
    blocks: Vec<usize>,
    hashes: Vec<u64>,
}

/// The first block in which two tables differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The units of the block, counted from 0, or `None` for rows whose key the table does not
    /// have.
    pub units: Option<Range<u64>>,
    /// The names of the columns that differ.
    pub columns: Vec<&'static str>,
    /// Rows of the block in the first table.
    pub rows: u64,
    /// Rows of the block in the other table.
    pub other_rows: u64,
}

impl Sums {
    /// The sums of no rows, for a table of this size.
    pub fn new(table: Table, scale: &Scale) -> Sums {
        let units = scale.units(table);
        let blocks = units.div_ceil(BLOCK_UNITS) as usize + 1;
        Sums {
            table,
            units,
            rows: vec![0; blocks],
            cells: vec![0; blocks * table.columns().len()],
        }
    }

    /// The sums of some units as the generator makes them. Each value is printed or read by itself,
    /// so that the fast writers have no part in it.
    ///
    /// # Errors
    /// The table does not have these units.
    pub fn from_generator(generator: &Generator, table: Table, units: Range<u64>) -> Result<Sums> {
        let pool = TextPool::shared();
        let mut sums = Sums::new(table, generator.scale());
        let mut batch = Batch::new(table);
        let mut keys = RowKeys::default();
        let mut first = units.start;
        while first < units.end {
            let end = units.end.min(first + BATCH_UNITS);
            generator.fill(&mut batch, first..end)?;
            sums.add_batch(&batch, pool, &mut keys);
            first = end;
        }
        Ok(sums)
    }

    fn add_batch(&mut self, batch: &Batch, pool: &TextPool, keys: &mut RowKeys) {
        let columns = self.table.columns();
        let (first, second) = key_places(self.table);
        let number = |column: usize, row: usize| number(&batch.values(column), row);
        let rows = 0..batch.rows();
        let firsts = rows.clone().map(|row| number(first, row));
        let seconds = rows
            .clone()
            .map(|row| second.and_then(|column| number(column, row)));
        self.rows(firsts, seconds, keys);
        let mut text = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let values = batch.values(place);
            match column.kind {
                Kind::Char(_) | Kind::Varchar(_) => {
                    let mut hashes = Vec::with_capacity(batch.rows());
                    for row in rows.clone() {
                        text.clear();
                        tbl::append_value(&values, row, column.kind, pool, &mut text);
                        hashes.push(hash_text(&text));
                    }
                    self.add(place, keys, hashes.into_iter());
                }
                _ => self.add_numbers(place, keys, rows.clone().map(|row| number(place, row))),
            }
        }
    }

    /// Counts rows by the columns of their key (see [`key_places`]), and fills in `keys`, which the
    /// columns of the same rows are then added with. The second column counts where the key has
    /// two.
    pub fn rows(
        &mut self,
        first: impl Iterator<Item = Option<i64>>,
        second: impl Iterator<Item = Option<i64>>,
        keys: &mut RowKeys,
    ) {
        keys.blocks.clear();
        keys.hashes.clear();
        for (first, second) in first.zip(second) {
            let unit = first.and_then(|key| unit_of_key(self.table, key));
            // A row whose key is wrong must change a sum too, so it is counted apart.
            let block = match unit {
                Some(unit) if unit < self.units => (unit / BLOCK_UNITS) as usize,
                _ => self.rows.len() - 1,
            };
            self.rows[block] += 1;
            keys.blocks.push(block);
            keys.hashes
                .push(mix(hash_number(first), hash_number(second) | 1));
        }
    }

    /// Adds the values of a column that holds integers, hundredths or days.
    pub fn add_numbers(
        &mut self,
        column: usize,
        keys: &RowKeys,
        values: impl Iterator<Item = Option<i64>>,
    ) {
        self.add(column, keys, values.map(hash_number));
    }

    /// Adds the values of a column that holds text.
    pub fn add_texts<'a>(
        &mut self,
        column: usize,
        keys: &RowKeys,
        values: impl Iterator<Item = Option<&'a [u8]>>,
    ) {
        self.add(
            column,
            keys,
            values.map(|text| text.map_or(NULL, hash_text)),
        );
    }

    fn add(&mut self, column: usize, keys: &RowKeys, hashes: impl Iterator<Item = u64>) {
        let columns = self.table.columns().len();
        for ((value, &key), &block) in hashes.zip(&keys.hashes).zip(&keys.blocks) {
            let sum = &mut self.cells[block * columns + column];
            // Mixed once more, because a sum of values and keys alone would not tell which value
            // belongs to which key.
            *sum = sum.wrapping_add(mix(value ^ key, CELL));
        }
    }

    /// Adds the rows of another part of the same table.
    pub fn merge(&mut self, other: &Sums) {
        debug_assert_eq!((self.table, self.units), (other.table, other.units));
        for (sum, more) in self.rows.iter_mut().zip(&other.rows) {
            *sum += more;
        }
        for (sum, more) in self.cells.iter_mut().zip(&other.cells) {
            *sum = sum.wrapping_add(*more);
        }
    }

    /// The first block in which they differ, or `None` if all sums are the same.
    pub fn difference(&self, other: &Sums) -> Option<Block> {
        let columns = self.table.columns();
        let cells = self.cells.chunks(columns.len());
        let others = other.cells.chunks(columns.len());
        for (block, (cells, others)) in cells.zip(others).enumerate() {
            let (rows, other_rows) = (self.rows[block], other.rows[block]);
            if cells == others && rows == other_rows {
                continue;
            }
            let differing = |(place, _): &(usize, _)| cells[*place] != others[*place];
            let first = block as u64 * BLOCK_UNITS;
            return Some(Block {
                units: (block + 1 < self.rows.len())
                    .then(|| first..self.units.min(first + BLOCK_UNITS)),
                columns: columns
                    .iter()
                    .enumerate()
                    .filter(differing)
                    .map(|(_, c)| c.name)
                    .collect(),
                rows,
                other_rows,
            });
        }
        None
    }
}

/// The indexes of the columns that tell a table's rows apart.
pub fn key_places(table: Table) -> (usize, Option<usize>) {
    let place = |name: &str| {
        table
            .columns()
            .iter()
            .position(|column| column.name == name)
    };
    let keys = key_columns(table);
    let first = keys.first().and_then(|name| place(name)).unwrap_or(0);
    (first, keys.get(1).and_then(|name| place(name)))
}

/// The unit of a table, counted from 0, to which a row with this key belongs.
fn unit_of_key(table: Table, key: i64) -> Option<u64> {
    let key = u64::try_from(key).ok()?;
    match table {
        Table::Region | Table::Nation => Some(key),
        Table::Orders | Table::Lineitem => {
            // The inverse of `order_key`. A key with one of these two bits is never used, and must
            // not be taken for that of another order.
            let used = key & 0b11000 == 0;
            used.then_some((key >> 5 << 3) | (key & 7))?.checked_sub(1)
        }
        _ => key.checked_sub(1),
    }
}

/// The first column of the key of a unit's rows.
pub fn key_of_unit(table: Table, unit: u64) -> i64 {
    match table {
        Table::Region | Table::Nation => unit as i64,
        Table::Orders | Table::Lineitem => crate::tables::lines::order_key(unit),
        _ => unit as i64 + 1,
    }
}

/// A value as a number, or `None` if it is text.
fn number(values: &Values, row: usize) -> Option<i64> {
    match *values {
        Values::Key(values) | Values::Decimal(values) => Some(values[row]),
        Values::Integer(values) | Values::Date(values) => Some(values[row].into()),
        Values::CodedDecimal { codes, dictionary } => Some(dictionary[usize::from(codes[row])]),
        _ => None,
    }
}

// Odd numbers without a pattern, which are digits of the square roots of 2, 3, 5 and 7.
const TEXT: u64 = 0x6a09_e667_f3bc_c909;
const NUMBER: u64 = 0xbb67_ae85_84ca_a73b;
const CELL: u64 = 0x3c6e_f372_fe94_f82b;
const NULL: u64 = 0xa54f_f53a_5f1d_36f1;

/// Joins both halves of the product, so that every bit of `a` reaches every bit of the result.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn hash_number(value: Option<i64>) -> u64 {
    value.map_or(NULL, |value| mix(value as u64 ^ NULL, NUMBER))
}

fn hash_text(text: &[u8]) -> u64 {
    // With the length, because the last bytes are filled up with zeros that a text may have too.
    let mut hash = text.len() as u64 ^ CELL;
    for chunk in text.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash ^ u64::from_le_bytes(bytes), TEXT);
    }
    mix(hash ^ NUMBER, CELL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_to_units_and_back() {
        for table in Table::ALL {
            for unit in 0..5 {
                assert_eq!(
                    unit_of_key(table, key_of_unit(table, unit)),
                    Some(unit),
                    "{table}"
                );
            }
        }
        for key in [-1, 0, 8, 31, 40] {
            assert_eq!(unit_of_key(Table::Orders, key), None, "{key}");
        }
        assert_eq!(unit_of_key(Table::Part, 0), None);
        assert_eq!(key_places(Table::Lineitem), (0, Some(3)));
        assert_eq!(key_places(Table::Partsupp), (0, Some(1)));
    }

    fn sums_of(table: Table, units: Range<u64>) -> Sums {
        let generator = Generator::new(Scale::new(0.004).expect("in range"));
        Sums::from_generator(&generator, table, units).expect("units of the table")
    }

    #[test]
    fn parts_in_any_order_add_up_to_the_whole() {
        let mut parts = sums_of(Table::Lineitem, 5000..6000);
        parts.merge(&sums_of(Table::Lineitem, 0..5000));
        assert_eq!(parts.difference(&sums_of(Table::Lineitem, 0..6000)), None);
    }

    #[test]
    fn a_difference_is_found_in_its_block() {
        let whole = sums_of(Table::Orders, 0..6000);
        let lacking = sums_of(Table::Orders, 0..5999);
        let block = lacking.difference(&whole).expect("a row is missing");
        assert_eq!(block.units, Some(4096..6000));
        assert_eq!((block.rows, block.other_rows), (1903, 1904));
        assert_eq!(block.columns.len(), 9);
    }

    #[test]
    fn what_changes_places_changes_a_sum() {
        let scale = Scale::new(0.001).expect("in range");
        let sums = |names: [&'static str; 2]| {
            let mut sums = Sums::new(Table::Region, &scale);
            let mut keys = RowKeys::default();
            sums.rows(
                [Some(0), Some(1)].into_iter(),
                [None, None].into_iter(),
                &mut keys,
            );
            sums.add_texts(
                1,
                &keys,
                names.into_iter().map(|name| Some(name.as_bytes())),
            );
            sums
        };
        let block = sums(["ASIA", "AFRICA"]).difference(&sums(["AFRICA", "ASIA"]));
        assert_eq!(block.expect("another order").columns, ["r_name"]);
    }
}
