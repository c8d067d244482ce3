//! A job, which says what to write.

use std::thread;

use dyno_io::SinkKind;
use dyno_tpch::{Scale, Table};
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::error::Error;
use crate::options::{Format, Layout, Mode, Split};
use crate::stored;

/// Which files of which tables to write, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The scale factor of the tables.
    #[serde(with = "stored::scale")]
    pub scale: Scale,
    /// Which tables to write, each once.
    #[serde(with = "stored::tables")]
    pub tables: Vec<Table>,
    /// The format of the files and its options.
    pub layout: Layout,
    /// The way in which rows become pages.
    pub mode: Mode,
    /// How many threads generate, encode and write.
    pub jobs: usize,
    /// Whether whole tables or parts of them are written.
    pub split: Split,
    /// The way in which bytes reach the disk.
    #[serde(with = "stored::text")]
    pub sink: SinkKind,
    /// How many bytes of memory the process may use, for the text pool, a piece of a table for each
    /// thread, and pieces that wait for their turn.
    pub memory_bytes: u64,
    /// Whether existing files, even those that do not belong to this job, are replaced.
    pub overwrite: bool,
    /// Whether each table gets Iceberg metadata, with the files as its one snapshot.
    pub iceberg: bool,
    /// The folder or object store for the files.
    #[serde(rename = "place")]
    pub destination: Destination,
}

impl Job {
    /// A job for all tables in whole files, on all cores and within a gibibyte, with the defaults
    /// of the format.
    pub fn new(scale: Scale, format: Format, place: Destination) -> Job {
        Job {
            scale,
            tables: Table::ALL.to_vec(),
            layout: Layout::new(format),
            mode: Mode::TrueZeroCopy,
            jobs: thread::available_parallelism().map_or(1, usize::from),
            split: Split::Whole,
            sink: SinkKind::Auto,
            memory_bytes: 1 << 30,
            overwrite: false,
            iceberg: false,
            destination: place,
        }
    }

    /// Whether another program must write it, by [`run_in`](crate::run_in). The mode `baseline`
    /// needs Arrow, except for TBL, which no library prints as dbgen does.
    pub fn is_of_another_program(&self) -> bool {
        self.mode == Mode::Baseline && self.layout.format != Format::Tbl
    }

    /// Checks the job as [`run`](crate::run) does first, for callers that only plan it.
    ///
    /// # Errors
    /// [`Error::Together`] for options that exclude each other, [`Error::Option`] for a single one.
    pub fn check(&self) -> Result<(), Error> {
        self.layout.check(self.mode)?;
        let refuse = |reason: &str| Err(Error::Together(reason.to_owned()));
        if self.tables.is_empty() {
            return refuse("no table was asked for");
        }
        let columns = self.tables.iter().flat_map(|table| table.columns());
        let names: Vec<&str> = columns.map(|column| column.name).collect();
        if let Some((name, _)) = self
            .layout
            .columns
            .iter()
            .find(|(name, _)| !names.contains(&name.as_str()))
        {
            let wanted = "a column of the tables that are written, such as l_comment";
            return Err(Error::option("column", name, wanted));
        }
        let one_file = self.tables.len() == 1 && !matches!(self.split, Split::Parts(_));
        if self.sink == SinkKind::Stdout && !one_file {
            return refuse("standard output takes one file: choose one table, and one part of it");
        }
        if let Split::Parts(0) = self.split {
            return refuse("a table has at least one part");
        }
        let named = !matches!(self.sink, SinkKind::Null | SinkKind::Stdout);
        if matches!(self.destination, Destination::Objects { .. }) && self.sink != SinkKind::Auto {
            return refuse("objects have a way of their own: leave --sink to auto");
        }
        if named && self.destination == Destination::Nowhere {
            return refuse("a sink that makes files needs a place for them");
        }
        if self.iceberg {
            self.check_iceberg()?;
        }
        Ok(())
    }

    /// Checks what Iceberg metadata needs of a job.
    fn check_iceberg(&self) -> Result<(), Error> {
        let refuse = |reason: &str| Err(Error::Together(reason.to_owned()));
        if self.layout.format != Format::Parquet {
            return refuse("--catalog iceberg describes Parquet files: leave --format to parquet");
        }
        if self.mode == Mode::Baseline {
            return refuse(
                "the library that writes the mode baseline numbers no columns, which --catalog \
                 iceberg needs: choose the mode zero-copy or true-zero-copy",
            );
        }
        if !matches!(self.destination, Destination::Folder(_)) || self.sink == SinkKind::Null {
            return refuse("--catalog iceberg describes files in a folder: give one by --out DIR");
        }
        if matches!(self.split, Split::Part { .. }) {
            return refuse(
                "--catalog iceberg describes whole tables, and --part writes a part of each: write \
                 all parts by --parts, in the folder where they are",
            );
        }
        Ok(())
    }
}
