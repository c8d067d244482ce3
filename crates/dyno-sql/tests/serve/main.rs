//! `dyno-sql serve` as its clients see it: psql, drivers, tools over JDBC, curl and a browser. It
//! is one program, because each that links the SQL engine takes a while to build.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod guard;
mod http;
#[path = "../queries/installed.rs"]
mod installed;
mod jdbc;
mod load;
mod pg;
mod serving;
#[path = "../queries/tables.rs"]
mod tables;
