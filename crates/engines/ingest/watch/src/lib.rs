//! Loads what arrives, each row once, whatever is killed and when.
//!
//! Three sources: [`Folder`] takes the files of a folder once they are complete; [`Stream`] takes
//! records of a log, whose client the caller brings as a [`Source`]; [`live`] collects a broker's
//! messages into files of an hour and takes those. All that has to be remembered is in the table's
//! own ledger: a file by its name, length and hash, a stretch of a log by its offsets, which are in
//! the same entry as its rows. So there is no moment at which rows are in the table and the place
//! behind them is not, and nothing beside the table to be lost.
//!
//! It is neither a scheduler nor a queue: one process, one source, one table.

mod destination;
mod error;
mod files;
mod folder;
pub mod live;
mod metrics;
mod pause;
mod stream;

pub use destination::{Destination, Table, Whose};
pub use error::{SourceError, WatchError};
pub use files::Files;
pub use folder::{Folder, FolderSettings, FolderSummary};
pub use metrics::Metrics;
pub use stream::{Batching, Ends, Source, Stream, StreamSettings, StreamSummary};
