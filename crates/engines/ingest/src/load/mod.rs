//! Loads archives into the table: files side by side, then the stages of one file.
//!
//! An archive is loaded whole or not at all, and each is committed by itself as it ends, so that a
//! load that is killed keeps the archives it had finished; the same command does the rest.

mod encode;
mod identity;
mod lane;
mod parquet_codes;
mod parquet_in;
mod quarantine;
mod report;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub use dyno_codec::inflate::Engine;
pub use report::{ArchiveReport, LoadReport, Outcome, StageSeconds};

use crate::table::TableWriter;
use crate::{Error, Result};

/// Rows of a row group when memory allows: enough that a dictionary is small beside its codes.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Measured bytes a lane needs for each row of its row group: columns, codes and encoded pages.
const BYTES_PER_ROW: usize = 200;
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

/// What somebody else may watch while a load runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read of the files as stored.
    pub bytes: Arc<AtomicU64>,
    /// Rows converted.
    pub rows: AtomicU64,
    /// Set to stop at the next block.
    pub stop: AtomicBool,
}

impl Progress {
    fn check(&self) -> Result<()> {
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
    fn path(&self) -> &Path {
        match self {
            Input::File(path) => path,
            Input::Stream(name, _) => Path::new(name),
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
    let started = std::time::Instant::now();
    let identities = identities(&inputs, options)?;
    let lanes = options.workers.min(inputs.len()).max(1);
    let room = Room::of_lane(options, lanes)?;
    let writer = Mutex::new(TableWriter::open(table)?);
    let count = inputs.len();
    let queue = Mutex::new(identities.into_iter().zip(inputs).enumerate());
    let reports: Mutex<BTreeMap<usize, ArchiveReport>> = Mutex::default();
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            let spread = options.workers > lanes && lane < options.workers - lanes;
            let (queue, reports, writer) = (&queue, &reports, &writer);
            scope.spawn(move || {
                loop {
                    let next = locked(queue).next();
                    let Some((number, (identity, input))) = next else {
                        return;
                    };
                    let job = lane::Job {
                        identity,
                        writer,
                        options,
                        progress,
                        room,
                        spread,
                    };
                    let report = job.run(input);
                    locked(reports).insert(number, report);
                }
            });
        }
    });
    let archives: Vec<ArchiveReport> = reports
        .into_inner()
        .unwrap_or_else(|p| p.into_inner())
        .into_values()
        .collect();
    debug_assert_eq!(archives.len(), count);
    let writer = writer
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    writer.remove_unnamed()?;
    Ok(LoadReport {
        archives,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// A lane that panicked has poisoned nothing that another one needs.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn identities(inputs: &[Input], options: &Options) -> Result<Vec<String>> {
    if let (Some(_), Some(second)) = (&options.identity, inputs.get(1)) {
        return Err(Error::Refused {
            path: second.path().to_owned(),
            reason: "one identity was given for several inputs".to_owned(),
        });
    }
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    let mut identities = Vec::new();
    for input in inputs {
        let path = input.path();
        let identity = options
            .identity
            .clone()
            .unwrap_or_else(|| identity::of(path));
        if let Some(first) = seen.insert(identity.clone(), path) {
            return Err(Error::Refused {
                path: path.to_owned(),
                reason: format!("it is archive {identity}, and so is {}", first.display()),
            });
        }
        identities.push(identity);
    }
    Ok(identities)
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
    fn of_lane(options: &Options, lanes: usize) -> Result<Room> {
        const LEAST_ROWS: usize = 16 * 1024;
        let least = lanes * (BYTES_PER_LANE + LEAST_ROWS * BYTES_PER_ROW);
        if options.memory < least {
            return Err(Error::Refused {
                path: PathBuf::from("--memory"),
                reason: format!(
                    "{} bytes are not enough for {lanes} files at a time; give at least {least}, \
                     or fewer workers",
                    options.memory
                ),
            });
        }
        let bytes = options.memory / lanes;
        Ok(Room {
            row_group_rows: ((bytes - BYTES_PER_LANE) / BYTES_PER_ROW).min(ROW_GROUP_ROWS),
            dictionary_bytes: bytes / DICTIONARIES_SHARE,
        })
    }
}
