//! Limits within which every engine accepts requests, so that a program that keeps to them runs on
//! all of them.

use crate::{Code, Error, Result};

/// Bytes of a key, without its table.
pub const KEY_BYTES_MAX: usize = 1 << 10;
/// Bytes of a value, or of a row with all of its columns.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// Operations in one batch or one-shot list.
pub const OPERATIONS_MAX: usize = 16 << 10;
/// Rows that one page of a scan returns at most.
pub const PAGE_ROWS_MAX: u32 = 64 << 10;
/// Bytes of keys and values after which a page of a scan ends with a continuation.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// Columns of one table, and of one stored row.
pub const COLUMNS_MAX: usize = 1024;
/// Secondary indexes of one table.
pub const INDEXES_MAX: usize = 16;
/// Conditions in a filter, with the ones that combine others.
pub const FILTER_NODES_MAX: usize = 256;
/// Levels of nested conditions in a filter. Filters are checked recursively, so this bounds the
/// stack.
pub const FILTER_DEPTH_MAX: usize = 16;
/// Bytes of a procedure's arguments, and of its result.
pub const CALL_BYTES_MAX: usize = 4 << 20;
/// Bytes of the name of a table, column, index or procedure.
pub const NAME_BYTES_MAX: usize = 128;
/// Split points of a table that is partitioned by range.
pub const SPLITS_MAX: usize = 4096;

/// Returns an error if the key is longer than [`KEY_BYTES_MAX`].
pub fn check_key(key: &[u8]) -> Result<()> {
    check("a key", key.len(), KEY_BYTES_MAX)
}

/// Returns an error if the value is longer than [`VALUE_BYTES_MAX`].
pub fn check_value(value: &[u8]) -> Result<()> {
    check("a value", value.len(), VALUE_BYTES_MAX)
}

fn check(what: &str, bytes: usize, most_bytes: usize) -> Result<()> {
    if bytes <= most_bytes {
        return Ok(());
    }
    let text = format!("{what} of {bytes} bytes: {most_bytes} at most");
    Err(Error::new(Code::TooLarge, text))
}
