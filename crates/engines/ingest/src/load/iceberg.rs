//! The Iceberg metadata of a table, which follows its manifest.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dyno_formats::parquet_read::FileStatistics;
use dyno_formats::parquet_write::{Field, Logical, number};
use dyno_iceberg::{Catalogue, Commit, DataFile, Past, columns_of};
use dyno_io::HostFiles;

use crate::table::{Catalog, Manifest, TableWriter};
use crate::{Error, Result};

/// The types that the columns of a table's files have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Types {
    /// The narrowest ones that hold the values; times are milliseconds.
    Own,
    /// Those of Iceberg: signed integers of 32 or 64 bits, and microseconds.
    Iceberg,
}

impl Types {
    /// The types of the files of a table with this manifest.
    pub(super) fn from_manifest(manifest: &Manifest) -> Types {
        match manifest.catalog {
            None => Types::Own,
            Some(Catalog::Iceberg) => Types::Iceberg,
        }
    }

    /// Turns the columns of a feed into those of its files.
    pub fn fields(self, mut fields: Vec<Field>) -> Vec<Field> {
        if self == Types::Iceberg {
            for field in &mut fields {
                field.logical = iceberg(field.logical);
            }
            number(&mut fields);
        }
        fields
    }

    /// How many units of a time are a millisecond.
    pub fn per_millisecond(self) -> i64 {
        match self {
            Types::Own => 1,
            Types::Iceberg => 1000,
        }
    }
}

/// The type of Iceberg that holds all values of `logical`. Unsigned integers of 64 bits have none;
/// the encoder refuses those that a signed one cannot hold.
fn iceberg(logical: Logical) -> Logical {
    let signed = |bits| Logical::Integer { bits, signed: true };
    match logical {
        Logical::Integer { bits: 64, .. }
        | Logical::Integer {
            bits: 32,
            signed: false,
        } => signed(64),
        Logical::Integer { .. } => signed(32),
        Logical::TimestampMillis | Logical::TimestampMicros => Logical::TimestampMicros,
        Logical::Date | Logical::Decimal { .. } | Logical::Text => logical,
    }
}

/// The metadata of a table that is open for writing.
#[derive(Debug)]
pub(super) struct Iceberg {
    table: PathBuf,
    catalogue: Catalogue,
}

impl Iceberg {
    /// Opens the metadata if the table has that catalogue, brings it up to date with the manifest,
    /// and then removes the files that a killed load left. So a load that was killed behind its
    /// commit is mended by the next one, whatever that loads.
    ///
    /// # Errors
    /// [`Error::Refused`] if the table has the rows of another feed, [`Error::Iceberg`].
    pub(super) fn open(
        writer: &TableWriter,
        feed: &str,
        fields: &[Field],
    ) -> Result<Option<Iceberg>> {
        let Some(Catalog::Iceberg) = writer.manifest().catalog else {
            return Ok(None);
        };
        let other = writer.manifest().archives.values().find(|a| a.feed != feed);
        if let Some(other) = other {
            return Err(Error::Refused {
                path: writer.table().to_owned(),
                reason: format!(
                    "it has the feed {} and an Iceberg table has one set of columns; load {feed} \
                     into a table of its own",
                    other.feed
                ),
            });
        }
        let table = writer.table();
        // Locations are absolute and must be the same in each load.
        let table = table
            .canonicalize()
            .map_err(|e| Error::io("find", table, e))?;
        let failed = |source| Error::Iceberg {
            table: table.clone(),
            source,
        };
        let columns = columns_of(fields).map_err(failed)?;
        let catalogue = Catalogue::open(Arc::new(HostFiles), &table, columns).map_err(failed)?;
        let mut iceberg = Iceberg { table, catalogue };
        // A table without any commit gets its first snapshot with that.
        if writer.manifest().generation > 0 {
            iceberg.follow(writer.manifest())?;
        }
        writer.remove_unnamed()?;
        Ok(Some(iceberg))
    }

    /// Makes the manifest's state the current snapshot.
    ///
    /// # Errors
    /// [`Error::Iceberg`].
    pub(super) fn follow(&mut self, manifest: &Manifest) -> Result<()> {
        let file = |file: &crate::table::DataFile| DataFile {
            path: self.table.join(&file.path),
            rows: file.rows,
            bytes: file.bytes,
        };
        let commit = Commit {
            generation: manifest.generation,
            at_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as i64),
            files: manifest.files().map(file).collect(),
            past: Past::Kept,
        };
        let written = self
            .catalogue
            .commit(&commit, |path| Ok(FileStatistics::read(path)?));
        written.map(|_| ()).map_err(|source| Error::Iceberg {
            table: self.table.clone(),
            source,
        })
    }
}
