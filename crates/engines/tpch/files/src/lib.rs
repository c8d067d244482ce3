//! Writes TPC-H tables to files: Parquet, ORC, CSV or TBL, whole or in parts, on all cores, within a
//! stated memory.
//!
//! A [`Job`] says what; [`run`] does it. A piece of a table (a row group, a stripe, a block of lines) is
//! generated and encoded by one thread and put into its file in its turn, so the bytes of a file depend on
//! the job's settings and never on threads. A file appears under its name when it is complete; a job
//! that begins again keeps what it finished.
//!
//! ```
//! use dyno_tpch::{Scale, Table};
//! use dyno_tpch_files::{Format, Job, Place, Progress, run};
//!
//! let folder = std::env::temp_dir().join(format!("dyno-tpch-doc-{}", std::process::id()));
//! let mut job = Job::new(Scale::new(0.01)?, Format::Parquet, Place::Folder(folder.clone()));
//! job.tables = vec![Table::Supplier, Table::Nation];
//! let report = run(&job, &Progress::default())?;
//! assert_eq!(report.rows(), 100 + 25);
//! assert!(folder.join("supplier.parquet").is_file());
//! std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod columns;
mod error;
mod fields;
mod format;
mod job;
mod place;
mod plan;
mod progress;
mod receipt;
mod report;
mod run;

use std::time::Instant;

use dyno_tpch::{Generator, Table, TextPool};

pub use dyno_io::SinkKind;
pub use error::Error;
pub use job::{Compression, Format, Job, Layout, Mode, Split};
pub use place::Place;
pub use progress::Progress;
pub use report::{FileReport, Report};

use budget::Budget;
use format::baseline::{ArrowCsv, ArrowParquet, PlainTbl};
use format::orc::Orc;
use format::parquet::Parquet;
use format::text::Text;
use place::Target;
use plan::FilePlan;
use run::Run;

/// Writes the files of a job and reports them. `progress` counts meanwhile and takes the wish to stop.
///
/// # Errors
/// See [`Error`]. Files that were finished before stay, and the same job keeps them when it is run again;
/// under a final name there is never half a file.
pub fn run(job: &Job, progress: &Progress) -> Result<Report, Error> {
    let begin = Instant::now();
    job.check()?;
    let budget = Budget::of(job)?;
    let generator = Generator::new(job.scale);
    let target = Target::of(job)?;
    let mut kept = Vec::new();
    let mut wanted = Vec::new();
    for plan in plan::files(job, &generator, budget)? {
        match target.kept(&plan)? {
            Some(report) => kept.push(report),
            None => wanted.push(plan),
        }
    }
    let mut files = kept;
    let mut pool_seconds = 0.0;
    if !wanted.is_empty() {
        let pool = TextPool::shared_by(job.jobs);
        pool_seconds = begin.elapsed().as_secs_f64();
        let scene = Scene {
            job,
            budget,
            generator: &generator,
            pool,
            target: &target,
            progress,
        };
        files.extend(scene.write(wanted)?);
    }
    Ok(Report {
        files,
        seconds: begin.elapsed().as_secs_f64(),
        pool_seconds,
    })
}

/// What all formats need.
struct Scene<'a> {
    job: &'a Job,
    budget: Budget,
    generator: &'a Generator,
    pool: &'a TextPool,
    target: &'a Target,
    progress: &'a Progress,
}

impl Scene<'_> {
    fn write(&self, files: Vec<FilePlan>) -> Result<Vec<FileReport>, Error> {
        let Job {
            layout,
            mode,
            scale,
            ..
        } = self.job;
        let (mode, scale) = (*mode, *scale);
        match (layout.format, mode) {
            (Format::Parquet, Mode::Baseline) => {
                self.write_as(files, |table| ArrowParquet::new(table, layout))
            }
            (Format::Csv, Mode::Baseline) => self.write_as(files, |table| Ok(ArrowCsv { table })),
            (Format::Tbl, Mode::Baseline) => self.write_as(files, |_| Ok(PlainTbl)),
            (Format::Parquet, _) => {
                self.write_as(files, |table| Parquet::new(table, layout, mode, scale))
            }
            (Format::Orc, _) => self.write_as(files, |table| Orc::new(table, layout, mode, scale)),
            (Format::Csv | Format::Tbl, _) => {
                self.write_as(files, |table| Text::new(table, layout.format, mode, scale))
            }
        }
    }

    fn write_as<F: format::Format + Send>(
        &self,
        files: Vec<FilePlan>,
        format: impl Fn(Table) -> Result<F, Error>,
    ) -> Result<Vec<FileReport>, Error> {
        let files: Result<Vec<_>, Error> = files
            .into_iter()
            .map(|plan| format(plan.table).map(|format| (plan, format)))
            .collect();
        let run = Run::new(
            self.generator,
            self.pool,
            self.target,
            self.progress,
            self.budget.waiting,
            files?,
        );
        run.all(self.job.jobs)
    }
}
