//! Loads what arrives, each row once, whatever is killed and when.
//!
//! Three sources: [`Folder`] loads the files of a folder once they are complete; [`Stream`] loads
//! the records of a log, whose client the caller provides as a [`Source`]; [`live`] collects a
//! broker's messages into hourly files and loads those. All state is in the table's own ledger: a
//! file by its name, length and hash, a stretch of a log by its offsets, in the same entry as its
//! rows. So rows and the position after them are committed together, and no other state can be
//! lost.
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

pub use destination::{Destination, Table};
pub use error::{SourceError, WatchError};
pub use files::Files;
pub use folder::{Folder, FolderSettings, FolderSummary};
pub use metrics::Metrics;
pub use stream::{Batching, Ends, Source, Stream, StreamSettings, StreamSummary};
