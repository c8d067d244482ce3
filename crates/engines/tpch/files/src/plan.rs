//! Which files a job has, and which pieces they are made of.

use std::ops::Range;
use std::path::PathBuf;

use dyno_tpch::{Generator, Table};

use crate::budget::{Budget, units_of_piece};
use crate::error::Error;
use crate::job::{Format, Job, Split};

/// A file that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePlan {
    pub(crate) table: Table,
    /// Below the job's place: `lineitem.parquet`, or `lineitem/lineitem.3.parquet` for part 3.
    pub(crate) name: PathBuf,
    /// Orders for `lineitem`, parts for `partsupp`, rows elsewhere.
    pub(crate) units: Range<u64>,
    pub(crate) units_of_piece: u64,
    /// All that decides the bytes of the file.
    pub(crate) settings: String,
}

impl FilePlan {
    pub(crate) fn pieces(&self) -> u64 {
        // A file without rows still is a file, made of one piece without rows.
        (self.units.end - self.units.start)
            .div_ceil(self.units_of_piece)
            .max(1)
    }

    pub(crate) fn piece(&self, number: u64) -> Range<u64> {
        let first = self.units.start + number * self.units_of_piece;
        first..(first + self.units_of_piece).min(self.units.end)
    }
}

/// The files of a job, those with the most work first, so that the last threads end together.
pub(crate) fn files(
    job: &Job,
    generator: &Generator,
    budget: Budget,
) -> Result<Vec<FilePlan>, Error> {
    let mut tables = job.tables.clone();
    tables.sort_by_key(|&table| std::cmp::Reverse(weight(generator, table)));
    tables.dedup();
    let mut files = Vec::new();
    for table in tables {
        match job.split {
            Split::Whole => {
                let units = 0..generator.scale().units(table);
                files.push(file(job, budget, table, None, units));
            }
            Split::Part { part, parts } => {
                let units = generator.part(table, part, parts)?;
                files.push(file(job, budget, table, Some((part, parts)), units));
            }
            Split::Parts(parts) => {
                for part in 1..=parts {
                    let units = generator.part(table, part, parts)?;
                    files.push(file(job, budget, table, Some((part, parts)), units));
                }
            }
        }
    }
    Ok(files)
}

fn file(
    job: &Job,
    budget: Budget,
    table: Table,
    part: Option<(u64, u64)>,
    units: Range<u64>,
) -> FilePlan {
    let ending = job.layout.format.name();
    let name = match part {
        None => PathBuf::from(format!("{table}.{ending}")),
        Some((part, _)) => PathBuf::from(format!("{table}/{table}.{part}.{ending}")),
    };
    let units_of_piece = units_of_piece(job, budget, table);
    FilePlan {
        table,
        name,
        units,
        units_of_piece,
        settings: settings(job, part, units_of_piece),
    }
}

/// All that decides the bytes of a file, for its receipt: compared, and shown to who wonders.
fn settings(job: &Job, part: Option<(u64, u64)>, units_of_piece: u64) -> String {
    let layout = &job.layout;
    let mut text = format!(
        "dyno {}, --sf {}",
        env!("CARGO_PKG_VERSION"),
        job.scale.factor()
    );
    text += &format!(" --format {}", layout.format);
    if layout.format != Format::Tbl {
        // TBL is the same in all of them; the library that `baseline` takes quotes less of CSV.
        text += &format!(" --mode {}", job.mode);
    }
    if matches!(layout.format, Format::Parquet | Format::Orc) {
        text += &format!(" --compression {}", layout.compression);
        text += &format!(" --page-version {}", layout.page_version);
        text += &format!(", groups of {units_of_piece}");
    }
    for (column, choice) in &layout.columns {
        text += &format!(" --column {column}={choice}");
    }
    if let Some((part, parts)) = part {
        text += &format!(" --part {part}/{parts}");
    }
    text
}

/// About how much work a table is.
fn weight(generator: &Generator, table: Table) -> u64 {
    let units = generator.scale().units(table);
    match table {
        Table::Lineitem => units * 16,
        Table::Partsupp => units * 8,
        Table::Orders => units * 3,
        _ => units,
    }
}
