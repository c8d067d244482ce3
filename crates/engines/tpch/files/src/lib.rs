//! Writes TPC-H tables to Parquet, ORC, CSV or TBL files, whole or in parts, on all cores, within a
//! stated memory.
//!
//! A [`Job`] says what to write, and [`run`] writes it. A piece of a table (a row group, a stripe,
//! a block of lines) is generated and encoded by one thread and appended to its file in its turn.
//! So the bytes of a file depend on the job's settings and never on threads. A file appears under
//! its name when it is complete, and a job that begins again keeps what it has finished.
//!
//! ```
//! use dyno_tpch::{Scale, Table};
//! use dyno_tpch_files::{Destination, Format, Job, Progress, run};
//!
//! let folder = std::env::temp_dir().join(format!("dyno-tpch-doc-{}", std::process::id()));
//! let mut job = Job::new(Scale::new(0.01)?, Format::Parquet, Destination::Folder(folder.clone()));
//! job.tables = vec![Table::Supplier, Table::Nation];
//! let report = run(&job, &Progress::default())?;
//! assert_eq!(report.rows(), 100 + 25);
//! assert!(folder.join("supplier.parquet").is_file());
//! std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod child;
mod columns;
mod destination;
mod error;
mod fields;
pub mod format;
mod iceberg;
mod job;
mod options;
mod plan;
mod progress;
mod receipt;
mod report;
mod run;
mod stored;
mod target;

use std::time::Instant;

use dyno_tpch::{Generator, Table, TextPool};

pub use child::{run_in, serve};
pub use destination::Destination;
pub use dyno_io::SinkKind;
pub use error::Error;
pub use job::Job;
pub use options::{Compression, Format, Layout, Mode, Split};
pub use progress::Progress;
pub use report::{FileReport, Report};

use budget::Budget;
use columns::{Own, OwnMode};
use format::Orc;
use format::parquet::Parquet;
use format::tbl::PlainTbl;
use format::text::Text;
use iceberg::Catalogues;
use run::Run;
use target::Target;

/// Writes the files of a job and reports them. Meanwhile `progress` counts, and can be used to stop
/// the job.
///
/// # Errors
/// See [`Error`]. Files that were finished before stay, and the same job keeps them when it is run
/// again. Half a file never has a final name. The mode `baseline` is refused for all formats except
/// TBL, because it needs Arrow, which `dyno-tpch-baseline` has.
pub fn run(job: &Job, progress: &Progress) -> Result<Report, Error> {
    let (layout, scale) = (&job.layout, job.scale);
    let own = |mode| Own::new(mode, scale);
    let mode = match job.mode {
        Mode::TrueZeroCopy => OwnMode::Coded,
        Mode::ZeroCopy => OwnMode::Plain,
        Mode::Baseline if layout.format == Format::Tbl => {
            return run_with(job, progress, |_| Ok(PlainTbl));
        }
        Mode::Baseline => {
            return Err(Error::Elsewhere {
                mode: job.mode.name(),
                format: layout.format.name(),
            });
        }
    };
    match (layout.format, mode) {
        (Format::Parquet, _) => run_with(job, progress, |table| {
            Parquet::new(table, layout, job.iceberg, own(mode))
        }),
        (Format::Orc, OwnMode::Coded) => {
            run_with(job, progress, |table| Orc::coded(table, layout, own(mode)))
        }
        (Format::Orc, OwnMode::Plain) => {
            run_with(job, progress, |table| Orc::plain(table, layout, own(mode)))
        }
        (Format::Csv | Format::Tbl, _) => run_with(job, progress, |table| {
            Text::new(table, layout.format, own(mode))
        }),
    }
}

/// Writes the files of a job in formats that the caller provides, one for each file of a table.
///
/// # Errors
/// See [`run`].
pub fn run_with<F: format::Format + Send>(
    job: &Job,
    progress: &Progress,
    format: impl Fn(Table) -> Result<F, Error>,
) -> Result<Report, Error> {
    let begin = Instant::now();
    job.check()?;
    let budget = Budget::from_job(job)?;
    let generator = Generator::new(job.scale);
    let target = Target::from_job(job)?;
    target.check_later_parts(job)?;
    let catalogues = Catalogues::open(job)?;
    // All files are looked at before one is begun, so that a job that must be refused has written
    // nothing.
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
    // A job that keeps all of its files does not make the text pool, which takes 300 MiB.
    if !wanted.is_empty() {
        let pool = TextPool::shared_by(job.jobs);
        pool_seconds = begin.elapsed().as_secs_f64();
        let files_to_write: Result<Vec<_>, Error> = wanted
            .into_iter()
            .map(|plan| format(plan.table).map(|format| (plan, format)))
            .collect();
        let run = Run::new(
            &generator,
            pool,
            &target,
            progress,
            budget.waiting,
            files_to_write?,
        );
        files.extend(run.all(job.jobs)?);
    }
    catalogues.commit(&files)?;
    Ok(Report {
        files,
        seconds: begin.elapsed().as_secs_f64(),
        pool_seconds,
    })
}
