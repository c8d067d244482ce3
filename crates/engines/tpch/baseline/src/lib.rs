//! The mode `baseline` of `dyno tpch gen`, in which rows become Arrow arrays, value by value, and
//! go to the ordinary library's writers. ORC goes through our own writer, because the Rust library
//! for ORC cannot write decimals.
//!
//! This crate belongs to `dyno-sql`, which `dyno` starts for the mode, because Arrow and its
//! writers take longer to build than all of `dyno`.

mod columns;
mod csv;
mod parquet;

use dyno_tpch_files::format::Orc;
use dyno_tpch_files::{Error, Format, Job, Mode, Progress, Report, run_with};

use columns::Arrays;
use csv::ArrowCsv;
use parquet::ArrowParquet;

/// Writes the files of a job, as [`dyno_tpch_files::run`] does for the other modes. No library
/// prints what dbgen prints, so TBL is left to that function.
///
/// # Errors
/// See [`dyno_tpch_files::run`]. A job of another mode is refused.
pub fn run(job: &Job, progress: &Progress) -> Result<Report, Error> {
    if job.mode != Mode::Baseline {
        let reason = format!("the mode is {}, and only baseline is made here", job.mode);
        return Err(Error::Together(reason));
    }
    let layout = &job.layout;
    match layout.format {
        Format::Parquet => run_with(job, progress, |table| ArrowParquet::new(table, layout)),
        Format::Csv => run_with(job, progress, |table| Ok(ArrowCsv { table })),
        Format::Orc => run_with(job, progress, |table| Orc::plain(table, layout, Arrays)),
        Format::Tbl => dyno_tpch_files::run(job, progress),
    }
}
