//! Downloads archives as their makers publish them.
//!
//! A download that was cut off, by a network or by a kill, continues where it was, as long as the
//! server still has the same version. A file appears under its name when it is complete and has
//! been inflated once to its checksum. For a file that is there already the server is only asked
//! whether it has changed, because the archive of the running month grows.
//!
//! It is a crate of its own so that HTTP stays out of the rest of ingest.

mod download;
mod error;
mod http;
mod period;
mod state;

pub use download::{Fetch, Outcome};
pub use error::FetchError;
pub use period::{Period, Published};
