//! Loads into real ClickHouse servers, which the tests start on loopback. Without the program they
//! say so.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

/// What the readers of the feeds' own tests call a row.
mod agree {
    /// A row as text, cell by cell.
    pub type Row = Vec<Option<String>>;
}
mod cluster;
mod feeds;
mod full_disk;
mod killed;
mod loaded;
mod refused;
mod scene;
#[allow(dead_code, reason = "the feeds' own tests use the rest")]
#[path = "../../../feeds/tests/stored/mod.rs"]
mod stored;
mod sums;
