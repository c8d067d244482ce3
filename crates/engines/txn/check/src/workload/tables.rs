//! The tables of a check, and the encoding of values in them.

use dyno_txn_api::{
    Kind, Operations, Result, Row, TableDef, TableId, Tuple, TupleReader, ValueRef, encode_row,
};

use crate::history::{Key, Value};

/// The table of registers whose sum does not change.
pub const ACCOUNTS: u32 = 1;
/// The table of registers that are created and deleted.
pub const REGISTERS: u32 = 2;
/// The table of lists, which are read as a whole.
pub const LISTS: u32 = 3;

/// The column with the value of a register.
const NUMBER: u16 = 0;
/// The column with the id of the transaction that wrote the register.
const BY: u16 = 1;

/// The index of registers by their value.
pub(crate) const BY_NUMBER: u16 = 0;

/// The ids that the database gave to the tables of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// Indexed by [`ACCOUNTS`], [`REGISTERS`] or [`LISTS`] minus one.
    pub ids: [TableId; 3],
}

/// The definitions of the tables: accounts and lists are partitioned by a hash, registers by ranges
/// of `per_range` rows.
///
/// # Errors
/// None in practice, because the columns that the index names exist.
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
    /// Creates the tables, or finds them.
    ///
    /// # Errors
    /// The error of the database.
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
    /// The tables do not exist.
    pub fn find(t: &mut dyn Operations) -> Result<Self> {
        Ok(Self {
            ids: [
                t.table("check-accounts")?,
                t.table("check-registers")?,
                t.table("check-lists")?,
            ],
        })
    }

    /// The key of a row in the database.
    pub fn key(&self, key: Key) -> dyno_txn_api::Key {
        Tuple::new().u64(key.id).key(self.id(key.table))
    }

    /// The id of a table in the database.
    pub fn id(&self, table: u32) -> TableId {
        // A number that no check uses gets an id that no database gives out, so the request is
        // refused there.
        let at = table.wrapping_sub(1) as usize;
        self.ids.get(at).copied().unwrap_or(TableId(u32::MAX))
    }
}

/// The number of a row in its table, read from its key.
pub(crate) fn number(key: &[u8]) -> Result<u64> {
    TupleReader::new(key).u64()
}

/// Encodes a register as a row.
pub(crate) fn register(n: i64, by: u64) -> Vec<u8> {
    encode_row(&[ValueRef::I64(n), ValueRef::U64(by)])
}

/// Encodes a list as the bytes of its elements.
pub(crate) fn list(elements: &[u64]) -> Vec<u8> {
    elements
        .iter()
        .flat_map(|element| element.to_be_bytes())
        .collect()
}

/// Decodes the bytes of a row. Bytes that are not valid become [`Value::Broken`], which the judges
/// report.
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

/// The assignments that add to a register and set its writer.
pub(crate) fn addition(amount: i64, by: u64) -> Vec<dyno_txn_api::Assignment> {
    use dyno_txn_api::Assignment;
    vec![Assignment::add(NUMBER, amount), Assignment::set(BY, by)]
}
