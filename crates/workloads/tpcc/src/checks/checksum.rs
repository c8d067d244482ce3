//! A checksum of all rows, which depends neither on the engine, nor on how it stores the lines of
//! orders, nor on the order in which rows are read.

use std::fmt;
use std::time::Duration;

use dyno_txn_api::{Database, Options, Result, Scan, Transact};

use super::gather::pages;
use crate::schema::{Layout, NAMES, Tables, as_row, each_line};

/// How long reading one table may take.
const DEADLINE: Duration = Duration::from_secs(300);

/// Rows and the sum of their hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checksum {
    /// Number of rows in all tables.
    pub rows: u64,
    /// The sum, modulo 2^64, of a hash of each row's table, key and value.
    pub sum: u64,
}

impl Checksum {
    fn add(&mut self, table: &str, key: &[u8], value: &[u8]) {
        self.rows += 1;
        // A sum does not depend on the order of rows. With XOR, a row that an engine returns twice
        // would cancel out.
        let hash = hash(&[table.as_bytes(), key, value]);
        self.sum = self.sum.wrapping_add(hash);
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, {:016x}", self.rows, self.sum)
    }
}

/// Reads all rows. The database must be at rest, because each table is read in a transaction of its
/// own.
pub fn checksum(db: &dyn Database) -> Result<Checksum> {
    let options = Options {
        deadline: DEADLINE,
        read_only: true,
        ..Options::default()
    };
    let mut total = Checksum::default();
    let tables = Tables::find(db)?;
    for (name, table) in NAMES.into_iter().zip(tables.numbers()) {
        let packed = tables.layout == Layout::Packed && table == tables.order_line;
        let outcome = db.transact_with(&options, |t| {
            let mut sum = Checksum::default();
            if packed {
                // Their rows in the other layout, so that databases of both can be compared.
                pages(&mut *t, Scan::all(table), |key, value| {
                    each_line(tables.layout, key, value, |line| {
                        let (key, row) = as_row(table, &line);
                        sum.add(name, &key.bytes, &row);
                        Ok(())
                    })
                })?;
            } else {
                pages(&mut *t, Scan::all(table), |key, value| {
                    sum.add(name, key, value);
                    Ok(())
                })?;
            }
            Ok(sum)
        })?;
        total.rows += outcome.value.rows;
        total.sum = total.sum.wrapping_add(outcome.value.sum);
    }
    Ok(total)
}

/// The number of rows of the table `name`. The database must be at rest.
pub fn rows(db: &dyn Database, name: &str) -> Result<u64> {
    let options = Options {
        deadline: DEADLINE,
        read_only: true,
        ..Options::default()
    };
    let table = db.table(name)?.id;
    let outcome = db.transact_with(&options, |t| {
        let mut rows = 0;
        pages(&mut *t, Scan::all(table), |_, _| {
            rows += 1;
            Ok(())
        })?;
        Ok(rows)
    })?;
    Ok(outcome.value)
}

/// FNV-1a over the parts and their lengths, eight bytes per step, followed by the mixing of
/// SplitMix64.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut step = |word: u64| {
        state = (state ^ word)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(23)
    };
    for part in parts {
        // The lengths keep apart parts whose bytes would otherwise join to the same sequence.
        step(part.len() as u64);
        for chunk in part.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            step(u64::from_le_bytes(word));
        }
    }
    dyno_random::mix(state)
}
