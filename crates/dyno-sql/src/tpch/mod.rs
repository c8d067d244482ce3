//! A directory of TPC-H tables: finding the files, opening them for SQL, judging what is in them.

pub mod layout;
pub mod open;
pub mod schema;
pub mod text;
