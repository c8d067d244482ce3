//! The feeds: spots of WSPR and of the Reverse Beacon Network, contest logs, PSK Reporter, indices
//! of the sun.
//!
//! [`FEEDS`] lists them, and only that list has to be extended for a new one. All are loaded by
//! [`dyno_ingest::load::load_into`]. WSPR brings the engine's own scanner and columns; each of the
//! others has columns of its own and a reader of its lines ([`RowFormat`]). A table's directory may
//! hold several feeds, which SQL sees as one table each.

mod batch;
pub mod cabrillo;
pub mod calendar;
mod feed;
mod field;
pub mod generate;
pub mod load;
pub mod psk;
pub mod rbn;
mod recognise;
mod rows;
pub mod solar;
mod value;
pub mod wspr;

pub use feed::{Feed, Layout, Line, Reader, Refusal, RowFormat, stem};
pub use field::{Field, Kind};
pub use load::{Location, load, load_into};
pub use recognise::{feed_of_file, feed_of_text};
pub use rows::{Cell, Column, Rows, Values};

/// All feeds, in the order in which commands list them.
pub static FEEDS: [Feed; 5] = [
    wspr::FEED,
    rbn::FEED,
    cabrillo::FEED,
    psk::FEED,
    solar::FEED,
];

/// The feed of that name.
pub fn named(name: &str) -> Option<&'static Feed> {
    FEEDS.iter().find(|feed| feed.name == name)
}
