//! Loads archives into the table: several files in parallel, and the stages of one file on two
//! threads.
//!
//! An archive is loaded whole or not at all, and committed as soon as it is complete. So a load
//! that is killed keeps the archives it had finished, and the same command loads the rest.

mod directory;
mod encode;
mod identity;
mod lane;
pub mod lanes;
mod parquet_codes;
mod parquet_in;
mod quarantine;
mod report;
mod target;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use directory::{Directory, RowGroups};
pub use dyno_codec::inflate::Engine;
pub use identity::of as identity_of;
pub use lane::allowed_bad;
pub use quarantine::Quarantine;
pub use report::{ArchiveReport, LoadReport, Outcome, ServerReport, StageSeconds};
pub use target::{Before, Committed, Held, Opening, Stage, Target};

use crate::source::{Source, open_path, open_stream};
use crate::{Error, Result};

/// Rows of a row group if memory allows: enough that a dictionary is small compared with its codes.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Bytes for each worker's blocks in flight, dictionaries and hash tables.
const BYTES_PER_LANE: usize = 96 << 20;

/// Dictionaries may use one part in this many of a worker's memory.
const DICTIONARIES_SHARE: usize = 8;

/// Threads, limits and identity of a load.
#[derive(Debug, Clone)]
pub struct Options {
    /// Worker threads. With fewer files than workers, the stages of a file use two threads.
    pub workers: usize,
    /// The share of an archive's rows that may be bad, 0 to 1.
    pub max_bad: f64,
    /// Limit on memory, in bytes.
    pub memory: usize,
    /// The decoder that inflates gzip.
    pub engine: Engine,
    /// The identity for the only input, instead of the one from its name.
    pub identity: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            workers,
            max_bad: 0.001,
            memory: 1 << 30,
            engine: Engine::Native,
            identity: None,
        }
    }
}

/// Counters that another thread may read while a load runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read from the files as stored.
    pub bytes: Arc<AtomicU64>,
    /// Rows converted so far, good and bad.
    pub rows: AtomicU64,
    /// Set to stop at the next block.
    pub stop: Arc<AtomicBool>,
}

impl Progress {
    /// Checks whether the work may go on.
    ///
    /// # Errors
    /// [`Error::Stopped`] once it was asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::Stopped)
        } else {
            Ok(())
        }
    }
}

/// An archive to load, as a file or a stream.
pub enum Input {
    /// A regular file, by its path.
    File(PathBuf),
    /// A stream of text or gzip, with its name for messages.
    Stream(String, Box<dyn Read + Send>),
}

impl Input {
    /// Path of the file, or the stream's name for messages.
    pub fn path(&self) -> &Path {
        match self {
            Input::File(path) => path,
            Input::Stream(name, _) => Path::new(name),
        }
    }

    /// Opens it. Bytes read are added to `total`.
    ///
    /// # Errors
    /// Those of [`open_path`] and [`open_stream`].
    pub fn open(self, engine: Engine, total: Option<Arc<AtomicU64>>) -> Result<Source> {
        match self {
            Input::File(path) => open_path(&path, engine, total),
            Input::Stream(name, reader) => {
                open_stream(&name, reader, engine, total).map(|text| Source::Text(Box::new(text)))
            }
        }
    }
}

/// Loads `inputs` into the table in `table` and reports the result of each.
///
/// # Errors
/// Before anything is read: [`Error::Locked`], [`Error::Manifest`], two inputs of one identity, too
/// little memory. What goes wrong with one archive is in its [`Outcome`] and keeps none of the
/// others from being loaded.
pub fn load(
    inputs: Vec<Input>,
    table: &Path,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    let open = || {
        let directory = Directory::open(table, encode::Encoder::default)?;
        Ok(Box::new(directory) as Box<dyn Target>)
    };
    let opening = Opening {
        row_bytes: directory::BYTES_PER_ROW,
        open: &open,
    };
    load_into(inputs, &opening, options, progress)
}

/// Like [`load`], into the table that `opening` opens.
///
/// # Errors
/// As [`load`], and those of opening the target.
pub fn load_into(
    inputs: Vec<Input>,
    opening: &Opening<'_>,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    let started = std::time::Instant::now();
    let identities = lanes::identities(&inputs, options, |given, path| {
        given.map_or_else(|| identity::of(path), str::to_owned)
    })?;
    let lanes = options.workers.min(inputs.len()).max(1);
    let room = Room::of_lane(options, lanes, opening.row_bytes)?;
    let target = (opening.open)()?;
    let target = target.as_ref();
    let archives = lanes::side_by_side(lanes, identities, inputs, |lane, identity, input| {
        let job = lane::Job {
            identity,
            target,
            options,
            progress,
            room,
            spread: options.workers > lanes && lane < options.workers - lanes,
        };
        job.run(input)
    });
    target.finish()?;
    Ok(LoadReport {
        archives,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// How the memory of one worker is divided.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Rows in a row group.
    row_group_rows: usize,
    /// Bytes that the worker's dictionaries may hold.
    dictionary_bytes: usize,
}

impl Room {
    /// Divides the memory so that all workers stay within the limit.
    fn of_lane(options: &Options, lanes: usize, row_bytes: usize) -> Result<Room> {
        const LEAST_ROWS: usize = 16 * 1024;
        let needed = BYTES_PER_LANE + LEAST_ROWS * row_bytes;
        let bytes = lanes::lane_bytes(options, lanes, needed)?;
        Ok(Room {
            row_group_rows: ((bytes - BYTES_PER_LANE) / row_bytes).min(ROW_GROUP_ROWS),
            dictionary_bytes: bytes / DICTIONARIES_SHARE,
        })
    }
}
