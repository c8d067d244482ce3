//! How rows are mapped to keys of etcd.
//!
//! | key | value |
//! |---|---|
//! | `dyno/c/` name | a table's number (u32, big-endian), then [`dyno_txn_api::TableDef::to_bytes`] |
//! | `dyno/n` | the number of the last table |
//! | `dyno/d/` table or index (u32, big-endian) key | the row; nothing for an entry of an index |

use dyno_txn_api::{TableId, prefix_end};

/// The key of the last table's id, from which the next one is derived.
pub const NUMBERS: &[u8] = b"dyno/n";
/// The prefix of the keys of definitions, before the name of the table.
pub const CATALOGUE: &[u8] = b"dyno/c/";
const ROWS: &[u8] = b"dyno/d/";

/// The key of the definition of a table.
pub fn catalogue(name: &str) -> Vec<u8> {
    [CATALOGUE, name.as_bytes()].concat()
}

/// The key of a row, or of an entry of an index.
pub fn row(table: TableId, key: &[u8]) -> Vec<u8> {
    [ROWS, &table.0.to_be_bytes(), key].concat()
}

/// The first key after all rows of a table.
pub fn end_of(table: TableId) -> Vec<u8> {
    // The prefix begins with letters, so there always is a key after it.
    prefix_end(&row(table, b"")).unwrap_or_default()
}

/// The key within its table or index, which is what the user knows.
pub fn key_of(stored: &[u8]) -> &[u8] {
    stored.get(ROWS.len() + 4..).unwrap_or_default()
}
