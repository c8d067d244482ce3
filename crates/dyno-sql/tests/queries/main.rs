//! The queries, checks and training sets of `dyno-sql`. It is one program, because each that links
//! the SQL engine takes a while to build.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod coded;
mod features;
mod feeds;
mod installed;
mod plans;
mod selected;
mod sessions;
mod tables;
mod tpch_query;
mod tpch_tables;
mod tpch_verify;
