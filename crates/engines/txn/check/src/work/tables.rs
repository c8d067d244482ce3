//! The tables of a check, and values as their bytes.

use dyno_txn_api::{
    Kind, Operations, Result, Row, TableDef, TableId, Tuple, TupleReader, ValueRef, encode_row,
};

use crate::history::{Key, Value};

/// Registers whose sum stays.
pub const ACCOUNTS: u32 = 1;
/// Registers that come and go.
pub const REGISTERS: u32 = 2;
/// Lists.
pub const LISTS: u32 = 3;

/// The columns of a register.
const NUMBER: u16 = 0;
const BY: u16 = 1;

/// The index of registers by their number.
pub(crate) const BY_NUMBER: u16 = 0;

/// The numbers that the database gave to the tables of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// By [`ACCOUNTS`], [`REGISTERS`], [`LISTS`], less one.
    pub ids: [TableId; 3],
}

/// What the tables are: accounts by a hash, registers by ranges of `per_range` rows, lists by a
/// hash.
///
/// # Errors
/// Never: the columns are there.
pub fn definitions(per_range: u64) -> Result<[TableDef; 3]> {
    let splits = (1..8)
        .map(|n| Tuple::new().u64(n * per_range).finish())
        .collect();
    let register = |def: TableDef| {
        def.column("number", Kind::I64)
            .column("by", Kind::U64)
            .index("by-number", &["number"], 0)
    };
    Ok([
        register(TableDef::hash("check-accounts", 0))?,
        register(TableDef::range("check-registers", splits))?,
        TableDef::hash("check-lists", 0),
    ])
}

impl Tables {
    /// Makes the tables, or finds them.
    ///
    /// # Errors
    /// The database's.
    pub fn create(db: &dyn dyno_txn_api::Database, per_range: u64) -> Result<Self> {
        let [accounts, registers, lists] = definitions(per_range)?;
        Ok(Self {
            ids: [
                db.create_table(&accounts)?,
                db.create_table(&registers)?,
                db.create_table(&lists)?,
            ],
        })
    }

    /// Finds the tables from within a transaction.
    ///
    /// # Errors
    /// They are not there.
    pub fn find(t: &mut dyn Operations) -> Result<Self> {
        Ok(Self {
            ids: [
                t.table("check-accounts")?,
                t.table("check-registers")?,
                t.table("check-lists")?,
            ],
        })
    }

    /// A row's key in the database.
    pub fn key(&self, key: Key) -> dyno_txn_api::Key {
        Tuple::new().u64(key.id).key(self.id(key.table))
    }

    /// The database's number of a table.
    pub fn id(&self, table: u32) -> TableId {
        // A table of no check has a number that no database gives, and is refused there.
        let at = table.wrapping_sub(1) as usize;
        self.ids.get(at).copied().unwrap_or(TableId(u32::MAX))
    }
}

/// The number of a row in its table.
pub(crate) fn number(key: &[u8]) -> Result<u64> {
    TupleReader::new(key).u64()
}

/// A register's bytes.
pub(crate) fn register(n: i64, by: u64) -> Vec<u8> {
    encode_row(&[ValueRef::I64(n), ValueRef::U64(by)])
}

/// A list's bytes.
pub(crate) fn list(elements: &[u64]) -> Vec<u8> {
    elements
        .iter()
        .flat_map(|element| element.to_be_bytes())
        .collect()
}

/// What the bytes of a row mean. Bytes that mean nothing become [`Value::Broken`], for the judges.
pub(crate) fn value(table: u32, bytes: &[u8]) -> Value {
    if table == LISTS {
        let (elements, rest) = bytes.as_chunks::<8>();
        return match rest {
            [] => Value::List(elements.iter().map(|e| u64::from_be_bytes(*e)).collect()),
            _ => Value::Broken(format!("{} bytes", bytes.len())),
        };
    }
    let parsed = Row::parse(bytes).and_then(|row| Ok((row.i64(NUMBER)?, row.u64(BY)?)));
    match parsed {
        Ok((n, by)) => Value::Register { n, by },
        Err(error) => Value::Broken(error.to_string()),
    }
}

/// What adds to a register and signs it.
pub(crate) fn addition(amount: i64, by: u64) -> Vec<dyno_txn_api::Assignment> {
    use dyno_txn_api::Assignment;
    vec![Assignment::add(NUMBER, amount), Assignment::set(BY, by)]
}
