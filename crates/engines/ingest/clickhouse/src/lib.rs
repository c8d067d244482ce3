//! Loads archives of spots and of the other feeds into a ClickHouse server or cluster, over HTTP,
//! each archive once.
//!
//! Chunks of columns become blocks of the Native format ([`native`]; [`spots`] of WSPR,
//! [`feed_rows`] of the others), sorted by the table's key ([`order`]) and packed as LZ4 frames.
//! Each connection fills a stage of its own ([`sender`]); when all has arrived, the archive's
//! partitions are swapped into the table and the ledger says so ([`ledger`], [`swap`]). A killed
//! load, ours or the server's, leaves every archive as it was or as it was to be.
//!
//! [`Servers`] is a [`dyno_ingest_feeds::Location`]; archives are read and scanned there.

mod address;
mod error;
mod exception;
#[cfg(test)]
mod fake_server;
mod feed_rows;
mod http;
pub mod ledger;
mod native;
mod order;
mod patience;
mod pressure;
pub mod private_server;
mod quarantine;
mod schema;
mod sender;
mod setup;
mod spots;
mod stage;
mod status;
mod swap;
mod table;
mod writer_lock;

pub use address::Address;
pub use error::{Error, Result};
pub use http::Password;
pub use status::{Status, status};
pub use table::{ServerTable, Servers, Settings};
