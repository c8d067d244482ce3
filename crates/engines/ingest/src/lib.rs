//! Streams compressed radio-spot archives into a columnar table, and reports what is in it.
//!
//! Archive bytes are inflated, their fields scanned into typed columns (strings as dictionary
//! codes) and written as Parquet row groups. A bad row goes to a quarantine file with its line and
//! reason; a load that is killed leaves the table as it was, and the same command finishes it.
//!
//! It is not a general CSV reader: the columns are those of [`contract`].

pub mod contract;
mod error;
pub mod generate;
pub mod load;
pub mod position;
pub mod scan;
pub mod source;
pub mod table;

pub use error::{Error, Result};
