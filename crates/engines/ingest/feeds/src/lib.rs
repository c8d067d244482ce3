//! Feeds beside WSPR: spots of the Reverse Beacon Network, contest logs, PSK Reporter, indices of
//! the sun.
//!
//! Each has columns of its own and a reader of its lines ([`Feed`]); loading, the table, quarantine
//! and what is loaded exactly once are the same for all of them and the same as WSPR's
//! ([`load()`]). A table's directory may hold several feeds, which SQL sees as one table each.

pub mod cabrillo;
pub mod calendar;
mod feed;
pub mod generate;
pub mod load;
pub mod psk;
pub mod rbn;
mod recognise;
mod rows;
pub mod solar;
mod value;

pub use feed::{Feed, Field, Kind, Layout, Line, Reader, Refusal};
pub use load::{load, load_into};
pub use recognise::{feed_of_file, feed_of_text};
pub use rows::{Cell, Column, Rows, Values};

/// The feeds that there are; WSPR, the first one, is [`dyno_ingest`]'s own.
pub const FEEDS: &[&dyn Feed] = &[&rbn::Rbn, &cabrillo::Cabrillo, &psk::Psk, &solar::Solar];

/// The feed of that name.
pub fn named(name: &str) -> Option<&'static dyn Feed> {
    FEEDS.iter().copied().find(|feed| feed.name() == name)
}
