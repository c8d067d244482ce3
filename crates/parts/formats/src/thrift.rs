//! The kinds of values in Thrift's compact protocol, by the numbers that stand for them in a
//! field's header. The reader and the writer of Parquet's metadata share them.

/// Stands in the place of a field's header where a struct ends.
pub(crate) const STOP: u8 = 0;
pub(crate) const BOOL_TRUE: u8 = 1;
pub(crate) const BOOL_FALSE: u8 = 2;
pub(crate) const I8: u8 = 3;
pub(crate) const I16: u8 = 4;
pub(crate) const I32: u8 = 5;
pub(crate) const I64: u8 = 6;
pub(crate) const DOUBLE: u8 = 7;
pub(crate) const BINARY: u8 = 8;
pub(crate) const LIST: u8 = 9;
pub(crate) const SET: u8 = 10;
pub(crate) const MAP: u8 = 11;
pub(crate) const STRUCT: u8 = 12;
pub(crate) const UUID: u8 = 13;
