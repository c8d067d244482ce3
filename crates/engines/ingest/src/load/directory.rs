//! The table's directory as the target of a load, for any feed.
//!
//! This module uses `unsafe` for one system call, `sync_file_range`, that the standard library
//! lacks.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dyno_formats::parquet_write::{self, Column, Field, FileWriter};
use parking_lot::Mutex;

use super::iceberg::{Iceberg, Types};
use super::quarantine::Quarantine;
use super::report::StageSeconds;
use super::target::{Before, Chunk, Committed, Stage, StoredArchive, Target};
use crate::scan::BadRow;
use crate::table::{DataFile, SourceIdentity, Staged, TableWriter};
use crate::{Error, Result};

/// Encodes the chunks of one archive as row groups, and reuses its memory.
pub trait RowGroups {
    /// The rows that a reader of the feed produces at once.
    type Chunk: Chunk;

    /// The feed's name, as the manifest has it.
    fn feed(&self) -> &'static str;

    /// The columns of its Parquet files.
    fn fields(&self) -> Vec<Field>;

    /// Key-value metadata of its files.
    fn about(&self) -> Vec<(String, String)>;

    /// Encodes a chunk as the next row group.
    ///
    /// # Errors
    /// When a page cannot be compressed.
    fn encode(
        &mut self,
        chunk: &Self::Chunk,
    ) -> std::result::Result<&[Column], parquet_write::Error>;
}

/// A directory that is open for writing.
pub struct Directory<F> {
    open: Mutex<Open>,
    types: Types,
    row_groups: F,
}

/// The table and what follows its manifest.
struct Open {
    writer: TableWriter,
    iceberg: Option<Iceberg>,
}

impl<R: RowGroups, F: Fn(Types) -> R> Directory<F> {
    /// Opens the table in `table`; `row_groups` makes the encoder of each archive, for the types
    /// that its files have.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Manifest`], [`Error::Refused`], [`Error::Iceberg`],
    /// [`Error::Io`].
    pub fn open(table: &Path, row_groups: F) -> Result<Self> {
        let writer = TableWriter::open(table)?;
        let types = Types::from_manifest(writer.manifest());
        let encoder = row_groups(types);
        let iceberg = Iceberg::open(&writer, encoder.feed(), &encoder.fields())?;
        Ok(Directory {
            open: Mutex::new(Open { writer, iceberg }),
            types,
            row_groups,
        })
    }
}

impl<R: RowGroups + 'static, F: Fn(Types) -> R + Sync> Target<R::Chunk> for Directory<F> {
    fn stored(&self, archive: &str) -> Result<Option<StoredArchive>> {
        Ok(self
            .open
            .lock()
            .writer
            .whole(archive)
            .map(StoredArchive::from_archive))
    }

    fn stage<'a>(&'a self, archive: &str, source: &Path) -> Result<Box<dyn Stage<R::Chunk> + 'a>> {
        let encoder = (self.row_groups)(self.types);
        // Only the names are chosen here. Each file is created with its first row, so that an
        // archive without one leaves no empty file.
        let writer = &self.open.lock().writer;
        let relative = writer.staging_name("data", archive, "parquet");
        let quarantine_relative = writer.staging_name("quarantine", archive, "ndjson");
        let file_path = writer.table().join(&relative);
        let quarantine = Quarantine::new(writer.table().join(&quarantine_relative), source);
        Ok(Box::new(FileStage {
            open: &self.open,
            archive: archive.to_owned(),
            relative,
            file_path,
            file: None,
            quarantine_relative,
            quarantine,
            encoder,
            rows: 0,
            times_s: None,
        }))
    }

    fn finish(&self) -> Result<()> {
        let open = self.open.lock();
        match open.iceberg {
            None => open.writer.remove_unnamed(),
            // Readers of Iceberg take no lock. Files of the snapshot before stay for them until the
            // next load.
            Some(_) => Ok(()),
        }
    }
}

/// Writes rows as row groups to the staged file.
struct FileStage<'a, R> {
    open: &'a Mutex<Open>,
    archive: String,
    relative: String,
    file_path: PathBuf,
    file: Option<FileWriter<File>>,
    quarantine_relative: String,
    quarantine: Quarantine,
    encoder: R,
    rows: u64,
    times_s: Option<(i64, i64)>,
}

impl<R> FileStage<'_, R> {
    /// Makes the file durable and returns its description.
    fn close(&mut self) -> Result<Option<DataFile>> {
        let Some(file) = self.file.take() else {
            return Ok(None);
        };
        let failed = |e| Error::io("write", &self.file_path, e);
        let (file, summary) = file.finish().map_err(failed)?;
        file.sync_all()
            .map_err(|e| Error::io("sync", &self.file_path, e))?;
        let (time_min_s, time_max_s) = self.times_s.unwrap_or_default();
        Ok(Some(DataFile {
            path: self.relative.clone(),
            rows: summary.rows,
            bytes: summary.bytes,
            time_min_s,
            time_max_s,
        }))
    }
}

impl<R: RowGroups> Stage<R::Chunk> for FileStage<'_, R> {
    fn append(&mut self, chunk: &R::Chunk, stages: &mut StageSeconds) -> Result<u64> {
        let begun = Instant::now();
        if let Some((earliest, latest)) = chunk.times_s() {
            let (first, last) = self.times_s.unwrap_or((earliest, latest));
            self.times_s = Some((earliest.min(first), latest.max(last)));
        }
        let rows = chunk.rows() as u64;
        self.rows += rows;
        let (fields, about) = (self.encoder.fields(), self.encoder.about());
        let failed = |e| Error::io("encode", &self.file_path, std::io::Error::other(e));
        let encoded = self.encoder.encode(chunk).map_err(failed)?;
        stages.encode += begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        let failed = |e| Error::io("write", &self.file_path, e);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = File::create(&self.file_path)
                    .map_err(|e| Error::io("create", &self.file_path, e))?;
                none.insert(FileWriter::new(file, fields, about).map_err(failed)?)
            }
        };
        // A failure leaves a part of a file behind. No manifest has its name, so no reader sees it,
        // and the next writer removes it.
        file.row_group(encoded).map_err(failed)?;
        begin_writeback(file.output());
        stages.write += begun.elapsed().as_secs_f64();
        Ok(rows)
    }

    fn put_aside(&mut self, row: &BadRow<'_>) {
        self.quarantine.add(row);
    }

    fn bad_rows(&self) -> u64 {
        self.quarantine.rows()
    }

    fn reject(mut self: Box<Self>) -> Result<PathBuf> {
        self.quarantine.finish()?;
        let kept = self
            .open
            .lock()
            .writer
            .rejected_path(&self.quarantine_relative);
        self.quarantine.keep_as(&kept)?;
        Ok(kept)
    }

    fn commit(
        mut self: Box<Self>,
        source: SourceIdentity,
        stages: &mut StageSeconds,
    ) -> Result<Committed> {
        let begun = Instant::now();
        let quarantined = self.quarantine.finish()?;
        let file = self.close()?;
        let table_bytes = file.as_ref().map_or(0, |file| file.bytes);
        // Both files are durable before the lock is taken, because a sync takes long and other
        // archives can commit meanwhile.
        let mut open = self.open.lock();
        let Open { writer, iceberg } = &mut *open;
        let before = if !writer.manifest().archives.contains_key(&self.archive) {
            Before::Nothing
        } else if writer.whole(&self.archive).is_some() {
            Before::Earlier
        } else {
            Before::Damaged
        };
        writer.commit(Staged {
            feed: self.encoder.feed().to_owned(),
            archive: self.archive.clone(),
            source,
            files: file.into_iter().collect(),
            rows: self.rows,
            bad_rows: self.quarantine.rows(),
            quarantine: quarantined.then(|| self.quarantine_relative.clone()),
        })?;
        if let Some(iceberg) = iceberg {
            iceberg.follow(writer.manifest())?;
        }
        stages.write += begun.elapsed().as_secs_f64();
        Ok(Committed {
            rows: self.rows,
            table_bytes,
            before,
            server: None,
        })
    }
}

/// Makes the kernel begin to write, so that the final sync need not wait for all of the file.
fn begin_writeback(file: &File) {
    // SAFETY: the descriptor is open. A failure only costs time, so the result is ignored.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}
