//! A directory of TPC-H tables: finding the files, opening them for SQL, judging what is in them.

pub mod checks;
pub mod layout;
pub mod open;
mod orc;
pub mod same_rows;
pub mod schema;
pub mod text;
