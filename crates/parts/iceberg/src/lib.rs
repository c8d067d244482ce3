//! Iceberg metadata for Parquet files that are there already: a table that DuckDB, PyIceberg and
//! Spark read by its directory, without a catalogue server.
//!
//! ```text
//! DIR/metadata/version-hint.text     the number of the newest version
//! DIR/metadata/vN.metadata.json      the table in version N: schema, snapshots, properties
//! DIR/metadata/snap-N.avro           the manifest list of the snapshot that version N added
//! DIR/metadata/manifest-N.avro       the data files that version N added, and those it wrote again
//! ```
//!
//! A [`Catalogue`] is brought up to date with the files that its owner has committed. The owner
//! decides what is in the table; this is a second description of it, in format version 2 of the
//! Iceberg specification, unpartitioned and without deletes by row. Version N adds snapshot N with
//! sequence number N. So a version whose numbers differ was written by another program, and it is
//! refused and never overwritten.
//!
//! A version appears by a rename to a name that is free, when all that it refers to is on stable
//! storage; the hint is replaced last. A crash leaves the version before, or the new one with an
//! old hint, which the next commit mends.

mod avro;
mod bounds;
mod catalogue;
mod column;
mod error;
mod files;
mod history;
mod manifest;
mod metadata;

pub use catalogue::{Catalogue, Commit, DataFile, Past};
pub use column::{Column, Kind, columns_of};
pub use error::{Error, Result};
