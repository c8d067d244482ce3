//! Loads archives into the table: several files in parallel, and the stages of one file on two
//! threads.
//!
//! An archive is loaded whole or not at all, and committed as soon as it is complete. So a load
//! that is killed keeps the archives it had finished, and the same command loads the rest.

mod archive;
mod directory;
mod encode;
mod format;
mod iceberg;
mod identity;
mod parquet_codes;
mod parquet_in;
mod quarantine;
mod report;
mod target;
mod workers;
mod wspr;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use archive::Sink;
pub use directory::{Directory, RowGroups};
pub use dyno_codec::inflate::Engine;
pub use encode::encode_strings;
pub use format::{ArchiveReader, Archives};
pub use iceberg::Types;
pub use identity::from_path as wspr_archive;
pub use report::{ArchiveReport, LoadReport, Outcome, ServerReport, StageSeconds};
pub use target::{Before, Chunk, Committed, Opening, Stage, StoredArchive, Target};
pub use wspr::spots_in;

use crate::scan::Scanner;
use crate::source::{BLOCK, Source, open_path, open_stream};
use crate::table::WSPR;
use crate::{Error, Result};

/// Rows of a row group if memory allows: enough that a dictionary is small compared with its codes.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Dictionaries may use one part in this many of a worker's memory, and blocks in flight another.
const SHARE: usize = 8;
/// Blocks between the two threads of a file: enough to keep inflating while a row group is written.
const BLOCKS_IN_FLIGHT: usize = 64;

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

/// Loads `inputs`, archives of WSPR, into the table in `table` and reports the result of each.
///
/// # Errors
/// As [`load_into`], and [`Error::Locked`], [`Error::Manifest`].
pub fn load(
    inputs: Vec<Input>,
    table: &Path,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    let archives = Archives {
        feed: WSPR,
        identity: &|given, path| given.map_or_else(|| wspr_archive(path), str::to_owned),
        reader: &Scanner::default,
    };
    load_into(&archives, inputs, spots_in(table), options, progress)
}

/// Loads `inputs`, archives of one feed, into the table that `opening` opens, and reports the
/// result of each.
///
/// # Errors
/// Before anything is read: two inputs of one identity, too little memory, and those of opening the
/// table. What goes wrong with one archive is in its [`Outcome`] and keeps none of the others from
/// being loaded.
pub fn load_into<R: ArchiveReader>(
    archives: &Archives<'_, R>,
    inputs: Vec<Input>,
    opening: Opening<'_, R::Chunk>,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    let started = std::time::Instant::now();
    // Requests that cannot work are refused before the table is opened, so that they do not create
    // one.
    let identities = workers::identities(&inputs, options, archives.identity)?;
    let workers = options.workers.min(inputs.len()).max(1);
    let memory = WorkerMemory::of_worker::<R::Chunk>(options, workers, opening.each_bytes)?;
    let target = (opening.open)()?;
    let target = target.as_ref();
    let reports = workers::side_by_side(workers, identities, inputs, |worker, identity, input| {
        let job = archive::Job {
            archives,
            identity,
            target,
            options,
            progress,
            memory,
            // Workers without a file of their own become the second threads of the first files.
            spread: options.workers > workers && worker < options.workers - workers,
        };
        job.run(input)
    });
    target.finish()?;
    Ok(LoadReport {
        archives: reports,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// How the memory of one worker is divided.
#[derive(Debug, Clone, Copy)]
struct WorkerMemory {
    /// The greatest size of a chunk.
    size: usize,
    /// Bytes that the worker's dictionaries may hold.
    dictionary_bytes: usize,
    /// Blocks between its two threads.
    blocks: usize,
}

impl WorkerMemory {
    /// Divides the memory so that all workers stay within the limit.
    fn of_worker<C: Chunk>(options: &Options, workers: usize, each: usize) -> Result<WorkerMemory> {
        let bytes = workers::worker_bytes(options, workers, C::least_bytes(each))?;
        Ok(WorkerMemory {
            size: C::most(bytes, each),
            dictionary_bytes: bytes / SHARE,
            blocks: (bytes / SHARE / BLOCK).min(BLOCKS_IN_FLIGHT),
        })
    }
}
