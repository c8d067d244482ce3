//! Makes archives of radio spots that look like the published ones, from a seed.
//!
//! The same [`Generator`] writes the same bytes on every machine and with any number of workers.
//! Months are independent of each other; the stations are the same in all of them.

mod archive;
mod band;
mod calendar;
mod line;
mod month;
mod planted;
mod position;
mod quirk;
mod random;
mod software;
mod station;
mod traffic;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use parking_lot::Mutex;

pub use archive::Form;
pub use calendar::Month;
pub use planted::{ExpectedRow, Outcome, Planted};
pub use random::Random;

use crate::{Error, Result};
use month::{MonthDone, MonthPlan};
use station::World;

/// How many spot ids a month of the real archive uses, roughly.
const IDS_A_MONTH: u64 = 29_000_000;

/// The parameters of the archives to write.
#[derive(Debug, Clone)]
pub struct Generator {
    /// Rows of all months together, without blank lines.
    pub rows: u64,
    /// Number of archives, one a month. Earlier ones get the rows that do not divide evenly.
    pub months: u32,
    /// The month of the first archive, 2008-03 or later.
    pub start: Month,
    /// The seed that determines everything else.
    pub seed: u64,
    /// Share of rows with a planted oddity, 0 to 1. Above 0, each `.csv.gz` also has several
    /// members and trailing garbage, and a `.planted.ndjson` beside it lists what was planted
    /// ([`Planted`]).
    pub quirks: f64,
    /// How archives are stored: compressed or plain.
    pub form: Form,
    /// In which order a month has its rows.
    pub order: Order,
}

impl Default for Generator {
    fn default() -> Self {
        Generator {
            rows: 1_000_000,
            months: 1,
            start: Month {
                year: 2023,
                month: 1,
            },
            seed: 1,
            quirks: 0.0,
            form: Form::Gzip,
            order: Order::Uploads,
        }
    }
}

/// In which order a month has its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were uploaded, like the published archives: by time, a receiver's batch together.
    Uploads,
    /// The same rows at random, so that no row says anything about the next one. A worker keeps
    /// its whole month in memory, about 100 bytes a row.
    Random,
}

/// Totals of what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Good and bad rows, without blank lines.
    pub rows: u64,
    /// Bytes of all lines before compression.
    pub bytes: u64,
    /// Bytes of all archive files; equal to `bytes` for [`Form::Plain`].
    pub file_bytes: u64,
    /// Number of archives, one a month.
    pub months: u32,
    /// Planted oddities; one per archive is its trailing garbage.
    pub planted: u64,
    /// Paths of the archives, in order of months.
    pub files: Vec<PathBuf>,
}

impl Generator {
    /// Writes the archives into `folder`, which is made when missing, with `workers` threads (0
    /// counts as 1), a month each. `progress` is told how many more rows are done, from any thread,
    /// and may answer `Break` to stop.
    ///
    /// # Errors
    /// [`Error::Refused`] for a request that makes no sense, [`Error::Io`], [`Error::Stopped`].
    /// Finished months stay; an unfinished one leaves no file behind.
    pub fn write(
        &self,
        folder: &Path,
        workers: usize,
        progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
    ) -> Result<Summary> {
        let first_month = self.check().map_err(|reason| Error::Refused {
            path: folder.to_owned(),
            reason,
        })?;
        fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
        let world = World::new(self.seed);
        let next = AtomicU32::new(0);
        let stop = AtomicBool::new(false);
        let results = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..workers.clamp(1, self.months as usize) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        // Workers take one month at a time, so a slow month does not hold up the
                        // others. What a month contains does not depend on the worker.
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.months {
                            break;
                        }
                        let plan = self.plan(&world, first_month, index);
                        let done = month::write(&plan, folder, progress);
                        // The other workers end after their current month, which stays.
                        stop.fetch_or(done.is_err(), Ordering::Relaxed);
                        results.lock().push((index, done));
                    }
                });
            }
        });
        self.sum_up(results.into_inner())
    }

    /// The number of the first month since the archive began, or why the request is refused.
    fn check(&self) -> std::result::Result<u32, String> {
        if self.months == 0 || self.months > 600 {
            return Err(format!("{} months: 1 to 600 can be generated", self.months));
        }
        if self.rows < u64::from(self.months) {
            return Err(format!(
                "each month needs a row, and there are more months ({}) than rows ({})",
                self.months, self.rows
            ));
        }
        if !(0.0..=1.0).contains(&self.quirks) {
            return Err(format!(
                "a quirk rate of {} is not between 0 and 1",
                self.quirks
            ));
        }
        let Month { year, month } = self.start;
        self.start
            .since_first()
            .filter(|_| self.start.plus(self.months - 1).since_first().is_some())
            .ok_or_else(|| format!("{year:04}-{month:02} is not a month from 2008-03 to 2100"))
    }

    fn plan<'a>(&self, world: &'a World, first_month: u32, index: u32) -> MonthPlan<'a> {
        let months = u64::from(self.months);
        let rows = self.rows / months + u64::from(u64::from(index) < self.rows % months);
        // One id in six is left out, so a quarter more ids than rows are enough.
        let ids_a_month = IDS_A_MONTH.max((self.rows / months + 1) * 5 / 4);
        let first_id = 1 + u64::from(first_month) * IDS_A_MONTH + u64::from(index) * ids_a_month;
        MonthPlan {
            world,
            seed: self.seed,
            month: self.start.plus(index),
            first_id,
            rows,
            quirks: self.quirks,
            form: self.form,
            order: self.order,
        }
    }

    fn sum_up(&self, mut results: Vec<(u32, Result<MonthDone>)>) -> Result<Summary> {
        results.sort_by_key(|(index, _)| *index);
        let mut summary = Summary {
            rows: self.rows,
            bytes: 0,
            file_bytes: 0,
            months: self.months,
            planted: 0,
            files: Vec::new(),
        };
        for (_, result) in results {
            // Of several errors the one of the earliest month is returned, so that a run fails
            // alike each time.
            let done = result?;
            summary.bytes += done.bytes;
            summary.file_bytes += done.file_bytes;
            summary.planted += done.list.len() as u64;
            summary.files.push(done.path);
        }
        Ok(summary)
    }
}
