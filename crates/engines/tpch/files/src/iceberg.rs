//! Iceberg metadata of the tables of a job, which the job writes when all of their files are there.
//!
//! The metadata of `lineitem` is in `DIR/lineitem/metadata`, whether its files are
//! `DIR/lineitem.parquet` or parts in `DIR/lineitem`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dyno_formats::parquet_read::FileStatistics;
use dyno_formats::parquet_write::{Field, number};
use dyno_iceberg::{Catalogue, Commit, DataFile, Past, columns_of};
use dyno_io::HostFiles;
use dyno_tpch::Table;

use crate::destination::Destination;
use crate::error::Error;
use crate::fields;
use crate::job::Job;
use crate::report::FileReport;

/// The catalogues of all tables of a job; none if the job has not asked for them.
pub(crate) struct Catalogues {
    root: PathBuf,
    tables: Vec<(Table, Catalogue)>,
}

impl Catalogues {
    /// Opens the metadata that is there. This comes before the first file is written, so that a job
    /// whose tables another program manages is refused and has written nothing.
    ///
    /// # Errors
    /// [`Error::Iceberg`]; [`Error::Write`] if the folder cannot be made.
    pub(crate) fn open(job: &Job) -> Result<Catalogues, Error> {
        let mut catalogues = Catalogues {
            root: PathBuf::new(),
            tables: Vec::new(),
        };
        let Destination::Folder(folder) = &job.destination else {
            return Ok(catalogues);
        };
        if !job.iceberg {
            return Ok(catalogues);
        }
        // Locations are absolute and must be the same in each run, so the folder has to exist.
        catalogues.root = fs::create_dir_all(folder)
            .and_then(|()| folder.canonicalize())
            .map_err(|source| Error::Write {
                path: folder.clone(),
                source,
            })?;
        let mut tables = job.tables.clone();
        tables.sort();
        tables.dedup();
        for table in tables {
            let failed = |source| Error::Iceberg {
                table: table.name(),
                source,
            };
            let columns = fields::table_fields(table).into_iter();
            let mut columns: Vec<Field> = columns.map(Field::from).collect();
            number(&mut columns);
            let columns = columns_of(&columns).map_err(failed)?;
            let directory = catalogues.root.join(table.name());
            let catalogue =
                Catalogue::open(Arc::new(HostFiles), &directory, columns).map_err(failed)?;
            catalogues.tables.push((table, catalogue));
        }
        Ok(catalogues)
    }

    /// Makes the files of the job the one snapshot of their tables.
    ///
    /// # Errors
    /// [`Error::Iceberg`].
    pub(crate) fn commit(self, files: &[FileReport]) -> Result<(), Error> {
        let at_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as i64);
        for (table, mut catalogue) in self.tables {
            let files: Vec<&FileReport> = files.iter().filter(|f| f.table == table).collect();
            // A file that was written again may differ although its name and size do not.
            let past = if files.iter().all(|file| file.kept) {
                Past::Kept
            } else {
                Past::Forgotten
            };
            let data_file = |file: &&FileReport| DataFile {
                path: self.root.join(&file.name),
                rows: file.rows,
                bytes: file.bytes,
            };
            let commit = Commit {
                generation: 0,
                at_ms,
                files: files.iter().map(data_file).collect(),
                past,
            };
            let failed = |source| Error::Iceberg {
                table: table.name(),
                source,
            };
            catalogue
                .commit(&commit, |path| Ok(FileStatistics::read(path)?))
                .map_err(failed)?;
        }
        Ok(())
    }
}
