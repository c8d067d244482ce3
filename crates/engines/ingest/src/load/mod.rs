//! Loads archives into the table: files side by side, then the stages of one file.
//!
//! An archive is loaded whole or not at all, and each is committed by itself as it ends, so that a
//! load that is killed keeps the archives it had finished; the same command does the rest.

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

/// Rows of a row group when memory allows: enough that a dictionary is small beside its codes.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Blocks in flight, dictionaries and their tables, for each lane.
const BYTES_PER_LANE: usize = 96 << 20;

/// The share of a lane's memory that its dictionaries may hold is one in this many.
const DICTIONARIES_SHARE: usize = 8;

/// How to load.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads at work; with fewer files than workers a file's stages are spread over two.
    pub workers: usize,
    /// Share of bad rows that an archive may have, 0 to 1.
    pub max_bad: f64,
    /// Memory to stay within, in bytes.
    pub memory: usize,
    /// Which decoder inflates.
    pub engine: Engine,
    /// Identity to give the one input, instead of the one that its name has.
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

/// What another thread may watch while a load runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read of the files as stored.
    pub bytes: Arc<AtomicU64>,
    /// Rows converted.
    pub rows: AtomicU64,
    /// Set to stop at the next block.
    pub stop: Arc<AtomicBool>,
}

impl Progress {
    /// Whether the work may go on.
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

/// What to load.
pub enum Input {
    /// A file.
    File(PathBuf),
    /// A stream of text or gzip, with the name it has in messages.
    Stream(String, Box<dyn Read + Send>),
}

impl Input {
    /// Its file, or the name it has in messages.
    pub fn path(&self) -> &Path {
        match self {
            Input::File(path) => path,
            Input::Stream(name, _) => Path::new(name),
        }
    }

    /// Opens it; the bytes that are read of it are added to `total`.
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

/// Loads `inputs` into the table in `table` and tells what became of each.
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

/// As [`load`], into the table that `opening` gets at.
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

/// Memory of one lane, divided.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Rows of a row group.
    row_group_rows: usize,
    /// Bytes that its dictionaries may hold.
    dictionary_bytes: usize,
}

impl Room {
    /// What lets all lanes stay within the memory asked for.
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
