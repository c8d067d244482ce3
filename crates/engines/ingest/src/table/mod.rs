//! The embedded table: a directory of Parquet files and the manifest that names the committed ones.
//!
//! ```text
//! DIR/manifest.json                 the committed snapshot, replaced by rename
//! DIR/writer.lock                   held by the one writer
//! DIR/readers.lock                  held, shared, by every open snapshot
//! DIR/data/ARCHIVE.GENERATION.parquet
//! DIR/quarantine/ARCHIVE.GENERATION.ndjson
//! DIR/metadata/                     Iceberg metadata, if the table has that catalogue
//! ```
//!
//! A file that no manifest names does not exist for a reader: it is what a killed load left, and
//! the next writer removes it. docs/formats/spots-table.md describes the same for other programs.

mod lock;
mod manifest;
mod snapshot;
mod span;
mod writer;

pub use manifest::{
    Archive, Catalog, Damage, DataFile, MANIFEST_VERSION, Manifest, SourceIdentity, WSPR,
};
pub use snapshot::Snapshot;
pub use span::{Position, Span, stream_name};
pub use writer::{Staged, TableWriter};

pub use lock::sync_directory;
