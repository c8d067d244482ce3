//! Downloads archives as their makers publish them.
//!
//! A download that was cut off, by a network or by a kill, goes on where it was as long as the
//! server still has the same file; a file appears under its name when it is complete and has been
//! inflated once to its checksum. A file that is there already is asked for again only as "has it
//! changed?", since the running month grows.
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
