//! What every engine accepts, so that a program which stays below them runs on all of them.

use crate::{Code, Error, Result};

/// Bytes of a key, without its table.
pub const KEY_BYTES_MAX: usize = 1 << 10;
/// Bytes of a value.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// Operations in one batch or one-shot list.
pub const OPERATIONS_MAX: usize = 16 << 10;
/// Rows that one page of a scan returns at most.
pub const PAGE_ROWS_MAX: u32 = 64 << 10;
/// Bytes of keys and values after which a page of a scan ends, with a continuation.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// Columns of a table.
pub const COLUMNS_MAX: usize = 1024;
/// Secondary indexes of a table.
pub const INDEXES_MAX: usize = 16;
/// Nodes of a filter, and levels of its nesting.
pub const FILTER_NODES_MAX: usize = 256;
/// Levels of a filter's nesting.
pub const FILTER_DEPTH_MAX: usize = 16;
/// Bytes of a procedure's arguments or answer.
pub const CALL_BYTES_MAX: usize = 4 << 20;
/// Bytes of the name of a table, column, index or procedure.
pub const NAME_BYTES_MAX: usize = 128;
/// Split points of a range partitioning.
pub const SPLITS_MAX: usize = 4096;

/// Refuses a key that is too long.
pub fn check_key(key: &[u8]) -> Result<()> {
    check("a key", key.len(), KEY_BYTES_MAX)
}

/// Refuses a value that is too long.
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
